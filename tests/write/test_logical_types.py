"""VECTOR, BLOB and VARIANT columns through the life of a table, in each kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.schema.logical_types import BLOB, VARIANT, vector_type
from drawstring.table import Table
from tests.support.tables import COW, MOR, new_address

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("v", vector_type(3)),
        pa.field("d", vector_type(2, pa.float64())),
        pa.field("i", vector_type(4, pa.int8())),
        pa.field("w", vector_type(3)),
        pa.field("b", BLOB),
        pa.field("x", VARIANT),
        pa.field("s", pa.struct([pa.field("b", BLOB), pa.field("n", pa.int32())])),
        pa.field("ts", pa.int64()),
    ]
)
KINDS = [
    (COW, 9, "avro", "PARQUET"),
    (MOR, 9, "avro", "PARQUET"),
    (MOR, 9, "parquet", "PARQUET"),
    (MOR, 6, "avro", "PARQUET"),
    (MOR, 10, "avro", "PARQUET"),
    (MOR, 9, "avro", "ORC"),
    (COW, 9, "avro", "LANCE"),
]
Rows = dict[str, dict[str, Any]]


def blob(n: int) -> dict[str, Any] | None:
    if n % 5 == 4:
        return None
    if n % 2:
        return {"type": "INLINE", "data": bytes([n]), "reference": None}
    place = {"external_path": f"/lake/{n}", "offset": n, "length": None, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": place}


def row(n: int, ts: int) -> dict[str, Any]:
    return {
        "id": f"k{n:03}",
        "v": None if n % 3 == 0 else [n, n + 0.5, float(ts)],
        "d": [n / 3, -0.0] if n % 4 else None,
        "i": [n, -128, 127, ts] if n % 7 else None,
        "w": [n, n, n],
        "b": blob(n),
        "x": {"metadata": b"\x01\0\0", "value": bytes([12, n])} if n % 6 else None,
        "s": {"b": blob(n + 1), "n": n},
        "ts": ts,
    }


def rows(first: int, last: int, ts: int) -> pa.Table:
    return pa.Table.from_pylist([row(n, ts) for n in range(first, last)], SCHEMA)


def by_key(rows: pa.Table) -> Rows:
    return {each["id"]: each for each in rows.select(SCHEMA.names).to_pylist()}


def stored(table: Table, where: str | None = None) -> Rows:
    return by_key(table.scan(where=where).to_arrow())


@pytest.mark.parametrize(("kind", "version", "logs", "base"), KINDS)
def test_the_values_survive_each_write_and_service(kind: str, version: int, logs: str, base: str) -> None:
    if base == "LANCE":
        pytest.importorskip("lance")
    properties = {} if base == "PARQUET" else {"hoodie.table.base.file.format": base}
    options = {"hoodie.logfile.data.block.format": logs} if version < 10 else {}
    how: dict[str, Any] = {"record_key": "id", "ordering": "ts", "table_type": kind, "version": version}
    table = drawstring.create(new_address(), SCHEMA, name="t", properties=properties, **how)
    table.insert(rows(0, 60, 1), options=options)
    expected = by_key(rows(0, 60, 1))
    # A few rows of a block are decoded one by one, more of them column by column.
    for changed in (rows(20, 30, 2), rows(25, 58, 3).slice(2)):
        table.upsert(changed, options=options)
        expected |= by_key(changed)
    table.delete(where="id = 'k001'", options=options)
    table.update("id = 'k002'", {"ts": 5}, options=options)
    del expected["k001"]
    expected["k002"]["ts"] = 5
    assert stored(table) == expected
    assert stored(table, "v is null").keys() == {key for key, each in expected.items() if each["v"] is None}
    inline = {key for key, each in expected.items() if each["b"] and each["b"]["type"] == "INLINE"}
    assert stored(table, "b.type = 'INLINE'").keys() == inline
    if kind == MOR:
        table.services.compact()
        assert stored(table) == expected
    table.services.cluster()
    assert stored(table) == expected
    assert table.schema == SCHEMA


def test_a_file_names_its_vectors_in_its_footer_as_hudi_does(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts")
    table.insert(rows(0, 3, 1))
    (file,) = (tmp_path / "t").rglob("*.parquet")
    footer = pq.read_metadata(file)
    told = (footer.metadata or {})[b"hoodie.vector.columns"]
    assert told == b"v:VECTOR(3),d:VECTOR(2, DOUBLE),i:VECTOR(4, INT8),w:VECTOR(3)"
    column = footer.schema.column(footer.schema.names.index("v"))
    assert (column.physical_type, column.length) == ("FIXED_LEN_BYTE_ARRAY", 12)
    assert pq.read_table(file)["v"][1].as_py() == bytes.fromhex("0000803f 0000c03f 0000803f")


@pytest.mark.parametrize("kind", [COW, MOR])
def test_rows_that_do_not_fit_leave_the_table_as_it_was(kind: str) -> None:
    table = drawstring.create(new_address(), SCHEMA, record_key="id", ordering="ts", table_type=kind)
    table.insert(rows(0, 9, 1))
    before = stored(table)
    plain = [{"id": "k001", "v": [1.0, 2.0], "ts": 2}]
    with pytest.raises(InvalidError, match=r"'v' is VECTOR\(3\), but a row has 2 numbers"):
        table.upsert(pa.Table.from_pylist(plain), null_for_missing=True)
    with pytest.raises(InvalidError, match="'b' is a BLOB of type 'FILE'"):
        table.update("id = 'k001'", {"b": {"type": "FILE", "data": b"x", "reference": None}})
    assert stored(drawstring.open(table.uri)) == before


def test_merges_and_updates_take_lists_of_any_numbers_as_vectors() -> None:
    schema = pa.schema([("id", pa.string()), ("v", vector_type(3)), ("ts", pa.int64())])
    table = drawstring.create(new_address(), schema, record_key="id", ordering="ts")
    table.insert(pa.table({"id": ["a", "b"], "v": [[1, 2, 3], None], "ts": [1, 1]}))
    source = pa.table({"id": ["a", "c"], "v": [[4, 5, 6], [7, 8, 9]], "ts": [2, 2]})
    table.merge(source).when_matched_update_all().when_not_matched_insert_all().execute()
    table.update("id = 'a'", {"v": [0, 0, 1]})
    with pytest.raises(InvalidError, match="v cannot be set to"):
        table.update("id = 'a'", {"v": [0, 1]})
    assert table.scan(columns=["id", "v"]).to_arrow().sort_by("id").to_pylist() == [
        {"id": "a", "v": [0, 0, 1]},
        {"id": "b", "v": None},
        {"id": "c", "v": [7, 8, 9]},
    ]


def test_vectors_and_blobs_are_added_to_a_table() -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = drawstring.create(new_address(), schema, record_key="id", ordering="ts", table_type=MOR)
    table.insert(pa.table({"id": ["a"], "ts": [1]}))
    table.columns.add("v", vector_type(2))
    added = pa.field("w", pa.list_(pa.float64()), metadata={"hudi_type": "VECTOR(2, DOUBLE)"})
    new = pa.Table.from_pylist(
        [{"id": "b", "ts": 1, "v": [1, 2], "w": [3, 4]}], pa.schema([*table.schema, added])
    )
    table.upsert(new)
    assert table.schema.types == [pa.string(), pa.int64(), vector_type(2), vector_type(2, pa.float64())]
    assert table.scan().to_arrow().select(table.schema.names).sort_by("id").to_pylist() == [
        {"id": "a", "ts": 1, "v": None, "w": None},
        {"id": "b", "ts": 1, "v": [1, 2], "w": [3, 4]},
    ]


def test_shredded_variants_of_a_file_are_put_together_again(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", VARIANT), ("ts", pa.int64())])
    table = drawstring.create(tmp_path / "t", schema, record_key="id", ordering="ts")
    value = {"metadata": NAMES_K_O, "value": b"\x00"}
    table.insert(pa.Table.from_pylist([{"id": each, "x": value, "ts": 1} for each in range(5)], schema))
    (path,) = (tmp_path / "t").rglob("*.parquet")
    rows = pq.read_table(path)
    shredded = pa.array(
        [
            {"metadata": NAMES_K_O, "value": None, "typed_value": {"k": {"value": None, "typed_value": 7}}},
            {
                "metadata": NAMES_K_O,
                "value": OBJECT_O,
                "typed_value": {"k": {"value": b"\x04", "typed_value": None}},
            },
            {"metadata": NAMES_K_O, "value": b"\x09hi", "typed_value": None},
            {"metadata": NAMES_K_O, "value": None, "typed_value": None},
            None,
        ],
        SHREDDED,
    )
    pq.write_table(rows.set_column(rows.column_names.index("x"), "x", shredded), path)
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    found = (
        drawstring.open(tmp_path / "t").scan(columns=["id", "x"]).to_arrow().sort_by("id")["x"].to_pylist()
    )
    assert [each and each["value"].hex(" ") for each in found] == [
        "02 01 00 00 05 14 07 00 00 00",
        "02 02 00 01 00 01 02 04 08",
        "09 68 69",
        "00",
        None,
    ]


NAMES_K_O = b"\x01\x02\x00\x01\x02ko"
OBJECT_O = bytes.fromhex("02 01 01 00 01 08")
"""`{"o": false}`"""

FIELD = pa.struct([("value", pa.binary()), ("typed_value", pa.int32())])
SHREDDED = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary()),
        pa.field("typed_value", pa.struct([("k", FIELD)])),
    ]
)
