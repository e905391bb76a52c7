"""`drawstring cluster`: combine small file groups and sort their rows."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.counted import counted
from drawstring.cli.arguments import (
    AsJson,
    HudiOptions,
    StorageOptions,
    TablePath,
    column_names,
    named_values,
    open_table,
)
from drawstring.cli.planned import PlannedCall, Words
from drawstring.model.explanation import size_text
from drawstring.model.result import CommitResult

Schedule = Annotated[bool, Parameter(negative="", help="Only plan a clustering, for another process to run.")]
Instant = Annotated[
    str | None, Parameter(help="Run the clustering that was scheduled under this instant, and nothing else.")
]
SortBy = Annotated[
    tuple[str, ...],
    Parameter(negative="", help="Columns to sort rows by, separated by commas; may be repeated."),
]
Layout = Annotated[
    Literal["LINEAR", "ZORDER", "HILBERT"] | None,
    Parameter(help="How the sort columns order rows; LINEAR by default."),
]
Partitions = Annotated[
    tuple[str, ...], Parameter(negative="", help="Cluster only this partition path; may be repeated.")
]
SmallFileBytes = Annotated[
    int | None,
    Parameter(validator=Number(gte=0), help="Base files below this size are clustered; 300 MiB by default."),
]
TargetFileBytes = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Size of new base files; 1 GiB by default.")
]


def cluster(
    path: TablePath,
    *,
    schedule: Schedule = False,
    instant: Instant = None,
    sort_by: SortBy = (),
    layout: Layout = None,
    partitions: Partitions = (),
    small_file_bytes: SmallFileBytes = None,
    target_file_bytes: TargetFileBytes = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Cluster a table: combine its small file groups and sort their rows.

    By default, run the scheduled clusterings, then cluster the remaining file groups.
    """
    table = open_table(path, storage_option)
    given: dict[str, Any] = {
        "sort_by": column_names(sort_by, "--sort-by"),
        "layout": layout,
        "partitions": list(partitions) or None,
        "small_file_bytes": small_file_bytes,
        "target_file_bytes": target_file_bytes,
        "options": named_values(option),
    }
    call = PlannedCall(table.schedule_clustering, table.cluster, given, _WORDS)
    call.carry_out(table.config.name, instant, schedule=schedule, as_json=as_json)


def _told(result: CommitResult) -> str:
    size = size_text(result.bytes_written)
    written = f"{counted(result.records_written, 'row')} into {counted(result.files, 'base file')} ({size})"
    return f"clustered {written} in {result.seconds:.1f} s, at instant {result.instant}"


_WORDS: Final = Words("clustering", "nothing to cluster", _told)
