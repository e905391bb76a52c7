"""Datums of random schemas, read by columns and by fastavro, and blocks of which little is wanted."""

from __future__ import annotations

import json
import struct
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError
from drawstring.formats.avro.blocks import decode_datums
from drawstring.formats.avro.container import encode_long
from drawstring.testing import with_limits
from tests.formats.avro_schemas import block_of, datums_of, schemas_with_records


def decoded(content: bytes, avro: Any, columns: list[str] | None = None) -> pa.Table:
    return pa.Table.from_batches(decode_datums(content, json.dumps(avro), columns=columns))


def by_columns(content: bytes, avro: Any, columns: list[str] | None = None) -> pa.Table:
    """Read without the shortcut for few records."""
    with with_limits(avro_columns_rows_min=0):
        return decoded(content, avro, columns)


def one_by_one(content: bytes, avro: Any) -> pa.Table:
    """Read through fastavro."""
    with with_limits(avro_columns_rows_min=1 << 40):
        return decoded(content, avro)


@given(schemas_with_records(), st.data())
def test_any_schema_is_read_by_columns_as_fastavro_reads_it(drawn: Any, data: st.DataObject) -> None:
    avro, rows = drawn
    content = block_of(datums_of(avro, rows))
    names = [each["name"] for each in avro["fields"]]
    some = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))

    expected = one_by_one(content, avro)

    assert len(expected) == len(rows)
    found = by_columns(content, avro)
    assert found.schema == expected.schema
    assert found.equals(expected)
    chosen = [name for name in names if name in some]
    assert by_columns(content, avro, some).equals(expected.select(chosen))


def test_arrays_in_several_blocks_with_and_without_sizes_are_read() -> None:
    avro = record({"type": "array", "items": "int"}, {"type": "map", "values": "string"})
    numbers = [encode_long(each) for each in range(6)]
    sized = encode_long(-2) + encode_long(2) + numbers[0] + numbers[1]
    array = sized + encode_long(3) + b"".join(numbers[2:5]) + encode_long(-1) + encode_long(1) + numbers[5]
    entry = b"\x02k" + b"\x04vw"
    mapped = encode_long(-1) + encode_long(len(entry)) + entry
    datums = [array + b"\x00" + mapped + b"\x00", b"\x00\x00", b"\x02\x0e\x00\x00"] * 20

    found = by_columns(block_of(datums), avro)

    assert found.column("c0").to_pylist() == [[0, 1, 2, 3, 4, 5], [], [7]] * 20
    assert found.column("c1").to_pylist() == [[("k", "vw")], [], []] * 20
    assert found.equals(one_by_one(block_of(datums), avro))
    assert by_columns(block_of(datums), avro, ["c1"]).equals(found.select(["c1"]))


def record(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"c{at}", "type": each} for at, each in enumerate(types)]
    return {"type": "record", "name": "r", "fields": fields}


def test_one_long_array_among_many_short_ones_is_read() -> None:
    avro = record({"type": "array", "items": ["null", "string"]}, "int")
    rows: list[Any] = [{"c0": ["a", None], "c1": at} for at in range(100)]
    rows[50]["c0"] = ["long", None] * 2000

    found = by_columns(block_of(datums_of(avro, rows)), avro)

    assert found.to_pylist() == rows
    assert by_columns(block_of(datums_of(avro, rows)), avro, ["c1"]).to_pylist() == [
        {"c1": at} for at in range(100)
    ]


@pytest.mark.parametrize("bits", [7, 8, 31, 32, 55, 56, 57, 62, 63])
def test_numbers_of_every_length_are_read(bits: int) -> None:
    avro = record("long")
    values = [sign * value for value in (2**bits - 1, 2**bits // 2, 1) for sign in (1, -1)] * 20
    values += [-(2**63), 2**63 - 1] * (bits == 63)

    found = by_columns(block_of(datums_of(avro, [{"c0": value} for value in values])), avro)

    assert found.column("c0").to_pylist() == values


def test_a_large_block_comes_in_several_batches() -> None:
    avro = record("long", "string")
    rows = [{"c0": at, "c1": "x" * (at % 50)} for at in range(40_000)]

    batches = decode_datums(block_of(datums_of(avro, rows)), json.dumps(avro))

    assert len(batches) > 1
    assert pa.Table.from_batches(batches).to_pylist() == rows


def test_columns_that_the_block_does_not_have_are_left_out() -> None:
    avro = record("long", "string")
    content = block_of(datums_of(avro, [{"c0": 1, "c1": "x"}] * 30))

    assert decoded(content, avro, ["c1", "new"]).column_names == ["c1"]
    assert decoded(content, avro, ["new"]).num_rows == 30


DAMAGES = {
    "a length beyond the end": (record("string"), encode_long(1 << 40) + b"x"),
    "a length far beyond the end": (record("string"), encode_long(1 << 29) + b"x"),
    "a negative length": (record("string"), encode_long(-2) + b"xx"),
    "a branch that is not there": (record(["null", "int"]), b"\x04\x02"),
    "a negative branch": (record(["null", "int"]), b"\x01\x02"),
    "a symbol that is not there": (record({"type": "enum", "name": "e", "symbols": ["A"]}), b"\x02"),
    "a boolean of 2": (record("boolean"), b"\x02"),
    "an int of 33 bits": (record("int"), encode_long(1 << 31)),
    "a number of eleven bytes": (record("long"), b"\xff" * 10 + b"\x01"),
    "more items than bytes": (record({"type": "array", "items": "int"}), encode_long(1 << 50)),
    "the least count": (record({"type": "array", "items": "int"}), encode_long(-(2**63)) + b"\x00"),
    "text that is no text": (record("string"), b"\x02\xff"),
    "a record that ends early": (record("long"), b"\x02\x02"),
    "a decimal of 17 bytes": (
        record({"type": "bytes", "logicalType": "decimal", "precision": 5}),
        encode_long(17) + b"\x01" * 17,
    ),
    "a decimal of too many digits": (
        record({"type": "bytes", "logicalType": "decimal", "precision": 2}),
        b"\x04\x7f\xff",
    ),
}


@pytest.mark.parametrize(("avro", "datum"), DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("place", [0, 40, 79])
def test_damage_in_one_record_of_many_is_corrupt(avro: Any, datum: bytes, place: int) -> None:
    good = {"string": b"\x02x", "long": b"\x02", "int": b"\x02", "boolean": b"\x01"}
    kind = avro["fields"][0]["type"]
    first = kind[1] if isinstance(kind, list) else kind
    plain = first if isinstance(first, str) else first["type"]
    fine = {"array": b"\x00", "enum": b"\x00", "bytes": b"\x02\x05"} | good
    datums = [(b"\x02" if isinstance(kind, list) else b"") + fine[plain]] * 80
    datums[place] = datum

    with pytest.raises(CorruptTableError):
        decode_datums(block_of(datums), json.dumps(avro))


def test_a_record_that_reads_into_the_next_one_is_corrupt() -> None:
    avro = record("string", "string")
    datums = [b"\x02a\x02b"] * 40
    datums[3] = b"\x02a\x0ab"

    with pytest.raises(CorruptTableError, match="does not end"):
        decode_datums(block_of(datums), json.dumps(avro))
    with pytest.raises(CorruptTableError, match="does not end"):
        decode_datums(block_of(datums), json.dumps(avro), columns=["c1"])


def test_a_schema_that_unfolds_without_end_is_corrupt() -> None:
    fields: list[Any] = [{"name": "a", "type": {"type": "record", "name": "r0", "fields": []}}]
    fields[0]["type"]["fields"] = [{"name": "x", "type": "int"}]
    for level in range(1, 60):
        inner = [{"name": name, "type": f"r{level - 1}"} for name in "ab"]
        fields.append({"name": f"f{level}", "type": {"type": "record", "name": f"r{level}", "fields": inner}})
    avro = {"type": "record", "name": "top", "fields": fields}

    with pytest.raises(CorruptTableError):
        decode_datums(struct.pack(">ii", 3, 0), json.dumps(avro))
    assert fastavro.parse_schema(avro)
