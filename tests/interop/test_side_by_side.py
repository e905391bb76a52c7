"""Real Hudi and drawstring write one table at the same time; in the end it is the table of a model.

Every write of a key has a time of its own, and the newest one wins, so that the order of the writes does not
matter. `SIDE_BY_SIDE_WRITES` says how often Hudi writes; drawstring writes as long as Hudi is at work.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import drawstring
from drawstring.model.result import Severity
from tests.support.histories import Case, History, Row, create, row, table_of
from tests.support.interop import assert_both_read, hudi_options
from tests.support.referee import Referee
from tests.support.side_by_side import (
    COMPACTING,
    KEYS,
    LAZY,
    NON_BLOCKING,
    OPTIMISTIC,
    OURS,
    THEIRS,
    batch,
    by_time,
    hudi_writes,
)
from tests.support.zookeeper import ZookeeperServer, zookeeper

WRITES = int(os.environ.get("SIDE_BY_SIDE_WRITES", "4"))
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.fixture(scope="module")
def server() -> Iterator[ZookeeperServer]:
    with zookeeper() as server:
        yield server


@dataclass
class Ours:
    """drawstring's writer, in a thread, and its services.

    Attributes:
        history: the table, and the model of its rows.
        options: of all writes and services.
        leaves_turns: whether it writes to the shared partition once for each write of Hudi, whose writes take
            longer and would lose otherwise; else always.
        compacts: whether it compacts, rather than Hudi.
        turns: the writes of Hudi.
        is_over: whether Hudi is done.
        written: the batches that were acknowledged.
        error: what ended it early.
    """

    history: History
    options: dict[str, str]
    leaves_turns: bool
    compacts: bool
    turns: int = 0
    is_over: bool = False
    written: list[list[Row]] = field(default_factory=list)
    error: BaseException | None = None

    def run(self) -> None:
        table = drawstring.open(self.history.path)
        turns = -1
        try:
            while not self.is_over:
                number = len(self.written)
                is_turn = not self.leaves_turns or turns < self.turns
                turns = self.turns
                rows = batch(number, OURS, shared=is_turn)
                table.upsert(table_of(rows), options=self.options)
                self.written.append(rows)
                if number % 5 == 4:
                    self._look_after(table)
        except BaseException as error:  # looked at when the thread is over
            self.error = error

    def _look_after(self, table: drawstring.Table) -> None:
        if self.compacts:
            table.services.compact(options=self.options)
        table.services.clean(options=self.options)
        table.services.archive(options=self.options)


CASES = [
    (Case(9, "COPY_ON_WRITE"), OPTIMISTIC, {}, "nobody"),
    (Case(9, "MERGE_ON_READ"), OPTIMISTIC, {}, "ours"),
    (Case(9, "MERGE_ON_READ"), NON_BLOCKING, BUCKETS, "theirs"),
]


@pytest.mark.parametrize(("case", "mode", "index", "compactor"), CASES, ids=["cow", "mor", "non-blocking"])
def test_both_write_at_the_same_time(
    referee: Referee,
    server: ZookeeperServer,
    tmp_path: Path,
    case: Case,
    mode: str,
    index: dict[str, str],
    compactor: str,
) -> None:
    history = create(str(tmp_path / "rides"), case, properties=index)
    options = {
        **server.options(f"/{uuid.uuid4()}/rides"),
        "hoodie.write.concurrency.mode": mode,
        "hoodie.write.lock.wait_time_ms": "60000",
        "hoodie.metadata.enable": "false",
    }
    first = [row(key, 500) for key in range(KEYS)]
    history.table.upsert(table_of(first), options={**options, **case.write_options})
    history.model.upsert(first)
    theirs, lost, compactions = [], 0, 0
    inline = {"hoodie.compact.inline": str(compactor == "ours").lower()}
    ours = Ours(history, {**options, **case.write_options, **inline}, mode == OPTIMISTIC, compactor == "ours")
    thread = threading.Thread(target=ours.run)
    thread.start()
    try:
        for number in range(WRITES):
            theirs.append(batch(number, THEIRS, shared=True))
            lost += hudi_writes(referee, history, theirs[-1], {**options, **LAZY, **index})
            ours.turns += 1
            if compactor == "theirs" and number % 2:
                compactions += 1
                assert referee.compact(history.path, {**hudi_options(case), **options, **LAZY, **COMPACTING})
    finally:
        ours.is_over = True
        thread.join()
    if ours.error is not None:
        raise ours.error
    print(f"{len(theirs)} writes and {compactions} compactions of Hudi, which lost {lost} times;", end=" ")
    print(f"{len(ours.written)} writes of drawstring")
    assert len(ours.written) >= WRITES
    assert mode == OPTIMISTIC or not lost
    by_time(history, [*ours.written, *theirs])
    assert_both_read(referee, history)
    bad = [each for each in history.table.services.validate().findings if each.severity is Severity.ERROR]
    assert bad == []
