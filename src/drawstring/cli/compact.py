"""`drawstring compact`: merge log files into new base files."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.cli.bar import progress_bar
from drawstring.cli.planned import check_choice, print_done, print_scheduled
from drawstring.model.result import CommitResult

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


def compact(
    path: TablePath,
    *,
    schedule: Schedule = False,
    run: Instant = None,
    logs: Logs = False,
    hoodie: HudiOptions = (),
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Compact a MERGE_ON_READ table: merge its log files into new base files.

    By default what is scheduled is run, and then what is left to compact.
    """
    check_choice(schedule=schedule, run=run)
    table, given = open_table(path, option), named_values(hoodie)
    if schedule:
        instant = (table.schedule_log_compaction if logs else table.schedule_compaction)(**given)
        print_scheduled(instant, _NOTHING, as_json=as_json)
        return
    service = table.log_compact if logs else table.compact
    with progress_bar(table.config.name) as began:
        result = service(began(f"compacting {table.config.name}"), instant=run, **given)
    print_done(result, _told(result) if result else _NOTHING, as_json=as_json)


def _told(result: CommitResult) -> str:
    kind = "log files" if result.operation == "log_compact" else "base files"
    size = output.size_text(result.bytes_written)
    written = f"{result.records_written} rows into {result.files} {kind} ({size})"
    return f"compacted {written} in {result.seconds:.1f} s, at instant {result.instant}"
