"""Calls that no table could answer, and calls that read as one would guess."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from tests.support.rows import SCHEMA, held, rides
from tests.support.tables import OLD, table_at


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"record_key": ["id", "id"]}, "record_key names column id more than once"),
        ({"partition_by": ["city", "city"]}, "partition_by names column city more than once"),
        ({"record_key": "tags"}, "tags of type list.* cannot be part of a record key"),
        ({"partition_by": "tags"}, "tags of type list.* cannot be part of a record key"),
        ({"ordering": "tags"}, "Ordering column tags is list.*no order"),
        ({"version": "8"}, "version '8' is not a number"),
        ({"version": 9.0}, r"version 9\.0 is not a number"),
        ({"schema": pl.DataFrame({"id": [1]})}, "Columns cannot be read from DataFrame"),
        ({"schema": pd.DataFrame({"id": [1]})}, "Columns cannot be read from DataFrame"),
        ({"schema": 5}, "Columns cannot be read from int"),
    ],
    ids=str,
)
def test_a_table_that_no_write_would_take_is_not_created(
    tmp_path: Path, how: dict[str, Any], says: str
) -> None:
    schema = SCHEMA.append(pa.field("tags", pa.list_(pa.string())))
    with pytest.raises(InvalidError, match=says) as caught:
        drawstring.create(tmp_path / "t", **{"schema": schema, "record_key": "id", **how})
    assert caught.value.table == str(tmp_path / "t")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"hoodie.bucket.index.num.buckets": "4"}, r"num\.buckets needs .* Set hoodie\.index\.type=BUCKET"),
        ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, r"engine needs .*index\.type=BUCKET"),
        ({"hoodie.bucket.index.hash.field": "id"}, r"hash\.field needs .*index\.type=BUCKET"),
        (
            {"hoodie.index.type": "BLOOM", "hoodie.bucket.index.num.buckets": "4"},
            r"index\.type=BLOOM\. Set .*=BUCKET",
        ),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.hash.field": "id,fare"},
            r"hash\.field has fare, which is not a column of the record key \(id\)",
        ),
    ],
    ids=str,
)
def test_settings_of_an_index_that_would_say_nothing_make_no_table(
    tmp_path: Path, properties: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidError, match=says):
        drawstring.create(tmp_path / "t", SCHEMA, record_key="id", properties=properties)
    assert not (tmp_path / "t").exists()


def test_a_table_that_has_settings_of_buckets_and_no_type_goes_on(tmp_path: Path) -> None:
    table_at(tmp_path)
    with (tmp_path / ".hoodie/hoodie.properties").open("a") as stored:
        stored.write("hoodie.bucket.index.num.buckets=4\nhoodie.bucket.index.hash.field=fare\n")
    again = drawstring.open(tmp_path)
    again.upsert(rides(("c", "rome", 1, 1.0)))
    assert held(again) == [*OLD, ("c", "rome", 1, 1.0)]


@pytest.mark.parametrize("kind", [pa.string(), pa.int8(), pa.float64()], ids=str)
def test_a_mark_of_deleted_rows_that_is_not_boolean_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    mark = pa.field("_hoodie_is_deleted", kind)
    with pytest.raises(InvalidError, match=r"_hoodie_is_deleted.*has to be boolean"):
        drawstring.create(tmp_path / "t", SCHEMA.append(mark), record_key="id")
    assert not (tmp_path / "t").exists()
    table = table_at(tmp_path)
    marked = rides(OLD[0]).append_column(mark, pa.array([1]).cast(kind))
    for call in (table.upsert, table.bulk_insert, table.insert_overwrite):
        with pytest.raises(InvalidError, match=r"_hoodie_is_deleted.*has to be boolean"):
            call(marked)
    table.upsert(rides(OLD[0]).append_column("_hoodie_is_deleted", pa.array([True])))
    assert held(table) == OLD[1:]


@pytest.mark.parametrize(
    "kind", [pa.struct([]), pa.list_(pa.struct([])), pa.struct([("inner", pa.struct([]))])], ids=str
)
def test_a_struct_without_fields_is_refused_before_there_is_a_table(
    tmp_path: Path, kind: pa.DataType
) -> None:
    with pytest.raises(InvalidError, match=r"Column 'e.*' is a struct without fields"):
        drawstring.create(tmp_path / "t", SCHEMA.append(pa.field("e", kind)), record_key="id")
    assert not (tmp_path / "t").exists()
    table = table_at(tmp_path)
    with pytest.raises(InvalidError, match=r"Column 'e.*' is a struct without fields"):
        table.upsert(rides(OLD[0]).append_column("e", pa.nulls(1, kind)))
    assert held(table) == OLD


def test_a_table_below_a_file_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidError, match="Use another path") as caught:
        drawstring.create(tmp_path / "file/t", SCHEMA, record_key="id")
    assert caught.value.table == str(tmp_path / "file/t")


def test_what_breaks_in_the_callers_reader_stays_the_callers(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield rides(("c", "rome", 1, 1.0)).to_batches()[0]
        raise ValueError("source broke")

    table = table_at(tmp_path)
    with pytest.raises((ValueError, InvalidError), match="source broke"):
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, broken()))
    assert held(table) == OLD


def test_one_column_may_be_named_by_itself(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    assert table.scan("id").to_arrow().column_names == ["id"]
    assert table.incremental(0, columns="fare").schema.names == ["fare"]


def test_a_time_may_be_a_number(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    first = table.timeline.writes()[0].requested
    assert held(table, as_of=int(first)) == held(table, as_of=first)
    assert table.incremental(0).to_arrow().num_rows == table.incremental("earliest").to_arrow().num_rows


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    scan = table_at(tmp_path).scan()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidError, match=rf"pip install 'drawstring\[{package}\]'"):
        getattr(scan, f"to_{package}")()


@pytest.mark.parametrize("given", [["fare"], "fare = 2", None, {"fare"}], ids=str)
def test_what_is_set_without_columns_is_refused(tmp_path: Path, given: Any) -> None:
    table = table_at(tmp_path)
    with pytest.raises(InvalidError, match="Update needs a dictionary of values by column"):
        table.update("id = 'a'", given)
    assert held(table) == OLD
