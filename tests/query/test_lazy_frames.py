"""Tables as polars lazy frames, DuckDB and DataFusion relations: what is pushed down, which rows come."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.query import lazy_tables
from drawstring.query.polars_scan import sql_of
from drawstring.table import Table

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
datafusion = pytest.importorskip("datafusion")

DAY = date(2024, 1, 1)
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ROWS = [
    {
        "id": number,
        "city": ["oslo", "lima", "it's", None][number % 4],
        "fare": [math.nan, None, 1.5, -2.0, math.inf, 2.0][number % 6],
        "day": DAY + timedelta(number % 3),
        "at": NOON + timedelta(hours=number),
        "ok": [True, False, None][number % 3],
    }
    for number in range(24)
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("fare", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("ok", pa.bool_()),
    ]
)


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    path = tmp_path_factory.mktemp("lazy") / "t"
    made = drawstring.create(path, SCHEMA, record_key="id", partition_by="day", table_type=request.param)
    made.insert(pa.Table.from_pylist([{**row, "fare": 7.0} for row in ROWS], SCHEMA))
    made.upsert(pa.Table.from_pylist(ROWS, SCHEMA))
    return made


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """What was scanned: columns and conditions."""
    asked: list[tuple[Any, Any]] = []
    own = lazy_tables.snapshot_scan

    def scan(facts: Any, *, columns: Any, where: Any, as_of: Any) -> Any:
        asked.append((columns, where))
        return own(facts, columns=columns, where=where, as_of=as_of)

    monkeypatch.setattr(lazy_tables, "snapshot_scan", scan)
    return asked


def conditions() -> list[Any]:
    c = pl.col
    return [
        c("id") > 5,
        (c("id") >= 5) & (c("city") == "it's"),
        (c("fare") > 1.5) | (c("ok") == False),  # noqa: E712 - a column, not a boolean
        c("fare") == math.nan,
        c("fare").is_nan() & (c("id") < 20),
        ~(c("id") == 3),
        c("city").is_null() & c("ok").is_not_null(),
        c("city").is_in(["oslo", "it's"]) & (c("id") != 4),
        c("day") == DAY,
        (c("day") > DAY) & (c("at") < NOON + timedelta(hours=9)),
        c("at").is_between(NOON, NOON + timedelta(hours=3)),
        c("city").str.starts_with("o") & (c("fare") < 100.25),
        c("id") % 2 == 0,
        c("fare") >= c("id"),
    ]


@pytest.mark.parametrize("number", range(len(conditions())))
def test_polars_gets_the_rows_that_it_finds_itself(table: Table, number: int) -> None:
    condition = conditions()[number]
    found = table.to_polars().filter(condition).select("id", "city").collect().sort("id")
    expected = pl.from_arrow(pa.Table.from_pylist(ROWS, SCHEMA)).filter(condition)
    assert found.rows() == expected.select("id", "city").sort("id").rows()
    assert found.height < len(ROWS)


def test_random_conditions_of_polars(table: Table) -> None:
    drawn = random.Random(5)
    every = pl.from_arrow(pa.Table.from_pylist(ROWS, SCHEMA))
    frame = table.to_polars()
    for _ in range(40):
        one, other, third = (drawn.choice(conditions()) for _ in range(3))
        condition = drawn.choice([one & other, one | other, (one | other) & third, ~(one & other)])
        found = frame.filter(condition).select("id").collect()
        assert sorted(found["id"]) == sorted(every.filter(condition)["id"]), str(condition)


def test_polars_pushes_columns_conditions_and_limits(table: Table, scans: list[tuple[Any, Any]]) -> None:
    frame = table.to_polars()
    scans.clear()
    rows = frame.filter((pl.col("day") == DAY) & pl.col("city").str.starts_with("o")).select("id").collect()
    assert rows.height == 2
    ((columns, where),) = scans
    assert set(columns) == {"id", "day", "city"}
    assert where == "(`day` = '2024-01-01')", "the part that SQL has a counterpart for"
    assert table.scan(where=where).explain().file_slices < table.scan().explain().file_slices
    assert frame.head(3).collect().height == 3
    assert frame.select(pl.len()).collect().item() == len(ROWS)


def test_what_has_no_counterpart_is_left_to_polars() -> None:
    c = pl.col
    for left in (c("a").abs() > 1, c("a") == "back\\slash", c("a").is_in([]), c("a`b") == 1, c("a") > 1e300):
        assert sql_of(left) is None
    assert sql_of((c("a") == 1) & (c("b").abs() > 1)) == "(`a` = 1)"
    assert sql_of((c("a") == 1) | (c("b").abs() > 1)) is None


def test_duckdb_pushes_columns_and_conditions(table: Table, scans: list[tuple[Any, Any]]) -> None:
    rides = table.to_arrow_dataset()
    scans.clear()
    query = "select id from rides where day = DATE '2024-01-01' and id > 5 order by id"
    found = duckdb.sql(query).fetchall()
    assert found == [(row["id"],) for row in ROWS if row["day"] == DAY and row["id"] > 5]
    ((columns, where),) = scans
    assert "city" not in columns and isinstance(where, pc.Expression)
    assert table.scan(where=where).explain().file_slices < table.scan().explain().file_slices
    assert rides.count_rows() == duckdb.sql("select count(*) from rides").fetchall()[0][0] == len(ROWS)


@pytest.mark.parametrize(
    "condition",
    [
        "fare > 1.5",
        "fare = 'nan'::double",
        "city is null",
        "city in ('oslo', 'it''s')",
        "\"at\" > TIMESTAMPTZ '2024-01-01 14:00:00Z'",
        "ok",
    ],
)
def test_duckdb_gets_the_rows_that_it_finds_itself(table: Table, condition: str) -> None:
    rides, every = table.to_arrow_dataset(), pa.Table.from_pylist(ROWS, SCHEMA)
    found, expected = (
        duckdb.from_arrow(source).filter(condition).order("id").project("id").fetchall()
        for source in (rides, every)
    )
    assert found == expected and 0 < len(found) < len(ROWS)


def test_a_fragment_reads_what_its_scanner_is_asked_for(table: Table) -> None:
    rides = table.to_arrow_dataset()
    (fragment,) = rides.get_fragments(filter=pc.field("id") > 20)
    scanner = fragment.scanner(rides.schema, columns=["id"], filter=pc.field("id") > 20, batch_size=8192)
    assert scanner.projected_schema.names == ["id"]
    assert sorted(pa.Table.from_batches(scanner.to_batches())["id"].to_pylist()) == [21, 22, 23]


def test_datafusion_pushes_columns_and_conditions(table: Table, scans: list[tuple[Any, Any]]) -> None:
    context = datafusion.SessionContext()
    context.register_dataset("rides", table.to_arrow_dataset())
    scans.clear()
    query = "select id from rides where day = DATE '2024-01-01' and id > 5 order by id"
    found = context.sql(query).to_pydict()["id"]
    assert found == [row["id"] for row in ROWS if row["day"] == DAY and row["id"] > 5]
    columns, where = scans[-1]
    assert "city" not in columns and isinstance(where, pc.Expression)
    assert context.sql("select count(*) as n from rides").to_pydict() == {"n": [len(ROWS)]}


def test_a_frame_and_a_dataset_stay_as_they_were_made(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    first = table.upsert(pa.Table.from_pylist(ROWS[:3], SCHEMA))
    frame, dataset = table.to_polars(), table.to_arrow_dataset()
    table.upsert(pa.Table.from_pylist(ROWS[3:], SCHEMA))
    assert frame.collect().height == dataset.count_rows() == dataset.to_table().num_rows == 3
    assert table.to_polars(as_of=first.instant).collect().height == 3
    assert table.to_arrow_dataset().head(5, columns=["id"]).num_rows == 5
