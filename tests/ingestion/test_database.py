"""Tables of a database, and results of queries, become tables."""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import types
from sqlalchemy.dialects import mysql

import drawstring
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.plugins.jdbc import address_of, arrow_type, text_of_value, value_of_text

JDBC = "hoodie.streamer.jdbc."
WRITE = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "upsert",
}
CREATE = """CREATE TABLE rides (
    id INTEGER PRIMARY KEY, city VARCHAR(20), fare NUMERIC(8, 2), far DOUBLE, paid BOOLEAN, day DATE,
    at TIMESTAMP, picture BLOB, seen BIGINT)"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "source.db"
    execute(path, CREATE)
    return path


def execute(path: Path, statement: str, *rows: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        if rows:
            connection.executemany(statement, rows)
        else:
            connection.execute(statement)


def add(path: Path, *rows: tuple[int, int | None]) -> None:
    """Add rides, each with its id and when it was seen."""
    values = [
        (at, "oslo", 9.5, 1.25, True, "2024-01-05", "2024-01-05 10:00:00.500000", b"\x01", seen)
        for at, seen in rows
    ]
    execute(path, f"INSERT OR REPLACE INTO rides VALUES ({', '.join('?' * 9)})", *values)


def ingest(path: Path, options: Mapping[str, Any] = {}, source: str = "jdbc", **more: Any) -> Any:
    given = {
        f"{JDBC}url": f"jdbc:sqlite:{path}",
        f"{JDBC}table.name": "rides",
        f"{JDBC}table.incr.column.name": "seen",
        f"{JDBC}incr.pull": "true",
        **WRITE,
        **options,
    }
    return drawstring.ingest(path.parent / "t", source, options=given, **more)


def content(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    found = drawstring.open(path.parent / "t").scan(columns=list(columns)).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_rows_follow_by_the_last_value_of_a_column(database: Path) -> None:
    add(database, (1, 10), (2, 20), (3, None))
    first = ingest(database)
    assert (first.rows, first.checkpoint) == (3, "20")
    assert not ingest(database)
    add(database, (1, 30), (4, 25))
    again = ingest(database, source="org.apache.hudi.utilities.sources.JdbcSource")
    assert (again.rows, again.checkpoint) == (2, "30")
    assert content(database, "id", "seen") == [(1, 30), (2, 20), (3, None), (4, 25)]


def test_batches_end_after_all_rows_of_a_value(database: Path) -> None:
    add(database, *((number, number // 3) for number in range(9)))
    told: list[Any] = []
    result = ingest(database, source_limit=2, on_progress=told.append)
    assert [(each.size, each.left) for each in told] == [(3, 6), (3, 3), (3, 0)]
    assert (result.batches, result.rows, result.checkpoint) == (3, 9, "2")
    assert len(content(database, "id")) == 9


def test_columns_have_the_types_of_the_database(database: Path) -> None:
    add(database, (1, 10))
    ingest(database, {f"{JDBC}table.incr.column.name": "AT"})
    table = drawstring.open(database.parent / "t")
    assert table.schema.types == [
        pa.int64(), pa.string(), pa.decimal128(8, 2), pa.float64(), pa.bool_(), pa.date32(),
        pa.timestamp("us", "UTC"), pa.binary(), pa.int64(),
    ]  # fmt: skip
    (row,) = table.scan(columns=table.schema.names).to_arrow().to_pylist()
    assert tuple(row.values()) == (
        1, "oslo", Decimal("9.50"), 1.25, True, date(2024, 1, 5),
        datetime(2024, 1, 5, 10, 0, 0, 500000, UTC), b"\x01", 10,
    )  # fmt: skip
    execute(database, "UPDATE rides SET at = '2024-01-05 10:00:01.000000', seen = 11")
    assert ingest(database, {f"{JDBC}table.incr.column.name": "AT"}).checkpoint == "2024-01-05 10:00:01"
    assert content(database, "id", "seen") == [(1, 11)]


def test_without_a_column_every_run_has_all_rows(database: Path) -> None:
    whole = {f"{JDBC}incr.pull": "false"}
    add(database, (1, 10), (2, 20))
    assert ingest(database, whole).rows == 2
    execute(database, "UPDATE rides SET city = 'rome' WHERE id = 2")
    assert ingest(database, whole).rows == 2
    assert content(database, "id", "city") == [(1, "oslo"), (2, "rome")]
    assert ingest(database).checkpoint == "20"
    assert ingest(database, whole).checkpoint == "20"
    assert not ingest(database)


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"url": ""}, InvalidError, r"Set hoodie\.streamer\.jdbc\.url"),
        (
            {"table.incr.column.name": ""},
            InvalidError,
            r"Set hoodie\.streamer\.jdbc\.table\.incr\.column\.name",
        ),
        ({"table.name": "gone"}, InvalidError, "The database has no table gone"),
        ({"table.incr.column.name": "gone"}, InvalidError, "has no column gone. It has id, city"),
        ({"url": "jdbc:db2://host/x"}, InvalidError, "database that this release does not know"),
        ({"url": "jdbc:sqlite:/nowhere/x.db"}, InvalidError, r"There is no SQLite database /nowhere/x\.db"),
        ({"url": "jdbc:postgresql://h:port/x"}, InvalidError, r"jdbc:postgresql:\.\.\. cannot be parsed"),
        ({"url": "nonsense"}, InvalidError, r"hoodie\.streamer\.jdbc\.url as in"),
        ({"password.file": "/nowhere/password"}, InvalidError, "There is no file /nowhere/password"),
    ],
)
def test_what_cannot_be_ingested_says_why(
    database: Path, options: Mapping[str, str], error: type[Exception], why: str
) -> None:
    add(database, (1, 10))
    with pytest.raises(error, match=why):
        ingest(database, {f"{JDBC}{key}": text for key, text in options.items()})
    assert not (database.parent / "t").exists()


def test_a_database_that_does_not_answer_is_said(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UnavailableError, match=r"does not answer, or broke off: .*locked\. Try again"):
            ingest(database, {f"{JDBC}url": f"jdbc:sqlite:{database}?timeout=0.1"})


def test_a_parameter_that_the_driver_does_not_take_is_said(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = r"does not take the address jdbc:sqlite:\.\.\. of table rides: .*Correct the parameters"
    with pytest.raises(InvalidError, match=why):
        ingest(database, {f"{JDBC}url": f"jdbc:sqlite:{database}?timeout=soon"})

    def connect(*_: Any, **__: Any) -> None:
        raise TypeError("connect() got an unexpected keyword argument 'color'")

    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect)
    with pytest.raises(InvalidError, match=why):
        ingest(database)


def test_a_mistyped_file_is_not_created(database: Path) -> None:
    typo = database.with_name("typo.db")
    with pytest.raises(InvalidError, match="There is no SQLite database"):
        ingest(database, {f"{JDBC}url": f"jdbc:sqlite:{typo}"})
    assert not typo.exists()


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:oracle:thin:scott/tiger@h:1521:x",
        "jdbc:postgresql://scott:tiger@h:port/x",
        "jdbc:db2://h/x?password=tiger",
        "scott/tiger@h",
    ],
)
def test_errors_do_not_show_passwords(database: Path, url: str) -> None:
    with pytest.raises(InvalidError) as error:
        ingest(database, {f"{JDBC}url": url})
    assert "tiger" not in "".join(traceback.format_exception(error.value, limit=0))


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        ("city = x'01'", "Column city of table rides has values that are no string: it has 1 bytes"),
        ("day = 'notadate'", "Column day of table rides has values that are no date32.*notadate"),
        ("at = 1700000000", "Column at of table rides has values that are no timestamp"),
        ("far = 'long'", "Column far of table rides has values that are no double"),
    ],
)
def test_values_that_are_not_of_the_type_of_their_column_are_refused(
    database: Path, assignment: str, why: str
) -> None:
    add(database, (1, 10), (2, 20))
    execute(database, f"UPDATE rides SET {assignment} WHERE id = 2")
    with pytest.raises(InvalidError, match=why):
        ingest(database)


def test_a_column_to_follow_with_wrong_values_is_refused(database: Path) -> None:
    add(database, (1, 10))
    execute(database, "UPDATE rides SET day = 'notadate'")
    with pytest.raises(InvalidError, match="Column day of table rides has values that are no date32"):
        ingest(database, {f"{JDBC}table.incr.column.name": "day"})


def test_a_checkpoint_of_another_source_is_said(database: Path) -> None:
    add(database, (1, 10))
    with pytest.raises(InvalidError, match="'topic,0:5' is no value of column seen"):
        ingest(database, checkpoint="topic,0:5")


@pytest.mark.parametrize(
    ("jdbc", "address"),
    [
        ("jdbc:sqlite:/a/b.db", "sqlite:////a/b.db"),
        ("jdbc:postgresql://host:5432/db?ssl=true", "postgresql+psycopg://host:5432/db?ssl=true"),
        ("jdbc:mysql://host/db", "mysql+pymysql://host/db"),
        ("mssql+pyodbc://host/db", "mssql+pyodbc://host/db"),
    ],
)
def test_addresses_of_jdbc_are_those_of_sqlalchemy(jdbc: str, address: str) -> None:
    assert address_of(jdbc) == address


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (7, "7", pa.int64()),
        (Decimal("1E+2"), "100", pa.decimal128(5, 0)),
        (date(2024, 1, 5), "2024-01-05", pa.date32()),
        (datetime(2024, 1, 5, 10), "2024-01-05 10:00:00", pa.timestamp("us", "UTC")),
        (datetime(2024, 1, 5, 10, 0, 0, 120000), "2024-01-05 10:00:00.12", pa.timestamp("us", "UTC")),
        (datetime(2024, 1, 5, 10, 0, 0, 100), "2024-01-05 10:00:00.0001", pa.timestamp("us", "UTC")),
        ("a", "a", pa.string()),
        (1.5, "1.5", pa.float64()),
    ],
)
def test_checkpoints_are_texts_as_spark_casts_values(value: Any, text: str, kind: pa.DataType) -> None:
    assert text_of_value(value) == text
    assert value_of_text(text, kind) == value


def test_times_with_a_zone_are_utc_in_checkpoints() -> None:
    noon = datetime(2024, 1, 5, 12, 0, 0, 500000, timezone(timedelta(hours=2)))
    assert text_of_value(noon) == "2024-01-05 10:00:00.5"
    assert value_of_text("2024-01-05 10:00:00.5", pa.timestamp("us", "UTC"), has_zone=True) == noon


def test_types_of_other_databases_are_known() -> None:
    kinds = types.INTEGER(), types.BIGINT(), types.NUMERIC(), types.REAL(), types.TIME(), types.JSON()
    found = [arrow_type(kind, is_sqlite=False) for kind in kinds]
    assert found == [
        pa.int32(), pa.int64(), pa.decimal128(38, 18), pa.float64(), pa.time64("us"), pa.string(),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        (mysql.INTEGER(unsigned=True), pa.int64()),
        (mysql.INTEGER(), pa.int32()),
        (mysql.MEDIUMINT(unsigned=True), pa.int32()),
        (mysql.BIGINT(unsigned=True), pa.decimal128(20, 0)),
        (mysql.BIT(1), pa.bool_()),
        (mysql.BIT(8), pa.int64()),
        (types.VARBINARY(16), pa.binary()),
        (mysql.LONGBLOB(), pa.binary()),
        (types.NUMERIC(65, 10), pa.decimal128(38, 10)),
        (types.NUMERIC(60, 50), pa.decimal128(38, 38)),
        (types.NUMERIC(5, -2), pa.decimal128(7, 0)),
        (types.NUMERIC(2, 5), pa.decimal128(5, 5)),
    ],
)
def test_types_without_their_like_become_the_next_larger(kind: Any, arrow: pa.DataType) -> None:
    assert arrow_type(kind, is_sqlite=False) == arrow


def test_numbers_with_more_digits_than_a_table_holds_are_refused(database: Path) -> None:
    execute(database, "CREATE TABLE sums (id INTEGER PRIMARY KEY, seen BIGINT, total NUMERIC(60, 2))")
    execute(database, "INSERT INTO sums VALUES (1, 1, 12.5), (2, 2, 1e50)")
    with pytest.raises(InvalidError, match="Column total of table sums has values that are no decimal128"):
        ingest(database, {f"{JDBC}table.name": "sums"})


def query(tmp_path: Path, text: str, **options: str) -> Any:
    given = {"hoodie.streamer.source.sql.sql.query": text, **WRITE, **options}
    return drawstring.ingest(tmp_path / "t", "SqlSource", options=given)


def test_a_query_over_files_and_tables_is_ingested_once_a_run(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "city": [7, 8]}), tmp_path / "rides.parquet")
    cities = drawstring.create(
        tmp_path / "cities", pa.schema({"city": pa.int64(), "name": pa.string()}), record_key="city"
    )
    cities.upsert(pa.table({"city": [7, 8], "name": ["oslo", "rome"]}))
    text = (
        f"SELECT r.id, c.name FROM parquet.`{tmp_path}/rides.parquet` r"
        f" JOIN hudi.`{tmp_path}/cities` AS c ON r.city = c.city"
    )
    assert query(tmp_path, text).rows == 2
    cities.upsert(pa.table({"city": [8], "name": ["lima"]}))
    assert query(tmp_path, text).rows == 2
    found = drawstring.open(tmp_path / "t").scan(columns=["id", "name"]).to_arrow().sort_by("id")
    assert found.to_pylist() == [{"id": 1, "name": "oslo"}, {"id": 2, "name": "lima"}]


def test_the_time_of_a_query_is_its_checkpoint_where_that_is_asked_for(tmp_path: Path) -> None:
    text = "SELECT 1 AS id, current_date() AS day"
    assert query(tmp_path, text).checkpoint == ""
    emitted = query(tmp_path, text, **{"hoodie.streamer.source.sql.checkpoint.emit": "true"})
    assert emitted.checkpoint.isdigit() and len(emitted.checkpoint) == 13


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", r"Set hoodie\.streamer\.source\.sql\.sql\.query"),
        ("SELECT * FROM nowhere", r"The query .* failed.*[^.]\. Correct it\."),
        ("SELECT * FROM parquet.`/nowhere/x`", r"The query .* failed.*[^.]\. Correct it\."),
        ("CREATE TABLE x AS SELECT 1 AS id", "is no query, and was not run"),
        ("DROP TABLE x", "is no query, and was not run"),
        ("SELECT 1 AS id; SELECT 2 AS id", "is one query, not 2"),
        ("SELEC 1", "The query 'SELEC 1' failed"),
    ],
)
def test_a_wrong_query_is_said(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        query(tmp_path, text)
