"""Key and partition fields inside struct columns, as `a.k`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.table import Table

STRUCT = pa.struct([("k", pa.int64()), ("c", pa.string()), ("n", pa.struct([("x", pa.string())]))])
SCHEMA = pa.schema([("a", STRUCT), ("city", pa.string()), ("ts", pa.int64())])
KEY = ["_hoodie_record_key", "_hoodie_partition_path", "ts"]
tables = pytest.mark.parametrize(
    ("version", "table_type"), [(9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ"), (6, "MERGE_ON_READ")]
)


def rows_of(*rows: tuple[int, str | None, int]) -> pa.Table:
    data = [{"a": {"k": key, "c": c, "n": {"x": f"x{key}"}}, "city": "oslo", "ts": ts} for key, c, ts in rows]
    return pa.Table.from_pylist(data, SCHEMA)


def make(root: Path, **keywords: Any) -> Table:
    return drawstring.create(root / "t", SCHEMA, **{"record_key": "a.k", "ordering": "ts", **keywords})


def keys(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(KEY).to_arrow().to_pylist())


@tables
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET"])
def test_records_are_found_by_a_nested_key(tmp_path: Path, version: int, table_type: str, index: str) -> None:
    table = make(tmp_path, version=version, table_type=table_type, index=index)
    table.upsert(rows_of((1, "x", 1), (2, None, 1), (3, "z", 1)))
    table.upsert(rows_of((2, "y", 2), (3, "late", 0), (4, "w", 2)))
    assert keys(table) == [("1", "", 1), ("2", "", 2), ("3", "", 1), ("4", "", 2)]
    table.delete(rows_of((1, None, 9)))
    table.delete(pa.Table.from_pylist([{"a": {"k": 4}}], pa.schema([("a", pa.struct([("k", pa.int64())]))])))
    assert keys(table) == [("2", "", 2), ("3", "", 1)]
    if table_type == "MERGE_ON_READ":
        table.services.compact()
        assert keys(table) == [("2", "", 2), ("3", "", 1)]
    assert table.scan("city", where="city = 'oslo' and ts > 1").to_arrow().num_rows == 1


def test_paths_and_compound_keys_have_the_dotted_names(tmp_path: Path) -> None:
    table = make(tmp_path, record_key=["a.n.x", "city"], partition_by="a.c", hive_style=True)
    table.upsert(rows_of((1, "p", 1), (2, None, 1)))
    table.upsert(rows_of((1, "p", 2)))
    default = "a.c=__HIVE_DEFAULT_PARTITION__"
    assert keys(table) == [("a.n.x:x1,city:oslo", "a.c=p", 2), ("a.n.x:x2,city:oslo", default, 1)]
    assert table.config.record_key_fields == ("a.n.x", "city")
    assert drawstring.open(f"{tmp_path}/t/a.c=p").scan("ts").to_arrow()["ts"].to_pylist() == [2]
    assert table.services.validate().findings == ()


@tables
def test_rows_are_changed_by_a_condition(tmp_path: Path, version: int, table_type: str) -> None:
    table = make(tmp_path, version=version, table_type=table_type)
    table.upsert(rows_of((1, "x", 1), (2, "y", 1), (3, "z", 1)))
    table.update("ts = 1", {"city": "'lima'"})
    table.delete(rows_of((2, "y", 5)))
    assert table.scan("city").to_arrow()["city"].to_pylist() == ["lima", "lima"]
    with pytest.raises(InvalidError, match="Column a is part of the record key"):
        table.update("ts = 1", {"a": "null"})


def test_a_null_key_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = pa.Table.from_pylist([{"a": None, "city": "oslo", "ts": 1}], SCHEMA)
    with pytest.raises(InvalidError, match=r"a\.k is null or empty"):
        table.upsert(rows)


def test_what_cannot_have_nested_keys_says_so(tmp_path: Path) -> None:
    for wrong, kind, text in (
        ({"record_key": "a.nope"}, InvalidError, r"a\.nope that the schema lacks"),
        ({"record_key": "city.k"}, InvalidError, "lacks"),
        ({"record_key": "a.n"}, InvalidError, "cannot be part of a record key"),
        ({"properties": {"hoodie.populate.meta.fields": "false"}}, UnsupportedError, "nested"),
    ):
        with pytest.raises(kind, match=text):
            make(tmp_path, **wrong)
    table = make(tmp_path)
    table.upsert(rows_of((1, "x", 1)))
    with pytest.raises(UnsupportedError, match="nested in a column"):
        table.merge(rows_of((1, "x", 2))).when_matched_update_all().execute()
    assert keys(table) == [("1", "", 1)]
