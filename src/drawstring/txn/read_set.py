"""Reach of a write: the parts of the table whose rows its result depends on.

A write that read rows would have given another result if somebody had changed rows there before it. Parts
that it ruled out count by the rule, not by a list: a partition or bucket that others made since the write
began may hold rows that it should have read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from drawstring.model.files import join_path

Groups = frozenset[tuple[str, str]]
"""File groups, as partition and file id."""

_SHOWN: Final = 5


def shown(groups: Groups) -> str:
    """Return the names of file groups for a message; of many, the first ones and how many there are more."""
    names = ", ".join(join_path(*group) for group in sorted(groups)[:_SHOWN])
    return f"{names} and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else names


class ConflictScope(Protocol):
    """A part of the table."""

    def __call__(self, groups: Groups) -> bool:
        """Return whether any of some file groups, which others wrote to, may hold rows of it."""
        ...


def nowhere(groups: Groups) -> bool:
    """The reach of a write that reads no rows."""
    return False


def anywhere(groups: Groups) -> bool:
    """The reach of a write that may read any row."""
    return bool(groups)


@dataclass(frozen=True, slots=True)
class InPartitions:
    """The reach of a write that reads only rows of some partitions.

    Attributes:
        paths: their paths.
    """

    paths: frozenset[str]

    def __call__(self, groups: Groups) -> bool:
        return any(path in self.paths for path, _ in groups)


@dataclass(frozen=True, slots=True)
class InGroups:
    """The reach of a write that reads only the rows that it changes.

    Attributes:
        groups: the file groups that it writes to.
    """

    groups: Groups

    def __call__(self, groups: Groups) -> bool:
        return not groups.isdisjoint(self.groups)


@dataclass(frozen=True, slots=True)
class Reads:
    """What a write read.

    Attributes:
        looked_at: where it looked for rows or keys, so that it must have found all files there.
        depends_on: where a change of records would have changed its result.
    """

    looked_at: ConflictScope = anywhere
    depends_on: ConflictScope = nowhere


NO_ROWS: Final = Reads()
"""Of a write that depends on no rows, and may have looked for keys anywhere."""
