"""`drawstring cluster`: bring small file groups together, and sort their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress, TaskID

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, named_values, open_table
from drawstring.model.result import CommitResult
from drawstring.table import Table

_NOTHING: Final = "nothing to cluster"
_SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"

Schedule = Annotated[bool, Parameter(negative="", help="Only plan a clustering, for another process to run.")]
Instant = Annotated[
    str | None, Parameter(help="Run the clustering that was scheduled under this instant, and nothing else.")
]
SortBy = Annotated[str, Parameter(help="Columns to sort rows by, with commas between them.")]
Options = Annotated[
    tuple[str, ...],
    Parameter(
        name="--hoodie",
        negative="",
        help="Option of Hudi's as NAME=VALUE, hoodie.layout.optimize.strategy for instance; may be repeated.",
    ),
]


def cluster(
    path: TablePath,
    *,
    schedule: Schedule = False,
    run: Instant = None,
    sort_by: SortBy = "",
    hoodie: Options = (),
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Cluster a table: bring its small file groups together, and sort their rows.

    By default what is scheduled is run, and then what is left to cluster.
    """
    if schedule and run:
        raise InvalidError("--schedule and --run exclude each other: give one of them, or none for both")
    table, given = open_table(path, option), named_values(hoodie)
    if sort_by:
        given[_SORT_COLUMNS] = sort_by
    if schedule:
        instant = table.schedule_clustering(**given)
        if as_json:
            output.print_json({"instant": instant})
        else:
            output.console().print(f"scheduled {instant}" if instant else _NOTHING, highlight=False)
        return
    result = _cluster_with_bar(table, run, given)
    if as_json:
        output.print_json(asdict(result) if result else None)
        return
    output.console().print(_told(result) if result else _NOTHING, highlight=False)


def _cluster_with_bar(table: Table, instant: str | None, given: Mapping[str, str]) -> CommitResult | None:
    """Cluster while a bar on standard error, if that is a terminal, counts groups."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task: TaskID = bar.add_task(f"clustering {table.config.name}", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return table.cluster(progress, instant=instant, **given)


def _told(result: CommitResult) -> str:
    size = output.size_text(result.bytes_written)
    written = f"{result.records_written} rows into {result.files} base files ({size})"
    return f"clustered {written} in {result.seconds:.1f} s, at instant {result.instant}"
