"""What the table has to hold: the operations in the order of their completion, one after the other.

The timeline says which operations count. A completed file that appears is the moment at which an operation
takes effect, for all readers; so the rows after it are those before it, changed as that operation alone would
change them. Compactions and clusterings change no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from drawstring.formats.metadata.commit import decode_commit
from drawstring.model.commit import WriteOperation
from drawstring.model.instant import State
from drawstring.model.table_version import TimelineLayout
from drawstring.table import Table
from drawstring.timeline.instants import parse_instant

Rows = dict[tuple[str, str], int]
"""Values by partition and key."""

SERVICES = (WriteOperation.COMPACT, WriteOperation.CLUSTER, WriteOperation.LOG_COMPACT)


@dataclass
class Operation:
    """A call of an actor, and what became of it.

    Attributes:
        name: of the operation, for messages.
        act: the call; its arguments are the table and the options.
        apply: what the operation does to rows, if nothing comes in between.
        began: number of the state of the table when it began.
        instants: what it put on the timeline.
        effects: the numbers of the states that it led to.
        outcome: `done`, or the name of the error.
        error: the error.
        was_disturbed: whether a fault met its process meanwhile.
        missed: keys that may stay although the operation deletes them, if it looked before they were there.
    """

    name: str
    act: Callable[[Table, dict[str, str]], Any]
    apply: Callable[[Rows], Rows] = dict
    began: int = 0
    instants: list[str] = field(default_factory=list)
    effects: list[int] = field(default_factory=list)
    outcome: str = ""
    error: BaseException | None = None
    was_disturbed: bool = False
    missed: frozenset[tuple[str, str]] = frozenset()


class History:
    """The states of the table.

    Args:
        folder: of the timeline.
        layout: of the timeline.
        look: returns the rows that the table holds, read at one moment.
    """

    def __init__(self, folder: str, layout: TimelineLayout, look: Callable[[], Rows]) -> None:
        self._folder = folder
        self._layout = layout
        self._look = look
        self._owners: dict[str, Operation] = {}
        self._completed: set[str] = set()
        self.states: list[Rows] = [look()]

    @property
    def now(self) -> int:
        """The number of the newest state."""
        return len(self.states) - 1

    def note(self, operation: Operation | None, path: str, data: bytes) -> None:
        """Take note of a file that the process of an operation put.

        Raises:
            AssertionError: the table does not hold what it should hold now.
        """
        folder, _, name = path.rpartition("/")
        instant = parse_instant(name, self._layout) if folder == self._folder else None
        if instant is None:
            return
        if instant.state is State.REQUESTED and operation is not None:
            self._owners[instant.requested] = operation
            operation.instants.append(instant.requested)
        if instant.is_write and instant.requested not in self._completed:
            self._completed.add(instant.requested)
            self._complete(instant.requested, data)

    def _complete(self, requested: str, data: bytes) -> None:
        if decode_commit(data).operation in SERVICES:
            self.check(f"after the service {requested}")
            return
        owner = self._owners[requested]
        held, before = self._look(), self.states[owner.began :]
        late = {at for at in owner.missed & held.keys() if any(at not in rows for rows in before)}
        stays = {at: value for at, value in self.states[-1].items() if at in late}
        self.states.append(owner.apply(self.states[-1]) | stays)
        owner.effects.append(self.now)
        self.check(f"after {requested}, {owner.name}")

    def check(self, where: str) -> None:
        """Make sure that the table holds the newest state."""
        held = self._look()
        assert held == self.states[-1], f"{where}: {_difference(held, self.states[-1])}"

    def judge(self, operation: Operation) -> None:
        """Check what became of an operation that is over.

        Raises:
            AssertionError: it took effect although it was refused, or not although it was acknowledged.
        """
        text = f"{operation.name} {operation.instants}: {operation.outcome}, {operation.error!r}"
        effects = len(operation.effects)
        if operation.outcome == "done":
            assert effects == 1, f"{text}, and took effect {effects} times"
        elif operation.outcome == "nothing":
            assert effects == 0, f"{text}, and took effect {effects} times"
            states = self.states[operation.began :]
            assert any(operation.apply(rows) == rows for rows in states), f"{text}, with rows to change"
        else:
            assert effects <= 1, f"{text}, and took effect {effects} times"
            assert operation.was_disturbed or not effects, f"{text}, and took effect"

    def judge_reading(self, found: Rows, began: int) -> None:
        """Check rows that a reader found, who began at a state."""
        assert found in self.states[began:], f"a reader found {found}, none of {self.states[began:]}"


def rows_of(found: pa.Table) -> Rows:
    """Return rows by key; a key that comes twice is an error."""
    rows = found.to_pylist()
    by_key = {(row["city"], row["id"]): row["value"] for row in rows}
    assert len(by_key) == len(rows), f"a key comes twice: {sorted(map(str, rows))}"
    return by_key


def _difference(held: Rows, expected: Rows) -> str:
    changed = {
        at: (held.get(at), expected.get(at))
        for at in sorted({*held, *expected})
        if held.get(at) != expected.get(at)
    }
    return f"(found, expected) by row: {changed}"
