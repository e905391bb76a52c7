"""Services that one of real Hudi and drawstring plans and runs, while the other one writes the same table.

Clusterings by drawstring while Hudi writes are in `test_begins_of_hudi`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.model.instant import Instant
from tests.support.histories import Case, Row, table_of
from tests.support.interop import hudi_options
from tests.support.referee import Referee
from tests.support.side_by_side import (
    COMPACTING,
    COW9,
    LAZY,
    MOR9,
    OURS,
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

ROUNDS = 2
PLANNING = {"compaction": COMPACTING, "clustering": SORTED}
MOR8 = Case(8, "MERGE_ON_READ")


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
        planned = table.services.schedule_compaction(options=ours)
        done = planned and table.services.compact(instant=planned, options=ours)
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
