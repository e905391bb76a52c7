"""hudi-rs reads tables that were cleaned, archived and taken back to a savepoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories import UNTENDED, Case, create, plain, row, table_of
from tests.hudi_rs.test_agree import read_with_hudi_rs

SHORT = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.compact.inline.max.delta.commits": "1",
}
CASES = [
    Case(6, "COPY_ON_WRITE"),
    Case(9, "COPY_ON_WRITE"),
    Case(6, "MERGE_ON_READ", "avro"),
    Case(8, "MERGE_ON_READ", "avro"),
]
cases = pytest.mark.parametrize("case", CASES, ids=str)


@cases
def test_a_table_that_was_cleaned_and_archived(tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)
    for number in range(1, 13):
        rows = [row(key, 100 * number) for key in range(number % 3, 12, 2)]
        history.table.upsert(table_of(rows), **history.case.write_options, **SHORT)
        history.model.upsert(rows)
        if case.is_mor and number % 4 == 0:
            history.table.compact(**SHORT)
    assert len(history.table.timeline.writes()) <= 6
    assert plain(read_with_hudi_rs(history.path)) == history.model.sorted()


@cases
def test_a_table_that_was_taken_back_to_a_savepoint(tmp_path: Path, case: Case) -> None:
    history = create(str(tmp_path / "rides"), case)

    def upsert(number: int) -> None:
        rows = [row(key, 100 * number) for key in range(number % 3, 12, 2)]
        history.table.upsert(table_of(rows), **history.case.write_options, **UNTENDED)
        history.model.upsert(rows)

    upsert(1)
    upsert(2)
    saved, kept = history.table.savepoint(), dict(history.model.rows)
    upsert(3)
    if case.is_mor:
        history.table.compact(**UNTENDED)
    upsert(4)
    assert history.table.restore(saved)
    history.model.rows = kept
    assert plain(read_with_hudi_rs(history.path)) == history.model.sorted()
    upsert(5)
    assert plain(read_with_hudi_rs(history.path)) == history.model.sorted()
