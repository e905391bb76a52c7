"""An index of a table in its metadata table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index of a table, as Hudi names it.

    Attributes:
        name: the partition of the metadata table that holds it: `record_index`, `bloom_filters`,
            `secondary_index_<name>`, `column_stats`, ...
        kind: what it is: `record_index`, `secondary_index`, `bloom_filters`, `column_stats`, ...
        columns: the columns it is about; none for an index of record keys.
        is_partitioned: whether a record index has the keys of each partition by themselves.
        is_complete: whether queries use it; if not, it is planned or being built.
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    is_partitioned: bool = False
    is_complete: bool = True
