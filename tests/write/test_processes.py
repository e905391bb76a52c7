"""Writers in several processes: killed ones, waiting ones, and two at once."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from drawstring.base.errors import ConflictError
from drawstring.model.instant import Action
from drawstring.table import Table
from tests.support.faults import leftovers, orphans
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, create
from tests.support.writer_process import writer

SINGLE = "SINGLE_WRITER"
NO_WAIT = {"hoodie.write.lock.wait_time_ms": "50"}
OLD = [("a", "oslo", 1, 1.0), ("a", "rome", 1, 1.0)]
OWN = ("own", "rome", 1, 1.0)


def table_at(path: Path, table_type: str = COW, version: int = 9) -> Table:
    table = create(path=path, table_type=table_type, version=version)
    table.upsert(rides(*OLD))
    return table


def rollbacks(table: Table) -> list[Any]:
    return [each for each in table.timeline.instants if each.action is Action.ROLLBACK and each.is_completed]


@pytest.mark.parametrize(
    ("table_type", "version", "step", "place"),
    [
        (COW, 9, 2, r"\.hoodie/timeline/\d+\.inflight"),
        (COW, 9, 9, r"\.hoodie/\.locks/\d+\.claim"),
        (COW, 6, 5, r"(\.hoodie/\.temp/\d+/)?(oslo|rome)/.*"),
        (MOR, 6, 5, r".*\.log\.\d.*"),
    ],
)
def test_a_writer_killed_in_the_middle_leaves_the_table_as_it_was(
    tmp_path: Path, table_type: str, version: int, step: int, place: str
) -> None:
    table = table_at(tmp_path, table_type, version)
    with writer(str(tmp_path), "a", 2, step) as other:
        assert re.fullmatch(place, other.says())
        assert held(table) == OLD
        other.kill()
    assert held(table) == OLD
    table.upsert(rides(OWN), options=NO_WAIT)
    assert held(table) == [*OLD, OWN]
    assert (len(rollbacks(table)), orphans(table), leftovers(table)) == (1, [], [])


def test_a_writer_killed_when_it_had_decided_to_commit_is_completed_by_the_next(tmp_path: Path) -> None:
    table = table_at(tmp_path, COW, 9)
    with writer(str(tmp_path), "a", 2, 17) as other:
        assert re.fullmatch(r"\.hoodie/timeline/\d+_\d+\.commit", other.says())
        other.kill()
    assert held(table) == OLD
    table.upsert(rides(OWN), options=NO_WAIT)
    assert ("a", "oslo", 2, 2.0) in held(table) and OWN in held(table)
    assert (rollbacks(table), orphans(table), leftovers(table)) == ([], [], [])


def test_a_second_writer_goes_on_beside_one_that_stands_still(tmp_path: Path) -> None:
    table = table_at(tmp_path, MOR)
    with writer(str(tmp_path), "a", 2, 5) as other:
        other.says()
        table.upsert(rides(("own", "bern", 1, 1.0)), options=NO_WAIT)
        table.services.clean(options=NO_WAIT)
        assert (len(table.timeline.pending_writes()), rollbacks(table)) == (1, [])
        other.go_on()
        assert other.says() == "done"
    new = [("a", city, 2, 2.0) for city in ("oslo", "rome")]
    assert held(table) == sorted([*new, ("own", "bern", 1, 1.0)])
    assert (rollbacks(table), orphans(table)) == ([], [])


def test_a_second_single_writer_gives_up_or_waits_and_nothing_is_lost(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    with writer(str(tmp_path), "b", 2, 5, SINGLE) as other:
        other.says()
        with pytest.raises(
            ConflictError, match=r"Another writer holds the table \(process \d+ on .*wait_time_ms"
        ) as caught:
            table.upsert(rides(OWN), options=NO_WAIT)
        assert caught.value.table == str(tmp_path)
        with pytest.raises(ConflictError):
            table.services.clean(options=NO_WAIT)
        assert held(table) == OLD
        with writer(str(tmp_path), "c", 3, mode=SINGLE) as third:
            other.go_on()
            assert (other.says(), third.says()) == ("done", "done")
    table.upsert(rides(OWN), options=NO_WAIT)
    new = [(key, city, ts, float(ts)) for key, ts in (("b", 2), ("c", 3)) for city in ("oslo", "rome")]
    assert held(table) == sorted([*OLD, *new, OWN])
    assert (rollbacks(table), orphans(table)) == ([], [])


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    table = table_at(tmp_path, MOR)
    with ExitStack() as stack:
        others = [stack.enter_context(writer(str(tmp_path), f"k{n}", n)) for n in range(2)]
        for turn in range(5):
            table.upsert(rides(("own", "rome", turn, 1.0)))
        assert [other.says() for other in others] == ["done"] * 2
    assert {row[0] for row in held(table)} == {"a", "own", "k0", "k1"}
    assert [each.action for each in table.timeline.writes()].count(Action.DELTA_COMMIT) == 8
