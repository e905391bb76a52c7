"""`drawstring compact`: merge log files into new base files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress, TaskID

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
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
    if schedule and run:
        raise InvalidError("--schedule and --run exclude each other: give one of them, or none for both")
    table, given = open_table(path, option), named_values(hoodie)
    if schedule:
        instant = (table.schedule_log_compaction if logs else table.schedule_compaction)(**given)
        if as_json:
            output.print_json({"instant": instant})
        else:
            output.console().print(f"scheduled {instant}" if instant else _NOTHING, highlight=False)
        return
    result = _compact_with_bar(table, table.log_compact if logs else table.compact, run, given)
    if as_json:
        output.print_json(asdict(result) if result else None)
        return
    output.console().print(_told(result) if result else _NOTHING, highlight=False)


def _compact_with_bar(
    table: Table,
    service: Callable[..., CommitResult | None],
    instant: str | None,
    given: Mapping[str, str],
) -> CommitResult | None:
    """Compact while a bar on standard error, if that is a terminal, counts file groups."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task: TaskID = bar.add_task(f"compacting {table.config.name}", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return service(progress, instant=instant, **given)


def _told(result: CommitResult) -> str:
    kind = "log files" if result.operation == "log_compact" else "base files"
    size = output.size_text(result.bytes_written)
    written = f"{result.records_written} rows into {result.files} {kind} ({size})"
    return f"compacted {written} in {result.seconds:.1f} s, at instant {result.instant}"
