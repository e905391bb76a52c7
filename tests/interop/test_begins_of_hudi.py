"""Real Hudi has put its instant on the timeline and is about to read the timeline while drawstring commits.

Hudi does not notice what completes right then with a later time, and writes base files that count as older:
its rows were lost, also when it was another Hudi that committed. drawstring waits with its commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError
from drawstring.config.options.write_options import options_of
from drawstring.model.instant import State
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.transaction import lock_table
from tests.support.histories import Case, History, Row, row, table_of
from tests.support.referee import Referee
from tests.support.side_by_side import (
    COW9,
    KEYS,
    LAZY,
    MOR9,
    SHARED,
    SORTED,
    THEIRS,
    WITHOUT_SERVICES,
    Beside,
    assert_all_is_well,
    batch,
    begun,
    hudi_writes,
    wait_until,
)
from tests.support.zookeeper import ZookeeperServer, zookeeper

TRIES = 10
STEP_SECONDS = 0.002
OURS = [row(key, 600) for key in range(SHARED, KEYS, 3)]


@pytest.fixture(scope="module")
def server() -> Iterator[ZookeeperServer]:
    with zookeeper() as server:
        yield server


class NotingClock:
    """Tells when somebody begins to wait."""

    def __init__(self, inner: Clock) -> None:
        self._inner, self.waits = inner, threading.Event()

    def now_ms(self) -> int:
        return self._inner.now_ms()

    def sleep(self, seconds: float) -> None:
        self.waits.set()
        self._inner.sleep(seconds)


@dataclass
class Race:
    """A write of Hudi, and what drawstring commits when Hudi is about to read the timeline.

    Attributes:
        referee: real Hudi.
        history: the table.
        write: lets Hudi write.
        commit: lets drawstring commit something to the table.
        options: with the lock of both.
    """

    referee: Referee
    history: History
    write: Callable[[], object]
    commit: Callable[[Table], object]
    options: dict[str, str]

    def run(self) -> bool:
        """Let both work; return False if Hudi had read the timeline already, and drawstring was left out."""
        known = self._begun()
        with Beside(lambda _: self.write()):
            wait_until(lambda: self._begun() - known)
            is_near: bool | None = False
            with ExitStack() as drawstring_at_work:
                while is_near is False:
                    time.sleep(STEP_SECONDS)
                    with self.referee.standing_still():
                        is_near = self._is_about_to_read(known)
                        if is_near:
                            drawstring_at_work.push(self._at_work())
        return bool(is_near)

    def _begun(self) -> set[str]:
        return {each.requested for each in self.history.table.timeline.pending_writes()}

    def _is_about_to_read(self, known: set[str]) -> bool | None:
        """Return whether Hudi has an instant, and not the lock any more; None if it is past that."""
        pending = self.history.table.timeline.pending_writes()
        if all(each.requested in known or each.state is not State.REQUESTED for each in pending):
            return None
        locking = options_of("upsert", {**self.options, "hoodie.write.lock.wait_time_ms": "0"}).locking
        with suppress(ConflictError), lock_table(context_of(self.history.table), locking):
            return True
        return False

    def _at_work(self) -> Beside:
        """Return drawstring at work: done by now, or waiting for Hudi."""
        context = context_of(self.history.table)
        clock = NotingClock(context.clock)
        table = Table(replace(context, clock=clock))
        beside = Beside(lambda _: self.commit(table))
        beside.__enter__()
        wait_until(lambda: clock.waits.is_set() or not beside.thread.is_alive())
        return beside


def cluster(table: Table, options: dict[str, str]) -> None:
    with suppress(ConflictError):  # Hudi was faster
        table.services.cluster(options={**options, **SORTED})


def upsert(table: Table, options: dict[str, str]) -> None:
    table.upsert(table_of(OURS), options=options)


@pytest.mark.parametrize(
    ("case", "commit"),
    [
        pytest.param(COW9, cluster, id="cluster"),
        pytest.param(COW9, upsert, id="upsert"),
        pytest.param(MOR9, cluster, id="cluster-mor", marks=pytest.mark.long),
    ],
)
def test_hudi_loses_nothing_when_drawstring_commits_as_it_begins(
    referee: Referee,
    server: ZookeeperServer,
    tmp_path: Path,
    case: Case,
    commit: Callable[[Table, dict[str, str]], None],
) -> None:
    history, options = begun(str(tmp_path / "rides"), case, server)
    theirs, ours = {**options, **LAZY}, {**options, **case.write_options, **WITHOUT_SERVICES}
    batches = [batch(0, THEIRS, shared=True)]
    hudi_writes(referee, history, batches[0], theirs)
    for number in range(1, TRIES):
        rows = batch(number, THEIRS, shared=True)
        batches.append(rows)

        def write(rows: list[Row] = rows) -> None:
            hudi_writes(referee, history, rows, theirs)

        if Race(referee, history, write, lambda table: commit(table, ours), options).run():
            break
    else:
        pytest.fail("Hudi was always too fast")
    assert_all_is_well(referee, history, [*([OURS] if commit is upsert else []), *batches])
