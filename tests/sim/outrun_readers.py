"""Readers of a simulated table that others write to, clean and archive while they read.

What the others do is recorded on a copy, change by change, and played back between the storage calls of a
reader: from a call on that is drawn, all at once or a few before each call. Whatever comes in between, a
reader finds rows that the table had, or says that it was outrun, or that what it wants was cleaned away.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.query.scan import Scan
from drawstring.table import Table
from tests.support.concurrent_changes import Race, Raced, Recorder
from tests.support.simulation.steps import take
from tests.support.simulation.world import Kind, Moment, Rows, Step, World
from tests.support.storages import files_of, stored

ALL_AT_ONCE = 1 << 30
PACES = (ALL_AT_ONCE, ALL_AT_ONCE, 7, 1)
RACES = 4
"""Races of each reader before a step."""

AHEAD = 3
"""Steps that others take while a reader reads, before they clean and archive."""

TENDING = (Step("clean"), Step("archive"))
COLUMNS = ["id", "city", "value"]
GONE = ("cleaned away", "archived")
Found = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Reader:
    """What somebody reads, and what may come of it."""

    name: str
    read: Callable[[Table], Found]
    allowed: Callable[[Found], bool]
    may_be_gone: bool = False


def live_with_readers(kind: Kind, steps: Sequence[Step], seed: int) -> int:
    """Take steps; before each of them readers race with it and the steps after it.

    Args:
        kind: of table.
        steps: what to do, in order.
        seed: draws when others come in between.

    Returns:
        How many readings there were.
    """
    draw, world, count = random.Random(seed), World.create(kind), 0
    for number, step in enumerate(steps):
        if world.moments:
            others = (*steps[number : number + AHEAD], *TENDING)
            count += race(world, others, draw, f"{kind}, seed {seed}, step {number}: {step}")
        take(world, step)
    return count


def race(world: World, others: Sequence[Step], draw: random.Random, where: str) -> int:
    """Let readers of a table race with steps of others; the table stays as it is.

    Args:
        world: the table.
        others: the steps.
        draw: when they come in between.
        where: told in what fails.
    """
    files, then = files_of(world.storage), world.copy()
    recorder, states = Recorder(then.storage), [dict(world.rows)]
    for step in others:
        # A restore takes one write back after the other.
        states += [each.rows for each in then.moments] if step.name == "restore" else []
        take(then, step, recorder)
        recorder.note()
        states.append(dict(then.rows))
    count = 0
    is_undone = any(step.name == "restore" for step in others)
    for reader in _readers(world, [_found(rows) for rows in states], is_undone):
        calls = _read(reader, Raced(stored(files), (), Race(0, 0)), where)
        for _ in range(RACES):
            chosen = Race(draw.randrange(calls + 1), draw.choice(PACES))
            _read(reader, Raced(stored(files), recorder.noted, chosen), f"{where}, {reader.name}, {chosen}")
            count += 1
    return count


def _read(reader: Reader, storage: Raced, where: str) -> int:
    """Read; return how many storage calls it took."""
    table = World(Kind(9, "COPY_ON_WRITE", "SIMPLE"), storage).table()
    try:
        found = reader.read(table)
    except UnavailableError:
        return storage.calls
    except InvalidError as error:
        assert reader.may_be_gone and any(text in str(error) for text in GONE), f"{where}: {error}"
        return storage.calls
    assert reader.allowed(found), f"{where}: {found}"
    return storage.calls


def _readers(world: World, states: list[Found], is_undone: bool) -> Iterator[Reader]:
    """Yield a reader of the newest snapshot, of the newest instants, and of what came between two of them.

    Args:
        world: the table.
        states: rows that it has while others write to it.
        is_undone: whether commits are undone meanwhile, which nobody finds afterwards.
    """
    yield Reader("snapshot", lambda table: _rows(table.scan(COLUMNS)), lambda found: found in states)
    for moment in world.moments[-2:]:
        yield _as_of(moment, states if is_undone else [])
    start, end = world.moments[max(0, len(world.moments) - 3)], world.moments[-1]

    def increment(table: Table) -> Found:
        return _rows(table.incremental(start.completed, end.completed, columns=COLUMNS, full_scan=False))

    try:
        whole = increment(world.table())
    except (InvalidError, UnavailableError):
        return
    yield Reader("increment", increment, lambda found: is_undone or found == whole, may_be_gone=True)


def _as_of(moment: Moment, others: list[Found]) -> Reader:
    """Return the reader of an instant; other rows may be right, too."""
    rows = [_found(moment.rows), *others]

    def read(table: Table) -> Found:
        return _rows(table.scan(COLUMNS, as_of=moment.instant))

    return Reader(f"as of {moment.instant}", read, lambda found: found in rows, may_be_gone=True)


def _rows(scan: Scan) -> Found:
    rows = scan.to_arrow().to_pylist()
    return tuple(sorted((row["city"], row["id"], row["value"]) for row in rows))


def _found(rows: Rows) -> Found:
    return tuple(sorted((city, key, value) for (city, key), value in rows.items()))
