"""Eight writers in a loop on one table: none of them waits for more than some commits of each of the others.

Waits are counted in commits of others rather than in seconds, so that a slow machine makes no difference.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from drawstring.base.clock import SeededIds
from drawstring.engine.local import LocalEngine
from drawstring.model.instant import time_of
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.txn.table_context import TableContext
from tests.support.processes import running
from tests.support.rows import rides
from tests.support.simulation.writers.scheduler import Process, Scheduler, SimulatedClock
from tests.support.simulation.writers.storage import SharedStorage, Trace, Weather
from tests.support.store_server import StoreServer
from tests.support.tables import COW, MOR, create, new_address

WRITERS = 8
TURNS = 12
"""Commits of each writer, if all are as quick."""

ROUNDS_MAX = 6
"""So many commits of each of the others one may wait for; who starves waits for all of them."""

PLACES: dict[str, Callable[[int], str]] = {"apart": "city{}".format, "together": "rome".format}
"""Where a writer writes: to a partition of its own, or to the one file group of all."""


def longest_waits(commits: Sequence[int]) -> list[int]:
    """Return for each writer the most commits of others before, between and after its own.

    Args:
        commits: who made each commit, in order.
    """
    waits = []
    for writer in range(WRITERS):
        own = [-1, *(at for at, each in enumerate(commits) if each == writer), len(commits)]
        waits.append(max(later - at - 1 for at, later in itertools.pairwise(own)))
    return waits


def assert_fair(commits: Sequence[int]) -> None:
    """Make sure that nobody waited for longer than the others need for some commits each."""
    assert len(commits) >= WRITERS * TURNS
    waits = longest_waits(commits)
    assert max(waits) <= ROUNDS_MAX * (WRITERS - 1), f"most commits of others meanwhile, by writer: {waits}"


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_nobody_starves_at_the_lease_of_an_object_store(
    table_type: str, seed: int, place: Callable[[int], str]
) -> None:
    scheduler = Scheduler(seed)
    shared = MemoryStorage(new_address(), SimulatedClock(scheduler))
    create(path=shared.spec.uri, table_type=table_type)
    commits: list[int] = []

    def writer(number: int) -> None:
        process = Process(f"writer {number}", SeededIds(100 * seed + number))
        storage = SharedStorage(
            shared, scheduler, process, Weather(slow=0), Trace(), lambda *_: None, lambda _: None
        )
        clock = SimulatedClock(scheduler, process)
        table = Table(TableContext(storage, LocalEngine(threads=1), clock, process.ids))

        def loop() -> None:
            turn = 0
            while len(commits) < WRITERS * TURNS:
                turn += 1
                table.upsert(rides((f"k{number}", place(number), turn, 1.0)))
                commits.append(number)

        scheduler.spawn(process, loop)

    for number in range(WRITERS):
        writer(number)
    scheduler.run()
    assert_fair(commits)


def in_processes(table: Table, options: dict[str, str], place: Callable[[int], str], stop: Path) -> list[int]:
    """Let a process for each writer loop until all made some commits; return who made each, in order."""
    makers: dict[str, int] = {}

    def read(number: int) -> None:
        while instant := writers[number].says():
            makers[instant] = number
            if len(makers) >= WRITERS * TURNS:
                stop.touch()

    with ExitStack() as stack:
        words = (table.uri, json.dumps(options), str(stop))
        each = [(*words, f"k{number}", place(number)) for number in range(WRITERS)]
        writers = [stack.enter_context(running("tests.write.looping_writer", *own)) for own in each]
        for writer in writers:
            assert writer.says() == "ready"
        for writer in writers:
            writer.go_on()
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(read, range(WRITERS)))
    in_order = sorted(table.timeline.writes(), key=time_of)
    return [makers[write.requested] for write in in_order]


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_nobody_starves_at_the_lock_of_local_files(place: Callable[[int], str], tmp_path: Path) -> None:
    table = create(path=tmp_path / "t", table_type=MOR)
    assert_fair(in_processes(table, {}, place, tmp_path / "stop"))


@pytest.mark.long
def test_nobody_starves_in_an_object_store(store: StoreServer, tmp_path: Path) -> None:
    path = store.address(f"fair/{tmp_path.name}")
    table = create(path=path, storage_options=store.options, table_type=MOR)
    assert_fair(in_processes(table, store.options, PLACES["apart"], tmp_path / "stop"))
