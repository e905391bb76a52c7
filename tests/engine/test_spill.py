"""Tables that spill to disk come back as they went in, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from drawstring.engine.spill import SpillingTables

TABLES = [
    pa.table({"id": [1, 2]}),
    pa.table({"id": [3]}),
    pa.table({"id": [4], "note": ["n"]}),
    pa.table({"id": [5]}),
]


@pytest.mark.parametrize("limit", [0, 20, 1 << 20])
def test_tables_come_back_in_order_with_their_own_columns(limit: int, tmp_path: Path) -> None:
    held = SpillingTables(limit, str(tmp_path))
    for each in TABLES:
        held.add(each)
    assert bool(list(tmp_path.rglob("*.arrow"))) == (limit < 1 << 20)
    found = list(held.drain())
    assert [row for batch in found for row in batch.to_pylist()] == [
        row for each in TABLES for row in each.to_pylist()
    ]
    assert not list(tmp_path.rglob("*.arrow"))
    del held
    assert not list(tmp_path.iterdir())


def test_tables_that_nobody_reads_leave_no_file(tmp_path: Path) -> None:
    held = SpillingTables(0, str(tmp_path))
    held.add(TABLES[0])
    rows = held.drain()
    next(rows)
    del rows, held
    assert not list(tmp_path.iterdir())
