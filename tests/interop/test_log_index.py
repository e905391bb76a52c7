"""Tables whose log files carry an index of their keys: real Hudi reads, upserts and compacts them."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.formats.log_index import read_log_index
from drawstring.testing import context_of
from tests.support.histories import Case, History, row, write
from tests.support.interop import assert_both_read, hudi_options, hudi_writes
from tests.support.referee import Referee

INDEX = {"hoodie.index.log.enable": "true", "hoodie.index.log.clique.files": "2"}
CASES = [
    pytest.param(Case(9, "MERGE_ON_READ"), id="v9-parquet"),
    pytest.param(Case(6, "MERGE_ON_READ", "avro"), id="v6-avro"),
    pytest.param(Case(8, "MERGE_ON_READ", "avro", None), id="v8-avro", marks=pytest.mark.long),
    pytest.param(Case(6, "MERGE_ON_READ", ordering=None), id="v6-parquet", marks=pytest.mark.long),
]


def indexed(path: str, case: Case) -> History:
    """Write a history whose log files hold updates, deletes, and deletes alone."""
    history = write(path, case, properties=INDEX)
    history.delete([row(number, 500) for number in range(20, 23)])
    history.table = drawstring.open(path)
    return history


def told(table: drawstring.Table) -> list[bool]:
    """Tell of each log file whether it has an index."""
    logs = [log for each in table.inspect.files() for log in each.logs]
    return [read_log_index(context_of(table).storage, log.status.path) is not None for log in logs]


@pytest.mark.parametrize("case", CASES)
def test_hudi_goes_on_with_a_table_whose_logs_carry_an_index(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = indexed(str(tmp_path / "rides"), case)
    assert all(told(history.table))
    assert len(told(history.table)) >= 9
    assert_both_read(referee, history)

    rows = [row(number, 600) for number in (*range(5, 20), 60, 61)]
    hudi_writes(referee, history, "upsert", rows, **{"hoodie.compact.inline": "false"})
    assert_both_read(referee, history)
    history.table = drawstring.open(history.path)
    assert not all(told(history.table))

    history.upsert([row(number, 700) for number in (0, 7, 41, 60, 80)])
    assert_both_read(referee, history)

    every_log = {"hoodie.compact.inline.max.delta.commits": "1"}
    assert referee.compact(history.path, {**hudi_options(case), **every_log})
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 750) for number in (*range(40, 46), 50, 80, 95)])
    assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    history.upsert([row(number, 800) for number in (1, 7, 80, 90)])
    assert history.table.services.compact()
    hudi_writes(referee, history, "upsert", [row(number, 900) for number in (1, 80, 90, 95)])
    assert_both_read(referee, history)
