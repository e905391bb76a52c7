"""Services that one of real Hudi and drawstring plans and runs, while the other one writes the same table.

Clusterings by drawstring while Hudi writes are not among them: a write of Hudi 1.2.0 did not notice one that
was planned and completed while it ran, so its rows were in file groups that the clustering had replaced.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.model.instant import PLANNED_ACTIONS, Instant
from drawstring.model.validation import Severity
from tests.support.histories import Case, History, Row, create, row, table_of
from tests.support.interop import assert_both_read, hudi_options
from tests.support.referee import Referee
from tests.support.side_by_side import (
    COMPACTING,
    KEYS,
    LAZY,
    OPTIMISTIC,
    OURS,
    THEIRS,
    WITHOUT_SERVICES,
    batch,
    by_time,
    hudi_writes,
)
from tests.support.zookeeper import ZookeeperServer, zookeeper

ROUNDS = 2
WAIT_SECONDS = 120
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "fare"}
PLANNING = {"compaction": COMPACTING, "clustering": SORTED}
COW9, MOR9, MOR8 = Case(9, "COPY_ON_WRITE"), Case(9, "MERGE_ON_READ"), Case(8, "MERGE_ON_READ")


CLUSTERINGS = [
    pytest.param(COW9, "clustering", id="clustering"),
    pytest.param(MOR9, "clustering", id="clustering-mor", marks=pytest.mark.long),
]


def compactions(*marks: pytest.MarkDecorator) -> list[Any]:
    """Return the kinds of tables to compact."""
    return [
        pytest.param(MOR9, "compaction", id="compaction", marks=marks),
        pytest.param(MOR8, "compaction", id="compaction-8", marks=pytest.mark.long),
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[ZookeeperServer]:
    with zookeeper() as server:
        yield server


def begun(path: str, case: Case, server: ZookeeperServer) -> tuple[History, dict[str, str]]:
    """Write a table; return it with the options that both engines need beside each other."""
    history = create(path, case)
    options = {
        **server.options(f"/{uuid.uuid4()}/rides"),
        "hoodie.write.concurrency.mode": OPTIMISTIC,
        "hoodie.write.lock.wait_time_ms": "60000",
    }
    first = [row(key, 500) for key in range(KEYS)]
    history.table.upsert(table_of(first), options={**options, **case.write_options, **WITHOUT_SERVICES})
    history.model.upsert(first)
    return history, options


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for what the other engine is going to do."""
    end = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < end, "the other engine does not get there"
        time.sleep(0.02)


@dataclass
class Beside:
    """What drawstring does in a thread while Hudi is at work.

    Attributes:
        act: does it once, or until it is told that Hudi is done.
        error: what ended it early.
    """

    act: Callable[[Beside], None]
    is_over: bool = False
    error: BaseException | None = None
    thread: threading.Thread = field(init=False)

    def __enter__(self) -> Beside:
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.is_over = True
        self.thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            self.act(self)
        except BaseException as error:  # raised in the thread of the test
            self.error = error


def assert_all_is_well(referee: Referee, history: History, batches: list[list[Row]]) -> None:
    by_time(history, batches)
    assert_both_read(referee, history)
    left = history.table.timeline.pending_of(*PLANNED_ACTIONS)
    assert left == (), "writes of Hudi that lost stay for a clean, and nothing else"
    bad = [each for each in history.table.validate().findings if each.severity is Severity.ERROR]
    assert bad == []


@pytest.mark.parametrize(("case", "service"), [*CLUSTERINGS, *compactions(pytest.mark.long)])
def test_hudi_plans_while_drawstring_writes(
    referee: Referee, server: ZookeeperServer, tmp_path: Path, case: Case, service: str
) -> None:
    history, options = begun(str(tmp_path / "rides"), case, server)
    asked = {**hudi_options(case), **options, **LAZY, **PLANNING[service]}
    ours = {**options, **case.write_options, **WITHOUT_SERVICES}
    written: list[list[Row]] = []

    def write(beside: Beside) -> None:
        table = drawstring.open(history.path)
        while not beside.is_over:
            rows = batch(len(written), OURS, shared=True)
            table.upsert(table_of(rows), options=ours)
            written.append(rows)

    def wait_for_a_write(beside: Beside) -> None:
        count = len(written)
        wait_until(lambda: len(written) > count or beside.error)

    with Beside(write) as beside:
        for _ in range(ROUNDS):
            wait_for_a_write(beside)
            planned = referee.service(history.path, service, asked, run=False)
            assert planned is not None
            if service == "compaction":  # a write to file groups in a clustering waits for it
                wait_for_a_write(beside)
            assert referee.service(history.path, service, asked, instant=planned) == planned
            assert history.table.timeline.write_at(planned)
        wait_for_a_write(beside)
    assert len(written) > ROUNDS
    assert_all_is_well(referee, history, written)


@pytest.mark.parametrize(("case", "service"), compactions())
def test_drawstring_plans_while_hudi_writes(
    referee: Referee, server: ZookeeperServer, tmp_path: Path, case: Case, service: str
) -> None:
    history, options = begun(str(tmp_path / "rides"), case, server)
    theirs = {**options, **LAZY}
    ours = {**options, **WITHOUT_SERVICES, **PLANNING[service]}
    completed: list[str] = []
    known: set[Instant] = set()

    def plan_and_run(beside: Beside) -> None:
        table = drawstring.open(history.path)
        wait_until(lambda: {*table.timeline.pending_writes()} - known or beside.is_over)
        assert {*table.timeline.pending_writes()} - known, "Hudi's write is over"
        planned = table.schedule_compaction(options=ours)
        done = planned and table.compact(instant=planned, options=ours)
        assert done
        completed.append(done.instant)

    first = batch(0, THEIRS, shared=True)
    hudi_writes(referee, history, first, theirs)
    batches = [first]
    for number in range(1, 1 + ROUNDS):
        batches.append(batch(number, THEIRS, shared=True))
        known = {*history.table.timeline.pending_writes()}  # writes that lost stay there
        with Beside(plan_and_run):
            hudi_writes(referee, history, batches[-1], theirs)
    assert len(completed) == ROUNDS
    assert_all_is_well(referee, history, batches)
