"""hudi-rs reads tables that were cleaned, archived and taken back to a savepoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.histories import Case, create, plain
from tests.support.hudi_rs import read_with_hudi_rs
from tests.support.short_histories import CASES, SHORT, upsert
from tests.support.tables import WITHOUT_SERVICES

cases = pytest.mark.parametrize("case", CASES, ids=str)


@cases
def test_a_table_that_was_cleaned_and_archived(tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    for number in range(1, 13):
        upsert(history, number, **SHORT)
        if case.is_mor and number % 4 == 0:
            history.table.services.compact(options=SHORT)
    assert len(history.table.timeline.writes()) <= 6
    assert plain(read_with_hudi_rs(history.path)) == history.model.sorted()


@cases
def test_a_table_that_was_taken_back_to_a_savepoint(tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    upsert(history, 1, **WITHOUT_SERVICES)
    upsert(history, 2, **WITHOUT_SERVICES)
    saved, kept = history.table.savepoints.create(), dict(history.model.rows)
    upsert(history, 3, **WITHOUT_SERVICES)
    if case.is_mor:
        history.table.services.compact(options=WITHOUT_SERVICES)
    upsert(history, 4, **WITHOUT_SERVICES)
    assert history.table.savepoints.restore(saved)
    history.model.rows = kept
    assert plain(read_with_hudi_rs(history.path)) == history.model.sorted()
    upsert(history, 5, **WITHOUT_SERVICES)
    assert plain(read_with_hudi_rs(history.path)) == history.model.sorted()
