"""Scans as data frames of other libraries."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.query import scan
from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import create

pytest.importorskip("polars")
pytest.importorskip("pandas")


@pytest.fixture
def table() -> Table:
    made = create()
    made.upsert(rides(("a", "rome", 1, 1.5), ("b", "oslo", 2, None)))
    return made


def test_a_polars_frame_has_the_rows_and_types_of_the_table(table: Table) -> None:
    import polars

    frame = table.scan(["id", "ts", "fare"]).to_polars().sort("id")
    assert frame.schema == {"id": polars.String, "ts": polars.Int64, "fare": polars.Float64}
    assert frame.rows() == [("a", 1, 1.5), ("b", 2, None)]
    nothing = table.scan(["id"], where="ts > 9").to_polars()
    assert (nothing.columns, nothing.height) == (["id"], 0)


def test_a_polars_frame_knows_nested_columns_and_times_in_utc(table: Table) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    more = rides(("c", "bern", 3, 3.0))
    more = more.append_column("at", pa.array([now], pa.timestamp("us", "UTC")))
    more = more.append_column("stops", pa.array([[{"name": "x", "tip": 1}]]))
    table.upsert(more)
    (found,) = table.scan(["at", "stops"], where="id = 'c'").to_polars().to_dicts()
    assert found == {"at": now, "stops": [{"name": "x", "tip": 1}]}


def test_a_pandas_frame_has_the_rows_of_the_table(table: Table) -> None:
    frame = table.scan(["id", "ts"]).to_pandas().sort_values("id")
    assert frame.to_dict("list") == {"id": ["a", "b"], "ts": [1, 2]}


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_a_package_that_is_missing_is_named(
    table: Table, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "find_spec", lambda name: None)
    with pytest.raises(InvalidError, match=rf"pip install 'drawstring\[{package}\]'"):
        getattr(table.scan(), f"to_{package}")()
