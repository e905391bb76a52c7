"""What the table has to hold: the operations in the order of their completion, one after the other.

The timeline says which operations count. A completed file that appears is the moment at which an operation
takes effect, for all readers; so the rows after it are those before it, changed as that operation alone would
change them. Compactions and clusterings change no rows. A restore takes completed files away, one after the
other; the rows after each are those without that operation.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from drawstring.base.errors import FilesCleanedError, LostRaceError
from drawstring.formats.metadata.commit import decode_commit
from drawstring.formats.metadata.rollback import decode_restore_plan
from drawstring.model.commit import WriteOperation
from drawstring.model.instant import Action, Instant, State, time_of
from drawstring.model.plans import RestorePlan
from drawstring.table import Table
from drawstring.timeline.timeline import parse_instant
from tests.support.simulation.writers.plans import Kind

COLUMNS = ["id", "city", "value"]
Rows = dict[tuple[str, str], int]
"""Values by partition and key."""

NEVER = "9"
"""A time after every other."""

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
        missed: names of rows that may stay although the operation deletes them, if it looked before they
            were there.
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
    missed: frozenset[Any] = frozenset()


@dataclass(frozen=True)
class _Effect:
    """What a completed operation did.

    Attributes:
        requested: time of its instant.
        time: at which it completed; in version 6 its requested time.
        change: of the rows.
    """

    requested: str
    time: str
    change: Callable[[Rows], Rows]


class History:
    """The states of the table.

    Args:
        table: returns the table for a look at one moment.
        kind: of the table.
    """

    def __init__(self, table: Callable[[], Table], kind: Kind) -> None:
        self._table = table
        self._kind = kind
        config = table().config
        self._folder, self._layout = config.timeline_folder, config.layout
        self._owners: dict[tuple[str, Action], Operation] = {}
        self._times = {each.requested: time_of(each) for each in table().timeline.writes()}
        self._effects: list[_Effect] = []
        self._undone: set[str] = set()
        self._restores: dict[str, RestorePlan] = {}
        self._saved: dict[str, Rows] = {}
        self.states: list[Rows] = [self.look()]

    @property
    def now(self) -> int:
        """The number of the newest state."""
        return len(self.states) - 1

    def look(self, as_of: str | None = None) -> Rows:
        """Return the rows that the table holds, or held at a savepoint."""
        return rows_of(self._table().scan(COLUMNS, as_of=as_of).to_arrow(), self._kind)

    def rows_at(self, time: str) -> Rows:
        """Return the rows after the operations that completed up to a time."""
        rows = self.states[0]
        for effect in self._effects:
            rows = effect.change(rows) if effect.time <= time else rows
        return rows

    def note(self, operation: Operation | None, path: str, data: bytes) -> None:
        """Take note of a file that the process of an operation put.

        Raises:
            AssertionError: the table does not hold what it should hold now.
        """
        instant = self._instant_of(path)
        if instant is None:
            return
        if instant.state is State.REQUESTED and operation is not None:
            self._owners[_owned(instant)] = operation
            operation.instants.append(instant.requested)
        if instant.action is Action.RESTORE:
            self._note_restore(instant, data)
        elif instant.is_write:
            if instant.requested in self._undone:
                known = self._table().timeline.write_at(instant.requested)
                assert known is None, f"{path} is back, which a restore had undone, and counts"
            elif instant.requested not in self._times:
                self._times[instant.requested] = time_of(instant)
                self._complete(instant, data)
        elif instant.is_completed and instant.action is Action.SAVEPOINT:
            self._saved[instant.requested] = self.rows_at(self._times[instant.requested])
        elif instant.is_completed and instant.action is Action.CLEAN:
            self.check_saved(f"after the clean {instant.requested}")

    def note_removal(self, path: str) -> None:
        """Take note of a file that is gone: restores undo one write after the other.

        Raises:
            AssertionError: the table does not hold what it should hold now.
        """
        instant = self._instant_of(path)
        if instant is None:
            return
        if instant.action is Action.SAVEPOINT:
            self._saved.pop(instant.requested, None)
        elif instant.action is Action.RESTORE and instant.state is State.REQUESTED:
            self._restores.pop(instant.requested, None)
        elif instant.is_write and instant.requested in self._planned_to_undo():
            self._undone.add(instant.requested)
            kept = [each for each in self._effects if each.requested != instant.requested]
            if len(kept) < len(self._effects):
                self._effects = kept
                self.states.append(self.rows_at(NEVER))
            with suppress(FilesCleanedError):  # on the way to a savepoint, where the files were cleaned
                self.check(f"after {instant.requested} was undone")

    def may_undo(self, requested: str) -> bool:
        """Return whether a write is complete, and one that a restore is to undo."""
        return requested in self._times and requested in self._planned_to_undo()

    def _instant_of(self, path: str) -> Instant | None:
        folder, _, name = path.rpartition("/")
        return parse_instant(name, self._layout) if folder == self._folder else None

    def _planned_to_undo(self) -> set[str]:
        return {requested for plan in self._restores.values() for requested, _ in plan.instants}

    def _note_restore(self, restore: Instant, data: bytes) -> None:
        if restore.state is State.REQUESTED:
            self._restores[restore.requested] = decode_restore_plan(data)
        plan = self._restores.get(restore.requested)
        if not restore.is_completed or plan is None:
            return
        until = self._times[plan.savepoint or ""]
        late = [each.requested for each in self._effects if each.time > until]
        assert not late, f"after the restore to {plan.savepoint} there are {late}"
        undone = [each for each, _ in plan.instants if each in self._undone]
        early = [each for each in undone if self._times[each] <= until]
        assert not early, f"the restore to {plan.savepoint} undid {early}"
        self.check(f"after the restore {restore.requested}")

    def _complete(self, instant: Instant, data: bytes) -> None:
        requested = instant.requested
        if decode_commit(data).operation in SERVICES:
            self.check(f"after the service {requested}")
            return
        owner = self._owners[_owned(instant)]
        name_of = self._kind.name_of
        before = [set(map(name_of, rows)) for rows in self.states[owner.began :]]
        late = {
            at
            for at in self.look()
            if name_of(at) in owner.missed and any(name_of(at) not in names for names in before)
        }

        def change(rows: Rows) -> Rows:
            return owner.apply(rows) | {at: value for at, value in rows.items() if at in late}

        self._effects.append(_Effect(requested, self._times[requested], change))
        self.states.append(self._effects[-1].change(self.states[-1]))
        owner.effects.append(self.now)
        self.check(f"after {requested}, {owner.name}")

    def check_saved(self, where: str) -> None:
        """Make sure that the savepoints hold what the table held then."""
        for requested, expected in self._saved.items():
            held = self.look(requested)
            assert held == expected, f"{where}, savepoint {requested}: {_difference(held, expected)}"

    def check(self, where: str) -> None:
        """Make sure that the table holds the newest state."""
        held = self.look()
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
            may_have = operation.was_disturbed and not isinstance(operation.error, LostRaceError)
            assert may_have or not effects, f"{text}, and took effect"

    def judge_reading(self, found: Rows, began: int) -> None:
        """Check rows that a reader found, who began at a state."""
        assert found in self.states[began:], f"a reader found {found}, none of {self.states[began:]}"


def _owned(instant: Instant) -> tuple[str, Action]:
    """Return what tells two instants apart whose writers lost the lock and chose the same time."""
    return instant.requested, instant.action.completed_action


def rows_of(found: pa.Table, kind: Kind) -> Rows:
    """Return rows by key; a key that comes twice is an error."""
    rows = found.to_pylist()
    by_key = {(row["city"], row["id"]): row["value"] for row in rows}
    assert len(set(map(kind.name_of, by_key))) == len(rows), f"a key comes twice: {sorted(map(str, rows))}"
    return by_key


def _difference(held: Rows, expected: Rows) -> str:
    changed = {
        at: (held.get(at), expected.get(at))
        for at in sorted({*held, *expected})
        if held.get(at) != expected.get(at)
    }
    return f"(found, expected) by row: {changed}"
