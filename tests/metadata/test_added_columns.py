"""Columns that a table gets after its statistics: files of before lack them, and their statistics say so."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.schema.fields import META_COLUMNS
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.built_statistics import ENABLED, check, with_statistics
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.rows import rides
from tests.support.tables import COW, MOR, create

CONDITIONS = ("extra = 5", "extra is null", "extra = 5 and id = 3", "extra is null and id = 1", "extra > 9")


def widened(table: Table, keys: list[int], extra: list[int | None]) -> pa.Table:
    """Return rows with a column that the table did not have at first."""
    return History(table, "SIMPLE", 1).rows(keys, True).append_column("extra", pa.array(extra, pa.int64()))


def of_column(table: Table, column: str, partition: str = "column_stats") -> pa.Table:
    shown = table.inspect.metadata(partition)
    return shown.filter(pc.equal(shown["column"], column))


def assert_found(table: Table) -> None:
    """Check that skipping by statistics loses no row."""
    for condition in CONDITIONS:
        found = table.scan(where=condition).to_arrow()
        unskipped = Table(context_of(table)).scan().to_arrow()
        plain = {"id": unskipped["id"].to_pylist(), "extra": unskipped["extra"].to_pylist()}
        python = condition.replace("is null", "is None").replace(" = ", " == ")
        python = python.replace("extra > 9", "extra is not None and extra > 9")
        rows = zip(plain["id"], plain["extra"], strict=True)
        expected = sorted(id for id, extra in rows if eval(python, {}, {"id": id, "extra": extra}))
        assert sorted(found["id"].to_pylist()) == expected, condition


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_column_that_a_write_adds_has_statistics_in_all_files(table_type: str, version: int) -> None:
    table = with_statistics(table_type, version=version)
    table.upsert(widened(table, [3, 60], [5, None]), options=QUIET)
    assert of_column(table, "extra").num_rows == of_column(table, "id").num_rows
    check(table)
    assert_found(table)
    table.upsert(widened(table, [3, 4, 70], [6, 10, 5]), options=QUIET)
    check(table)
    assert_found(table)
    table.services.cluster()
    check(table)
    table.upsert(widened(table, [1], [7]), options=QUIET)
    assert table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    check(table)
    assert_found(table)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_columns_that_join_the_list_get_statistics_of_all_files(table_type: str, version: int) -> None:
    table = create(version=version, table_type=table_type)

    def write(key: str, ts: int, *columns: str) -> None:
        listed = {"hoodie.metadata.index.column.stats.column.list": ",".join(columns)} if columns else {}
        row = rides((key, "rome", ts, 1.0), (f"{key}{ts}", "oslo", ts, float(ts)))
        table.upsert(row, options={**QUIET, **ENABLED, **listed})

    write("a", 1, "fare")
    write("a", 2)
    assert (of_column(table, "ts").num_rows, of_column(table, "fare").num_rows > 0) == (0, True)
    write("a", 3, "fare", "ts", "unknown")
    write("b", 4, "ts")
    assert of_column(table, "ts").num_rows == of_column(table, "fare").num_rows > 3
    check(table)
    for condition, count in (("ts > 9", 0), ("ts = 1", 1), ("ts >= 3", 4), ("fare = 2.0", 1)):
        assert table.scan(where=condition).to_arrow().num_rows == count, condition
    assert len(table.scan(where="ts > 9").tasks()) == 0 < len(table.scan().tasks())


def test_no_file_of_before_is_read_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_statistics(COW)
    rows = widened(table, [100, 104], [1, 2])
    others = {"p0", "p1", "p2", "p3"}.difference(rows["part"].to_pylist())
    old = {each.path for path in others for each in context_of(table).storage.list_files(path)}
    opened: list[str] = []
    storage = type(context_of(table).storage)
    actual = storage.open

    def noted(self: object, path: str) -> pa.NativeFile:
        opened.append(path)
        return actual(self, path)  # type: ignore[arg-type]

    monkeypatch.setattr(storage, "open", noted)
    table.append(rows, options=QUIET)
    assert of_column(table, "extra").num_rows == of_column(table, "id").num_rows
    assert old
    assert not old & {*opened}


def test_an_index_of_chosen_columns_keeps_to_these() -> None:
    table = create(SCHEMA, partition_by="part", ordering="ts")
    chosen = {"hoodie.metadata.index.column.stats.column.list": "price,id"}
    table.upsert(History(table, "SIMPLE", 1).rows([1, 2], True), options=QUIET | ENABLED | chosen)
    table.upsert(widened(table, [3], [5]), options=QUIET)
    assert "extra" in table.schema.names
    shown = {*table.inspect.metadata("column_stats")["column"].to_pylist()}
    assert shown - {*META_COLUMNS} == {"id", "price"}
    assert_found(table)
