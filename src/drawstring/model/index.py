"""An index of a table in its metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
        using: what an expression index has of its values: `column_stats` or `bloom_filters`.
        options: settings of an expression index; `expr` is its function.
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    is_partitioned: bool = False
    is_complete: bool = True
    unused: str | None = None
    using: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
