"""What the suites that share peers tell them of their tables; standard library only."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Shape:
    """One table.

    Attributes:
        name: of the table.
        key: the columns of its record key.
        partition_by: its partition columns, or none.
        ordering: the column by which the newest row of a key is known.
        sets_columns: whether changes have some of the columns only, and leave the others as they are.
        buckets: in each partition, where rows are found by a hash of their key.
    """

    name: str
    key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: str
    sets_columns: bool = False
    buckets: int = 4

    def named(self, name: str) -> Shape:
        """Return the shape of another table of the kind."""
        return replace(self, name=name)

    @property
    def found_by(self) -> tuple[str, ...]:
        """The columns that a merge compares: the partition's first, so that it can leave files out."""
        return (*self.partition_by, *self.key)


LINEITEM = Shape("lineitem", ("l_orderkey", "l_linenumber"), ("l_shipyear",), "l_version")
RIDES = Shape("rides", ("ride_id",), ("city",), "ts")
