"""Which kinds and operations the contract suite runs, and what cannot come together and why.

`CELLS` are kinds so chosen that any two values of two dimensions come together once, and to each some
operations, so that every operation meets every value. README.md shows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.support.combinations import covering, pairwise
from tests.support.contract.kinds import BARE_DIMENSIONS, DIMENSIONS, FORMAT_DIMENSIONS, Kind

Meeting = tuple[str, str, str]

OPERATIONS = (
    "insert", "insert_drop", "insert_fail", "upsert", "partial", "delete", "bulk_insert", "append",
    "insert_overwrite", "insert_overwrite_table", "delete_partition", "update_where", "delete_where",
    "merge", "compact", "cluster",
)  # fmt: skip
IN_EACH_CELL = 5
PATCHES = ("partial", "update_where", "merge")
"""What writes log blocks with some of the columns, to tables without a column for deletes."""


@dataclass(frozen=True)
class Refusal:
    """What cannot come together, and what a user is told who tries."""

    what: str
    why: str
    holds: Callable[[Kind], bool]
    operations: tuple[str, ...] = ()


NO_TABLES = (
    Refusal(
        "consistent on cow",
        "needs a MERGE_ON_READ table",
        lambda kind: kind.index == "consistent" and not kind.is_mor,
    ),
    Refusal(
        "log, global_log on cow", "MERGE_ON_READ", lambda kind: kind.index.endswith("log") and not kind.is_mor
    ),
    Refusal(
        "global_simple, global_bloom, global_log on no_meta, dropped",
        "not available yet for tables without meta columns or with dropped partition columns",
        lambda kind: kind.is_global and kind.files in ("no_meta", "dropped"),
    ),
    Refusal(
        "log, global_log on no_meta",
        "needs the meta columns",
        lambda kind: kind.index.endswith("log") and kind.files == "no_meta",
    ),
    Refusal(
        "dropped on none",
        "needs partition columns",
        lambda kind: kind.files == "dropped" and kind.layout == "none",
    ),
    Refusal(
        "lsm on 6, 8, 9",
        "needs table version 10",
        lambda kind: kind.is_sorted and kind.version != "10",
    ),
    Refusal(
        "lsm on no_meta",
        r"needs hoodie\.populate\.meta\.fields=true",
        lambda kind: kind.is_sorted and kind.files == "no_meta",
    ),
    Refusal(
        "no_meta, dropped on time, custom",
        "key generator",
        lambda kind: kind.files in ("no_meta", "dropped") and kind.layout in ("time", "custom"),
    ),
)
NO_OPERATIONS = (
    Refusal(
        "append on bucket, consistent",
        "Append writes every batch to new file groups",
        lambda kind: kind.index in ("bucket", "consistent"),
        ("append",),
    ),
    Refusal(
        "cluster on bucket",
        "cannot be clustered",
        lambda kind: kind.index == "bucket",
        ("cluster",),
    ),
    Refusal("compact on cow", "COPY_ON_WRITE", lambda kind: not kind.is_mor, ("compact",)),
    Refusal(
        "changes by a condition, merge and partial on dropped",
        "files lack the partition columns",
        lambda kind: kind.files == "dropped",
        ("update_where", "delete_where", "merge", "partial"),
    ),
    Refusal(
        "partial on global_*",
        "Use an index that is not global",
        lambda kind: kind.is_global,
        ("partial",),
    ),
    Refusal(
        "delete_partition on none",
        "is not a partition",
        lambda kind: kind.layout == "none",
        ("delete_partition",),
    ),
)


def operations_of(kind: Kind) -> list[str]:
    """Return the operations that go with a kind."""
    never = {name for each in NO_OPERATIONS if each.holds(kind) for name in each.operations}
    return [name for name in OPERATIONS if name not in never]


@dataclass(frozen=True)
class Cell:
    """What a test runs: a kind, and operations that its histories have in any case."""

    kind: Kind
    operations: tuple[str, ...]

    def __str__(self) -> str:
        return str(self.kind)


def _is_possible(kind: Kind) -> bool:
    return not any(each.holds(kind) for each in NO_TABLES)


def meetings(kinds: Iterable[Kind]) -> set[Meeting]:
    """Return which operations meet which values in kinds."""
    return {(name, *value) for kind in kinds for name in operations_of(kind) for value in vars(kind).items()}


def _with_operations(
    kinds: Sequence[Kind], missing: set[Meeting], always: tuple[str, ...] = ()
) -> list[Cell]:
    """Give each kind operations, those that have yet to meet most of its values first.

    A kind that is the last to have a value gets all that have not met it. Where some operations come to
    each, there are too few places for that: the others come as often as each other.
    """
    used = dict.fromkeys(OPERATIONS, 0)
    cells = []
    for at, kind in enumerate(kinds):
        names = [name for name in operations_of(kind) if name not in always]
        new = {name: {(name, *each) for each in vars(kind).items()} & missing for name in names}
        ranked = sorted(new, key=lambda name: (-len(new[name]), used[name]))
        later = set(missing) if always else meetings(kinds[at + 1 :])
        few = IN_EACH_CELL - len(always)
        chosen = tuple(name for place, name in enumerate(ranked) if place < few or new[name] - later)
        for name in chosen:
            used[name] += 1
            missing -= new[name]
        cells.append(Cell(kind, (*always, *chosen)))
    return cells


def _every(dimensions: Mapping[str, tuple[str, ...]]) -> list[Kind]:
    return [kind for each in itertools.product(*dimensions.values()) if _is_possible(kind := Kind(*each))]


def _in_pairs(kinds: list[Kind]) -> list[Kind]:
    return [Kind(*each) for each in pairwise([tuple(vars(kind).values()) for kind in kinds])]


EVERY = _every(DIMENSIONS)
CELLS = _with_operations(_in_pairs(EVERY), meetings(EVERY))
BARE = _every(BARE_DIMENSIONS)
BARE_CELLS = _with_operations(_in_pairs(BARE), meetings(BARE), PATCHES)
FORMATS = _every(FORMAT_DIMENSIONS)
FORMAT_CELLS = _with_operations(_in_pairs(FORMATS), meetings(FORMATS))


def values_of(cell: Cell) -> set[Hashable]:
    """Return the values of a cell's kind, and its operations."""
    return {*vars(cell.kind).items(), *cell.operations}


def _stored_values_of(cell: Cell) -> set[Hashable]:
    """Return the values of a cell's kind, its index with its storage, and its operations."""
    return {*values_of(cell), (cell.kind.index, cell.kind.storage)}


SHORT_CELLS = (
    *covering(CELLS, _stored_values_of),
    *covering(BARE_CELLS, values_of),
    *covering(FORMAT_CELLS, lambda cell: [cell.kind.storage]),
)
"""Cells in which each index meets each storage, and every other value and operation is there; for tables
without a column for deletes, each value; for base files in other formats, each storage."""


BARE_SPARK_CELLS = covering(BARE_CELLS, values_of)[:2]


FORMAT_SPARK_CELLS = covering(FORMAT_CELLS, lambda cell: [cell.kind.storage])[:4]


SPARK_CELLS = covering(CELLS, values_of) + BARE_SPARK_CELLS + FORMAT_SPARK_CELLS
