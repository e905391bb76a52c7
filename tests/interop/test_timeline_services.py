"""Tables that drawstring cleaned, archived and restored go on in real Hudi, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.model.instant import Action
from tests.support.histories import Case, create, row
from tests.support.interop import assert_both_read, hudi_options, hudi_writes
from tests.support.referee import Referee
from tests.support.short_histories import CASES, SHORT, upsert
from tests.support.tables import WITHOUT_SERVICES

cases = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[] if case.version == 9 else [pytest.mark.long])
        for case in (*CASES, Case(9, "MERGE_ON_READ"))
    ],
)


@cases
def test_hudi_goes_on_with_a_table_that_was_cleaned_and_archived(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = create(str(tmp_path / "rides"), case)
    for number in range(1, 10):
        upsert(history, number, **SHORT)
        if case.is_mor and number % 3 == 0:
            history.table.services.compact(options=SHORT)
    assert len(history.table.timeline.writes()) < 9
    assert_both_read(referee, history)
    times = [each.requested for each in history.table.timeline.writes()]
    ours = history.table.incremental(times[-3], columns=["id", "ts"]).to_arrow().num_rows
    assert ours > 0

    tending = {**SHORT, "hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}
    for number in range(10, 13):
        hudi_writes(referee, history, "upsert", [row(key, 100 * number) for key in range(5)], **tending)
    assert_both_read(referee, history)
    referee.service(history.path, "clean", {**hudi_options(case), **SHORT})
    referee.service(history.path, "archive", {**hudi_options(case), **SHORT})
    assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    for number in range(13, 17):
        upsert(history, number, **SHORT)
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(key, 2000) for key in range(7)], **tending)
    assert_both_read(referee, history)


@pytest.mark.long
@pytest.mark.parametrize("case", [CASES[0], CASES[1], CASES[-1]], ids=str)
def test_hudi_passes_over_holds(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    upsert(history, 1)
    held = history.table.holds.add("reader")
    tending = {**SHORT, "hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}
    for number in range(2, 8):
        hudi_writes(referee, history, "upsert", [row(key, 100 * number) for key in range(5)], **tending)
    referee.service(history.path, "clean", {**hudi_options(case), **SHORT})
    referee.service(history.path, "archive", {**hudi_options(case), **SHORT})
    assert_both_read(referee, history)
    history.table = drawstring.open(history.path)
    assert history.table.holds.list() == [held]
    upsert(history, 9, **SHORT)
    assert_both_read(referee, history)


@cases
def test_hudi_goes_on_with_a_table_that_was_restored(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    upsert(history, 1, **WITHOUT_SERVICES)
    upsert(history, 2, **WITHOUT_SERVICES)
    saved = history.table.savepoints.create(comments="by drawstring")
    then = history.model.sorted()
    kept = {key: dict(value) for key, value in history.model.rows.items()}
    upsert(history, 3, **WITHOUT_SERVICES)
    if case.is_mor:
        history.table.services.compact(options=WITHOUT_SERVICES)
    upsert(history, 4, **WITHOUT_SERVICES)
    hudi_writes(referee, history, "upsert", [row(key, 2000) for key in range(7)])
    assert_both_read(referee, history)
    assert drawstring.open(history.path).savepoints.restore(saved)
    history.model.rows = kept
    assert history.model.sorted() == then
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(key, 3000) for key in range(3, 9)])
    assert_both_read(referee, history)
    if case.is_mor:
        every_log = {"hoodie.compact.inline.max.delta.commits": "1"}
        assert referee.compact(history.path, {**hudi_options(case), **every_log})
        assert_both_read(referee, history)


@cases
def test_hudi_restores_a_savepoint_of_drawstring(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    upsert(history, 1, **WITHOUT_SERVICES)
    upsert(history, 2, **WITHOUT_SERVICES)
    saved = history.table.savepoints.create()
    kept = {key: dict(value) for key, value in history.model.rows.items()}
    upsert(history, 3, **WITHOUT_SERVICES)
    upsert(history, 4, **WITHOUT_SERVICES)
    # In version 6 a restore by Hudi 1.2.0 fails to add column statistics to a metadata table that has none.
    options = {**hudi_options(case), "hoodie.metadata.index.column.stats.enable": "false"}
    referee.service(history.path, "restore", options, instant=saved)
    history.model.rows = kept
    assert_both_read(referee, history)
    history.table = drawstring.open(history.path)
    upsert(history, 5)
    assert_both_read(referee, history)


@cases
def test_drawstring_restores_a_savepoint_of_hudi(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    upsert(history, 1, **WITHOUT_SERVICES)
    hudi_writes(referee, history, "upsert", [row(key, 150) for key in range(4)])
    saved = drawstring.open(history.path).timeline.writes()[-1].requested
    referee.service(history.path, "savepoint", hudi_options(case), instant=saved)
    kept = {key: dict(value) for key, value in history.model.rows.items()}
    hudi_writes(referee, history, "upsert", [row(key, 500) for key in range(2, 8)])
    hudi_writes(referee, history, "delete", [row(1, 600)])
    history.table = drawstring.open(history.path)
    assert history.table.savepoints.restore(saved)
    history.model.rows = kept
    assert_both_read(referee, history)
    history.table.savepoints.delete(saved)
    for number in range(6, 12):
        upsert(history, number, **SHORT)
    assert any(each.action is Action.CLEAN for each in history.table.timeline.instants)
    assert_both_read(referee, history)
