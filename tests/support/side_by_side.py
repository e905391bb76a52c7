"""What real Hudi and drawstring write to one table at the same time.

Every write of a key has a time of its own, and the newest one wins, so that the order of the writes does not
matter.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from drawstring.model.instant import PLANNED_ACTIONS
from drawstring.model.result import Severity
from tests.support.histories import Case, History, Row, create, row, table_of
from tests.support.interop import assert_both_read, hudi_options
from tests.support.referee import Referee, RefereeError
from tests.support.zookeeper import ZookeeperServer

KEYS = 60
NEW_KEYS = 3
"""Each write of either engine adds so many new keys."""

OURS, SHARED, THEIRS = range(3)
"""Keys of one remainder by 3 are in one partition: one of each engine, and one that both write to."""

ATTEMPTS = 20
WAIT_SECONDS = 120
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "fare"}
COW9, MOR9 = Case(9, "COPY_ON_WRITE"), Case(9, "MERGE_ON_READ")
COMPACTING = {"hoodie.compact.inline.max.delta.commits": "1"}
LOST = ("HoodieWriteConflictException", "HoodieClusteringUpdateException", "clustering file group")
"""What Hudi says of a write that lost against another one, or that meets a pending clustering."""

OPTIMISTIC, NON_BLOCKING = "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"
WITHOUT_SERVICES = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
"""Only one engine runs a kind of service: both take a plan that they find for one of a process that died."""

LAZY = {
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.metadata.enable": "false",
    **WITHOUT_SERVICES,
}


def batch(number: int, own: int, *, shared: bool) -> list[Row]:
    """Return rows of an engine: updates in its own partition, new keys, and updates of shared keys.

    Args:
        number: of the batch; with the engine it gives the time of the rows.
        own: the engine's remainder.
        shared: whether to update shared keys.
    """
    ts = 1000 + 2 * number + own // 2
    at = 3 * (7 * number % (KEYS // 3))
    new = [KEYS + 3 * (number * NEW_KEYS + each) + own for each in range(NEW_KEYS)]
    numbers = [at + own, *new, *([(at + 3 * each + SHARED) % KEYS for each in range(5)] if shared else ())]
    return [row(each, ts) for each in numbers]


def hudi_writes(referee: Referee, history: History, rows: list[Row], options: dict[str, str]) -> int:
    """Let Hudi upsert rows, again as long as it loses against another writer; return how often it lost."""
    for lost in range(ATTEMPTS):
        try:
            referee.write(history.path, table_of(rows), {**hudi_options(history.case), **options})
        except RefereeError as error:
            if not any(each in str(error) for each in LOST):
                raise
        else:
            return lost
    raise AssertionError(f"Hudi lost {ATTEMPTS} times")


def by_time(history: History, batches: list[list[Row]]) -> None:
    """Let the model take batches of both engines, whose order does not matter."""
    for rows in sorted(batches, key=lambda rows: int(rows[0]["ts"])):
        history.model.upsert(rows)


def begun(path: str, case: Case, server: ZookeeperServer) -> tuple[History, dict[str, str]]:
    """Write a table; return it with the options that both engines need beside each other."""
    history = create(path, case)
    options = {
        **server.options(f"/{uuid.uuid4()}/rides"),
        "hoodie.write.concurrency.mode": OPTIMISTIC,
        "hoodie.write.lock.wait_time_ms": "60000",
        "hoodie.metadata.enable": "false",
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
    bad = [each for each in history.table.services.validate().findings if each.severity is Severity.ERROR]
    assert bad == []
