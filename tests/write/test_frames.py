"""What data frames bring: floats where the table has integers, other cases, indexes, categories."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table
from tests.support.rows import scanned
from tests.support.tables import new_address, table_types

INTEGERS = pa.schema([("id", pa.int64()), ("month", pa.int64()), ("ts", pa.int64()), ("n", pa.int64())])


def created(schema: pa.Schema = INTEGERS, **how: Any) -> Table:
    defaults: dict[str, Any] = {"record_key": "id", "name": "t"}
    if schema is INTEGERS:
        defaults |= {"partition_by": "month", "ordering": "ts"}
    return drawstring.create(new_address(), schema, **{**defaults, **how})


def rows(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    return scanned(table, columns or table.schema.names)


@table_types
@pytest.mark.parametrize("properties", [{}, {"hoodie.index.type": "BUCKET"}], ids=["simple", "bucket"])
def test_whole_floats_update_the_integers_that_they_are(table_type: str, properties: dict[str, str]) -> None:
    table = created(table_type=table_type, properties=properties)
    big = 2**53 + 1
    table.upsert(pd.DataFrame({"id": [1, 2], "month": [7, 8], "ts": [1, 1], "n": [big, 2]}))
    table.upsert(pd.DataFrame({"id": [2.0, 3.0], "month": [8.0, 8.0], "ts": [2.0, 2.0], "n": [20.0, None]}))
    assert table.schema == INTEGERS
    assert rows(table) == [(1, 7, 1, big), (2, 8, 2, 20), (3, 8, 2, None)]
    keys = rows(table, "_hoodie_record_key", "_hoodie_partition_path")
    assert keys == [("1", "7"), ("2", "8"), ("3", "8")]
    table.delete(pd.DataFrame({"id": [2.0], "month": [8.0]}))
    assert rows(table, "id") == [(1,), (3,)]


@pytest.mark.parametrize("column", INTEGERS.names)
def test_a_fraction_in_a_column_of_integers_is_refused(column: str) -> None:
    table = created()
    whole = {"id": [1, 2], "month": [7, 8], "ts": [1, 1], "n": [1, 2]}
    table.upsert(pd.DataFrame(whole))
    with pytest.raises(InvalidError, match=f"'{column}' does not fit its type int64.*1.5.*Round it"):
        table.upsert(pd.DataFrame({**whole, column: [1.0, 1.5]}))
    assert table.schema == INTEGERS
    assert len(rows(table)) == 2


@pytest.mark.parametrize("column", ["id", "month", "ts"])
def test_columns_that_place_and_order_records_keep_their_type(column: str) -> None:
    schema = INTEGERS.set(INTEGERS.get_field_index(column), pa.field(column, pa.int32()))
    table = created(schema, partition_by="month", ordering="ts")
    whole = {"id": [1, 2], "month": [7, 8], "ts": [1, 1], "n": [1, 2]}
    table.upsert(pa.table(whole))
    assert table.schema == schema
    with pytest.raises(InvalidError, match=f"'{column}' does not fit its type int32"):
        table.upsert(pa.table({**whole, column: [2**40, 1]}))


def test_a_column_that_differs_by_case_only_is_refused() -> None:
    table = created()
    rows_with_case = pa.table({"id": [1], "month": [1], "ts": [1], "N": [1]})
    with pytest.raises(InvalidError, match="'N' differs from column 'n' only by case"):
        table.upsert(rows_with_case)
    with pytest.raises(InvalidError, match="'ID' differs from column 'id' only by case"):
        created(pa.schema([("id", pa.int64()), ("ID", pa.int64())]))


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["x", "y"])], ids=["categorical", "enum"])
def test_categories_of_polars_are_text(kind: Any) -> None:
    schema = pa.schema(
        [("id", pa.string()), ("c", pa.string()), ("l", pa.list_(pa.string())), ("part", pa.string())]
    )
    table = created(schema, partition_by="part")
    frame = pl.DataFrame({"id": ["a", "b"], "c": ["x", None], "l": [["y"], []], "part": ["x", "y"]})
    table.upsert(frame.with_columns(pl.col("c", "part").cast(kind), pl.col("l").cast(pl.List(kind))))
    assert rows(table) == [("a", "x", ["y"], "x"), ("b", None, [], "y")]


def test_times_finer_than_microseconds_are_refused_and_not_cut() -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    table = created(schema)
    table.upsert(pd.DataFrame({"id": [1], "at": pd.to_datetime([1_000], unit="ns")}))
    with pytest.raises(InvalidError, match=r"'at' .*would lose data"):
        table.upsert(pd.DataFrame({"id": [2], "at": pd.to_datetime([1_001], unit="ns")}))
    assert rows(table, "id") == [(1,)]


def test_row_numbers_of_a_filtered_frame_make_no_column() -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    table = created(schema)
    frame = pd.DataFrame({"id": ["a", "b", "c"], "n": [1, 2, 3]})
    table.upsert(frame[frame.n > 1])
    assert table.schema == schema
    table.upsert(frame.set_index("id"))
    table.upsert(frame.set_index("id", drop=False))
    assert rows(table) == [("a", 1), ("b", 2), ("c", 3)]
    assert table.schema == schema


NUL = pa.table({"id": ["x"], "a\0b": [1]})
NESTED_NUL = pa.table({"id": ["x"], "s": pa.array([{"q\0r": 1}])})


@pytest.mark.parametrize(
    "data",
    [
        NUL,
        NUL.to_batches()[0],
        NUL.to_reader(),
        NUL.to_pandas(),
        pl.DataFrame({"id": ["x"], "a\0b": [1]}),
        NESTED_NUL,
    ],
    ids=["table", "batch", "reader", "pandas", "polars", "nested"],
)
@pytest.mark.parametrize("write", ["insert", "upsert", "append", "insert_overwrite"])
def test_a_column_with_a_nul_in_its_name_does_not_become_another(data: Any, write: str) -> None:
    inner = pa.struct([("q", pa.int64())])
    table = created(pa.schema([("id", pa.string()), ("a", pa.int64()), ("s", inner)]))
    if isinstance(data, pa.RecordBatchReader):
        data = NUL.to_reader()
    with pytest.raises(InvalidError, match=r"'(a\\x00b|s\.q\\x00r)'"):
        getattr(table, write)(data, options={"hoodie.write.set.null.for.missing.columns": "true"})
    assert rows(table) == []


@pytest.mark.parametrize(
    "schema",
    [NUL.schema, NESTED_NUL.schema, {"id": pa.string(), "a\0b": pa.int64()}, list(NUL.schema)],
    ids=["schema", "nested", "dictionary", "fields"],
)
def test_a_table_with_a_nul_in_the_name_of_a_column_is_not_made(schema: Any) -> None:
    with pytest.raises(InvalidError, match=r"'(a\\x00b|s\.q\\x00r)'"):
        created(schema)
