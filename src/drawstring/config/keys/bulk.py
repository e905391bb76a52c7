"""Options of bulk_insert: the sort order of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from drawstring.config.options.option import Kind, Option


class SortMode(StrEnum):
    """How a bulk insert shuffles and sorts rows before it writes them."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


@dataclass(frozen=True, slots=True)
class BulkInsert:
    """Settings of a bulk insert.

    Attributes:
        sort_mode: one of `SortMode`.
        sort_columns: columns to sort all rows by, after the partition path; override the sort mode.
        sort_by_key_last: whether the record key follows the sort columns.
        partitioner: Hudi's partitioner class that sorts by columns, None when not given.
    """

    sort_mode: str
    sort_columns: tuple[str, ...]
    sort_by_key_last: bool
    partitioner: str | None


_PARTITIONER_KEY: Final = "hoodie.bulkinsert.user.defined.partitioner.class"
_PARTITIONERS: Final = tuple(
    f"{package}{name}CustomColumnsSortPartitioner"
    for name in ("RDD", "Row", "Java")
    for package in ("org.apache.hudi.execution.bulkinsert.", "")
)

BULK_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.bulkinsert.sort.mode",
        "How bulk_insert sorts rows by partition path and record key: not at all, globally, within each task,"
        " or with one task for each partition.",
        default=SortMode.NONE.value,
        choices=tuple(SortMode),
        field="sort_mode",
    ),
    Option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        "Columns that bulk_insert sorts all rows by, after the partition path; overrides the sort mode.",
        kind=Kind.LIST,
        default=(),
        field="sort_columns",
    ),
    Option(
        "hoodie.bulkinsert.sort.suffix.record_key",
        "Whether bulk_insert also sorts by the record key, after the sort columns.",
        kind=Kind.FLAG,
        default=False,
        field="sort_by_key_last",
    ),
    Option(
        _PARTITIONER_KEY,
        "Hudi's partitioner classes that sort by the sort columns; the sort columns suffice without them.",
        only=tuple(name.upper() for name in _PARTITIONERS),
        field="partitioner",
    ),
)
