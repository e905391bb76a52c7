"""Small files that drawstring and real Hudi fill in turns, and files that were appended or sorted."""

from __future__ import annotations

from pathlib import Path

import drawstring
from tests.support.histories import Case, History, create, row, table_of
from tests.support.interop import all_cases_8_long, assert_both_read, hudi_writes
from tests.support.referee import Referee


def adds(history: History, verb: str, first: int, count: int, **options: str) -> None:
    """Add new records by a verb of drawstring."""
    rows = [row(number, 100) for number in range(first, first + count)]
    getattr(history.table, verb)(table_of(rows), options={**history.case.write_options, **options})
    history.model.upsert(rows)


def file_groups(history: History) -> int:
    return len(drawstring.open(history.path).inspect.files())


@all_cases_8_long
def test_both_fill_small_files_in_turns(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    adds(history, "bulk_insert", 0, 30, **{"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    before = file_groups(history)
    adds(history, "upsert", 30, 10)
    adds(history, "insert", 40, 10)
    assert file_groups(history) == before
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 300) for number in range(45, 55)])
    assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    adds(history, "append", 60, 5)
    history.upsert([row(number, 400) for number in range(0, 70, 7)])
    assert_both_read(referee, history)

    hudi_writes(referee, history, "delete", [row(number, 500) for number in (0, 30, 47, 62)])
    assert_both_read(referee, history)
