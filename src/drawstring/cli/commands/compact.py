"""`drawstring compact`: merge log files into new base files, or small base files into larger ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.cli.bar import progress_bar
from drawstring.cli.planned import check_choice, print_done, print_scheduled
from drawstring.model.result import CommitResult
from drawstring.table import Table

_NOTHING: Final = "nothing to compact"


Schedule = Annotated[
    bool,
    Parameter(negative="", help="Only plan a compaction, for another process to run."),
]
Instant = Annotated[
    str | None, Parameter(help="Run the compaction that was scheduled under this instant, and nothing else.")
]
Logs = Annotated[
    bool,
    Parameter(negative="", help="Make one log file of many where there are, and leave the base files alone."),
]
BaseFiles = Annotated[
    bool,
    Parameter(
        name="--base-files",
        negative="",
        help="Put small base files of a partition together, and leave log files alone; COPY_ON_WRITE too.",
    ),
]


def compact(
    path: TablePath,
    *,
    schedule: Schedule = False,
    run: Instant = None,
    logs: Logs = False,
    base_files: BaseFiles = False,
    hoodie: HudiOptions = (),
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Compact a MERGE_ON_READ table: merge its log files into new base files.

    By default what is scheduled is run, and then what is left to compact. With --base-files small base files
    become few, in a table of either type.
    """
    check_choice(schedule=schedule, run=run)
    if logs and base_files:
        raise InvalidError("--logs and --base-files exclude each other: give one of them, or none")
    table, given = open_table(path, option), named_values(hoodie)
    plan, service = _service(table, logs=logs, base_files=base_files)
    if schedule:
        print_scheduled(plan(**given), _NOTHING, as_json=as_json)
        return
    with progress_bar(table.config.name) as began:
        result = service(began(f"compacting {table.config.name}"), instant=run, **given)
    print_done(result, _told(result) if result else _NOTHING, as_json=as_json)


def _service(
    table: Table, *, logs: bool, base_files: bool
) -> tuple[Callable[..., str | None], Callable[..., CommitResult | None]]:
    """Return what plans the compaction that is asked for, and what runs it."""
    if base_files:
        return table.schedule_base_file_compaction, table.compact_base_files
    if logs:
        return table.schedule_log_compaction, table.log_compact
    return table.schedule_compaction, table.compact


def _told(result: CommitResult) -> str:
    kind = "log files" if result.operation == "log_compact" else "base files"
    size = output.size_text(result.bytes_written)
    written = f"{result.records_written} rows into {result.files} {kind} ({size})"
    return f"compacted {written} in {result.seconds:.1f} s, at instant {result.instant}"
