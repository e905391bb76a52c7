"""Lives of tables on local files in which the power is cut during every step, see `power_cuts`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from drawstring.base.errors import DrawstringError
from drawstring.storage.local import FileSystem, LocalStorage
from tests.support.faulty_storage import FaultyStorage
from tests.support.simulation.checks import ALLOWED, MARKERS, check_queries, check_recovery
from tests.support.simulation.life import LIFE
from tests.support.simulation.power_cuts import CUTS, Disk, Event, Recorder, moments, random_cuts
from tests.support.simulation.steps import take
from tests.support.simulation.world import Kind, Step, World

CUT_LIFE = (
    *LIFE,
    Step("change_version", (8,)),
    Step("upsert", (1, 2)),
    Step("change_version", (6,)),
    Step("archive"),
    Step("upsert", (2, 3)),
    Step("change_version", (9,)),
    Step("upsert", (3, 5)),
)
"""Every step there is, and every layout of the timeline made of the other."""

AFTER_CUTS = (*ALLOWED, "kept", MARKERS)
"""What a cut may leave: where it takes the markers of a dead write, the files are kept aside
(`txn.rollback.lost_commits`); and markers that were deleted may come back: they change no completed write."""

WRITTEN_BACK = 5
"""Steps after which the system writes back what nobody flushed."""

_NEVER = 1 << 60


class Lost(AssertionError):
    """A power cut took something back, or left a table that does not go on by itself."""


@dataclass(frozen=True)
class Effort:
    """How many cuts are tried.

    Attributes:
        every: whether the power is cut after every call; else right before flushes, and after the last call.
        seeds: how many cuts of each moment keep what chance says.
        cuts: how many of a step are tried, drawn from all; those that leave the same are tried once.
        first: the first step that is cut.
    """

    every: bool = False
    seeds: int = 1
    cuts: int = 3
    first: int = 0


QUICK = Effort()
THOROUGH = Effort(every=True, seeds=4, cuts=150)


def live_through_cuts(
    kind: Kind,
    steps: Sequence[Step],
    folder: Path,
    effort: Effort = QUICK,
    recorder: Callable[[str], Recorder] = Recorder,
) -> int:
    """Take steps; on copies the power is cut during each of them.

    Args:
        kind: of table.
        steps: what to do, in order.
        folder: room for the table and its copies.
        effort: how many cuts are tried.
        recorder: makes what the table's files are changed by.

    Returns:
        How many cuts were tried.

    Raises:
        Lost: what the table held before and after a step is not what it holds after a cut.
    """
    root = folder / "table"
    files = recorder(str(root))
    storage = FaultyStorage(LocalStorage(root, files=files), _NEVER)
    world = World.create(kind, storage.spec.uri)
    disk, tried = Disk(str(root)), 0
    _replay(disk, files.events)
    for number, step in enumerate(steps):
        begun, before = len(files.events), replace(world, rows=dict(world.rows), moments=list(world.moments))
        _take(world, step)
        if number < effort.first:
            _replay(disk, files.events[begun:])
        else:
            for kept in _cuts(disk, files.events[begun:], effort, number):
                disk.write(kept.there, folder / "copy")
                where = f"{kind}, step {number}: {step}, {kept.how}"
                _check(_Cut(before, world, step, kept.is_over, where), folder / "copy")
                tried += 1
        if number % WRITTEN_BACK == WRITTEN_BACK - 1:
            disk.write_back()
    return tried


def _take(world: World, step: Step) -> None:
    if step.name == "change_version":
        table = world.table()
        change = table.versions.upgrade if step.keys[0] > table.config.version else table.versions.downgrade
        change(step.keys[0], options=dict(world.kind.options))
        world.kind = replace(world.kind, version=step.keys[0])
    else:
        take(world, step)


def _replay(disk: Disk, events: Sequence[Event]) -> None:
    for event in events:
        disk.play(event)


def _cuts(disk: Disk, events: Sequence[Event], effort: Effort, seed: int) -> Iterator[_Kept]:
    """Play the calls of a step, and yield some of the states that a cut may leave, each once."""
    at = moments(events, every=effort.every)
    every = [(number, cut) for number in at for cut in (*CUTS, *random_cuts(number, effort.seeds))]
    drawn = random.Random(seed).sample(range(len(every)), min(effort.cuts, len(every)))
    seen: set[int] = set()
    done = 0
    for number, cut in (every[each] for each in sorted(drawn)):
        _replay(disk, events[done:number])
        done = number
        there, is_over = disk.after(cut), number == len(events)
        found = hash((is_over, *((path, *what) for path, what in there.items())))
        if found not in seen:
            seen.add(found)
            yield _Kept(is_over, f"power cut after {number} calls: {cut}", there)
    _replay(disk, events[done:])


@dataclass(frozen=True)
class _Kept:
    """What is left after a cut: whether the step was over, where the cut was, files and folders."""

    is_over: bool
    how: str
    there: dict[str, tuple[int, bytes]]


@dataclass(frozen=True)
class _Cut:
    before: World
    after: World
    step: Step
    is_over: bool
    where: str


def _check(cut: _Cut, copy: Path) -> None:
    """Open a table after a cut, and go on with it."""
    world = replace(
        cut.after,
        storage=LocalStorage(copy, files=FileSystem(sync=False)),
        moments=list(cut.before.moments),
    )
    try:
        world.settle()
        known = [cut.after.rows]
        if not cut.is_over:
            known.append(cut.before.rows)
            # A restore takes one write back after the other, the newest first.
            known += [each.rows for each in cut.before.moments] if cut.step.name == "restore" else []
        if world.rows not in known:
            raise Lost(f"{cut.where}: {world.rows}, not {known}")
        _check_savepoint(cut, world)
        check_recovery(world, cut.after, cut.where, AFTER_CUTS)
        check_queries(world, cut.where)
    except (AssertionError, DrawstringError, OSError) as error:
        raise Lost(f"{cut.where}: {error!r}") from error


def _check_savepoint(cut: _Cut, world: World) -> None:
    allowed = [cut.after.saved] if cut.is_over else [cut.after.saved, cut.before.saved]
    if world.saved not in allowed:
        raise Lost(f"{cut.where}: the savepoint is {world.saved}, not one of {allowed}")
