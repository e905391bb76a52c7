"""`drawstring compact`: merge log files into new base files."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console
from rich.progress import Progress, TaskID

from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.model.result import CommitResult
from drawstring.table import Table


def compact(path: TablePath, *, as_json: AsJson = False, option: StorageOptions = ()) -> None:
    """Compact a MERGE_ON_READ table: merge its log files into new base files."""
    result = _compact_with_bar(open_table(path, option))
    if as_json:
        output.print_json(asdict(result) if result else None)
        return
    output.console().print(_told(result) if result else "nothing to compact", highlight=False)


def _compact_with_bar(table: Table) -> CommitResult | None:
    """Compact while a bar on standard error, if that is a terminal, counts file groups."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task: TaskID = bar.add_task(f"compacting {table.config.name}", total=None)
        return table.compact(lambda done, total: bar.update(task, completed=done, total=total))


def _told(result: CommitResult) -> str:
    size = output.size_text(result.bytes_written)
    written = f"{result.records_written} rows into {result.files} base files ({size})"
    return f"compacted {written} in {result.seconds:.1f} s, at instant {result.instant}"
