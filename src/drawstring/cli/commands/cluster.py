"""`drawstring cluster`: bring small file groups together, and sort their rows."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.cli.bar import progress_bar
from drawstring.cli.planned import check_choice, print_done, print_scheduled
from drawstring.model.result import CommitResult

_NOTHING: Final = "nothing to cluster"
_SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"

Schedule = Annotated[bool, Parameter(negative="", help="Only plan a clustering, for another process to run.")]
Instant = Annotated[
    str | None, Parameter(help="Run the clustering that was scheduled under this instant, and nothing else.")
]
SortBy = Annotated[str, Parameter(help="Columns to sort rows by, with commas between them.")]


def cluster(
    path: TablePath,
    *,
    schedule: Schedule = False,
    run: Instant = None,
    sort_by: SortBy = "",
    hoodie: HudiOptions = (),
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Cluster a table: bring its small file groups together, and sort their rows.

    By default what is scheduled is run, and then what is left to cluster.
    """
    check_choice(schedule=schedule, run=run)
    table, given = open_table(path, option), named_values(hoodie)
    if sort_by:
        given[_SORT_COLUMNS] = sort_by
    if schedule:
        print_scheduled(table.schedule_clustering(**given), _NOTHING, as_json=as_json)
        return
    with progress_bar(table.config.name) as began:
        result = table.cluster(began(f"clustering {table.config.name}"), instant=run, **given)
    print_done(result, _told(result) if result else _NOTHING, as_json=as_json)


def _told(result: CommitResult) -> str:
    size = output.size_text(result.bytes_written)
    written = f"{result.records_written} rows into {result.files} base files ({size})"
    return f"clustered {written} in {result.seconds:.1f} s, at instant {result.instant}"
