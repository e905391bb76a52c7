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
        is_complete: whether it is built; if not, it is planned or being built.
        unused: why queries do without it although it is complete, and what to do; None if they use it.
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    is_partitioned: bool = False
    is_complete: bool = True
    unused: str | None = None
