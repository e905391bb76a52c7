"""Record keys and values that are too long for an index, whose keys have at most 32,767 bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.formats.hfile import encode_hfile
from drawstring.table import Table
from tests.support.tables import create

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("name", pa.string())])
RECORD_INDEX = {"hoodie.metadata.record.index.enable": "true"}
LONG = "y" * 40_000


def upsert(table: Table, key: str, name: str, **options: str) -> None:
    rows = pa.table({"id": [key], "name": [name]}, SCHEMA)
    table.upsert(rows, options={"hoodie.parquet.small.file.limit": "0", **options})


def found(table: Table, where: str) -> list[str]:
    return sorted(table.scan(["id"], where=where).to_arrow()["id"].to_pylist())


def test_long_values_are_written_and_found_beside_a_secondary_index() -> None:
    table = create(SCHEMA, record_key="id", partition_by=None, ordering=None)
    upsert(table, "a", "x", **RECORD_INDEX)
    upsert(table, "b", LONG)
    table.indexes.create("i", "name", using="secondary_index")
    upsert(table, "c", LONG)
    upsert(table, "d", "z")
    assert {row["value"] for row in table.inspect.metadata("secondary_index_i").to_pylist()} == {"x", "z"}
    assert found(table, f"name = '{LONG}'") == ["b", "c"]
    assert found(table, f"name in ('z', '{LONG}')") == ["b", "c", "d"]
    assert found(table, "name = 'z'") == ["d"]
    upsert(table, "b", "x")
    upsert(table, "d", LONG)
    table.delete(where="id = 'c'")
    assert [found(table, f"name = '{each}'") for each in ("x", "z", LONG)] == [["a", "b"], [], ["d"]]


def test_a_key_that_the_record_index_cannot_hold_is_refused_before_anything_is_written() -> None:
    table = create(SCHEMA, record_key="id", partition_by=None, ordering=None)
    upsert(table, "a", "x", **RECORD_INDEX)
    written = table.timeline.latest_time()
    with pytest.raises(
        InvalidError, match=r"40,000 bytes, but the record index .* drop the index record_index"
    ):
        upsert(table, LONG, "x")
    assert table.timeline.latest_time() == written
    upsert(table, "b", "x")
    table.indexes.drop("record_index")
    upsert(table, LONG, "x")
    with pytest.raises(UnsupportedError, match="too long for an index"):
        table.indexes.create("record_index")
    upsert(table, "c", "x")
    assert found(table, "name = 'x'") == ["a", "b", "c", LONG]


def test_a_long_key_in_the_middle_of_an_index_is_no_wrong_length() -> None:
    keys = pa.array(["a", LONG + "b", "z"])
    with pytest.raises(UnsupportedError, match="40,001 bytes"):
        encode_hfile(keys, pa.array([b"", b"", b""]), {}, 0)
