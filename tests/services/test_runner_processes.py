"""Compactions run by processes of their own: writers go on, a killed one is followed at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.errors import ConflictError
from tests.support.compaction import MERGED, logged
from tests.support.faults import leftovers, orphans
from tests.support.rows import held, rides
from tests.support.service_process import runner
from tests.support.tables import logs

IN_THE_MIDDLE = 6
"""Changes after which the first base file is under way, and the table lock is free."""


def test_a_write_goes_on_beside_a_process_that_compacts_and_a_second_one_is_turned_away(
    tmp_path: Path,
) -> None:
    table = logged(path=tmp_path / "rides")
    instant = table.services.schedule_compaction()
    assert instant is not None
    with runner(table.uri, instant, IN_THE_MIDDLE) as other:
        assert other.says().startswith(("oslo/", "rome/"))  # the larger slice comes first
        table.upsert(rides(("c", "rome", 9, 9.0)))
        with pytest.raises(ConflictError, match="Another process runs this compaction"):
            table.services.compact(instant=instant)
        other.go_on()
        assert other.says() == "done"
    expected = sorted([("c", "rome", 9, 9.0), *(row for row in MERGED if row[:2] != ("c", "rome"))])
    assert (held(table), logs(table), leftovers(table), orphans(table)) == (expected, 1, [], [])


def test_the_plan_of_a_killed_process_is_taken_over_at_once(tmp_path: Path) -> None:
    table = logged(path=tmp_path / "rides")
    instant = table.services.schedule_compaction()
    assert instant is not None
    with runner(table.uri, instant, IN_THE_MIDDLE + 2) as other:
        other.says()
        other.kill()
    assert held(table) == MERGED
    result = table.services.compact(instant=instant)
    assert result and result.instant == instant
    assert (held(table), logs(table), leftovers(table), orphans(table)) == (MERGED, 0, [], [])
