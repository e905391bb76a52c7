"""drawstring and real Apache Hudi write to one table in turns; both always read the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from tests.support.histories import Case, History, Model, row, table_of, write
from tests.support.interop import all_cases, assert_both_read, hudi_options, hudi_writes
from tests.support.referee import Referee

METADATA = {"hoodie.metadata.enable": "true"}


@all_cases
def test_hudi_goes_on_with_a_table_of_drawstring(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)

    hudi_writes(referee, history, "upsert", [row(number, 600) for number in range(30, 60)], **METADATA)
    assert_both_read(referee, history)

    hudi_writes(referee, history, "delete", [row(number, 700) for number in (30, 31, 55)], **METADATA)
    assert_both_read(referee, history)

    if case.is_mor:
        every_log = {"hoodie.compact.inline.max.delta.commits": "1", **METADATA}
        assert referee.compact(history.path, {**hudi_options(case), **every_log})
        assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    history.upsert([row(number, 800) for number in (0, 31, 59, 70)] + [row(4, 1)])
    assert_both_read(referee, history)

    if case.is_mor:
        assert history.table.services.compact()
        assert_both_read(referee, history)


@pytest.mark.parametrize(
    "metadata_table",
    [
        pytest.param("true", id="metadata"),
        pytest.param("false", id="no-metadata", marks=pytest.mark.long),
    ],
)
@all_cases
def test_drawstring_goes_on_with_a_table_of_hudi(
    referee: Referee, tmp_path: Path, case: Case, metadata_table: str
) -> None:
    path = str(tmp_path / "rides")
    metadata = {"hoodie.metadata.enable": metadata_table}
    model = Model(case.ordering)
    first = [row(number, 100) for number in range(20)]
    referee.write(path, table_of(first), {**hudi_options(case), **metadata})
    model.upsert(first)

    history = History(drawstring.open(path), path, case, model)
    history.upsert([row(number, 200) for number in range(15, 25)] + [row(0, 5)])
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 300) for number in range(18, 28)], **metadata)
    assert_both_read(referee, history)

    history.table = drawstring.open(path)
    history.delete([row(number, 400) for number in (0, 18, 27)])
    if case.is_mor:
        assert history.table.services.compact()
    assert_both_read(referee, history)
