"""Avro data blocks: real ones to the byte, every type against fastavro, damage."""

from __future__ import annotations

import io
import json
import struct
from decimal import Context, Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.formats.avro import blocks as avro_blocks
from drawstring.formats.avro.blocks import encode_datums
from drawstring.formats.log_inline import BlockType
from drawstring.schema.avro import arrow_to_avro, avro_to_arrow
from drawstring.testing import with_limits
from tests.support.hudi_files import content_of, data, scan

LOGS = ["v6_avro.log", "v9_avro.log", "v9_partial.log", "v9_compacted.log", "v9_soft_delete.log", "v9.cdc"]


def decode_datums(*arguments: Any, **options: Any) -> pa.RecordBatch:
    """Return the records of a block as one batch."""
    return pa.concat_batches(avro_blocks.decode_datums(*arguments, **options))


def real(name: str) -> tuple[bytes, str]:
    """Return content and schema of the Avro block in a file that Hudi wrote."""
    file = data(name)
    kinds = (BlockType.AVRO_DATA, BlockType.CDC_DATA)
    block = next(each for each in scan(file) if each.kind in kinds)
    assert block.schema_json is not None
    return content_of(file, block), block.schema_json


def test_the_records_of_a_real_block_are_read() -> None:
    batch = decode_datums(*real("v9_avro.log"), 2)

    assert batch.schema.names[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert batch.column("_hoodie_commit_time").to_pylist() == ["20261121091719455"] * 2
    assert batch.column("_hoodie_file_name").to_pylist() == ["57377b09-2248-4548-99ee-4a943ab76f77-0"] * 2


@pytest.mark.parametrize("name", LOGS)
def test_records_are_written_to_the_byte_as_hudi_writes_them(name: str) -> None:
    content, schema_json = real(name)

    assert encode_datums(decode_datums(content, schema_json), schema_json) == content


WIDE = Context(prec=40)
EVERY_TYPE = pa.schema(
    [
        pa.field("must", pa.int32(), nullable=False),
        pa.field("b", pa.bool_()),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("y", pa.binary()),
        pa.field("x", pa.binary(5)),
        pa.field("d1", pa.decimal128(5, 2)),
        pa.field("d3", pa.decimal128(38, 10)),
        pa.field("dt", pa.date32()),
        pa.field("t32", pa.time32("ms")),
        pa.field("t64", pa.time64("us")),
        pa.field("tu", pa.timestamp("us", "UTC")),
        pa.field("tm", pa.timestamp("ms", "UTC")),
        pa.field("tl", pa.timestamp("us")),
        pa.field("ls", pa.list_(pa.string())),
        pa.field("ll", pa.list_(pa.list_(pa.int32()))),
        pa.field("mp", pa.map_(pa.string(), pa.decimal128(9, 3))),
        pa.field("ml", pa.map_(pa.string(), pa.list_(pa.struct([("k", pa.date32())])))),
        pa.field(
            "st",
            pa.struct(
                [
                    ("a", pa.int32()),
                    pa.field("must", pa.string(), nullable=False),
                    ("in", pa.struct([("m", pa.map_(pa.string(), pa.string())), ("d", pa.decimal128(4, 1))])),
                ]
            ),
        ),
    ]
)
EVERY_JSON = arrow_to_avro(EVERY_TYPE, "t_record", "hoodie.t")


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Draw values of a type, as fastavro takes them without logical types."""
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_float32(kind):
        return st.floats(width=32, allow_nan=False)
    if pa.types.is_float64(kind):
        return st.floats(allow_nan=False)
    if pa.types.is_string(kind):
        return st.text(max_size=20)
    if pa.types.is_binary(kind):
        return st.binary(max_size=20)
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    if pa.types.is_decimal(kind):
        return st.integers(-(10**kind.precision) + 1, 10**kind.precision - 1)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: nullable(field) for field in kind.fields})
    if pa.types.is_list(kind):
        return st.lists(nullable(kind.value_field), max_size=4)
    if pa.types.is_map(kind):
        return st.dictionaries(st.text(max_size=5), nullable(kind.item_field), max_size=4)
    bits = 26 if pa.types.is_time32(kind) else 35 if pa.types.is_time64(kind) else kind.bit_width - 1
    return st.integers(0 if pa.types.is_time(kind) else -(2**bits), 2**bits - 1)


def nullable(field: pa.Field) -> st.SearchStrategy[Any]:
    """Draw values of a field."""
    return st.none() | values(field.type) if field.nullable else values(field.type)


def avro_value(value: Any, avro: Any) -> Any:
    """Turn the drawn integers of decimals into the bytes that Avro stores."""
    if value is None:
        return None
    if isinstance(avro, list):
        return avro_value(value, avro[1])
    if isinstance(avro, str):
        return value
    if avro["type"] == "record":
        return {each["name"]: avro_value(value[each["name"]], each["type"]) for each in avro["fields"]}
    if avro["type"] == "array":
        return [avro_value(each, avro["items"]) for each in value]
    if avro["type"] == "map":
        return {key: avro_value(each, avro["values"]) for key, each in value.items()}
    if avro.get("logicalType") == "decimal":
        return value.to_bytes(avro["size"], "big", signed=True)
    return value


def plain(avro: Any) -> Any:
    """Return a schema without its logical types."""
    if isinstance(avro, dict):
        return {key: plain(each) for key, each in avro.items() if key != "logicalType"}
    return [plain(each) for each in avro] if isinstance(avro, list) else avro


def by_fastavro(rows: list[Any], schema_json: str) -> bytes:
    """Return the content of an Avro block, each datum encoded by fastavro."""
    avro = json.loads(schema_json)
    schema = fastavro.parse_schema(plain(avro))
    parts = [struct.pack(">ii", 3, len(rows))]
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, avro_value(row, avro))
        parts += [struct.pack(">i", stream.tell()), stream.getvalue()]
    return b"".join(parts)


@given(st.lists(st.fixed_dictionaries({field.name: nullable(field) for field in EVERY_TYPE}), max_size=6))
def test_every_type_is_read_and_written_as_fastavro_does(rows: list[Any]) -> None:
    content = by_fastavro(rows, EVERY_JSON)

    batch = decode_datums(content, EVERY_JSON, len(rows))

    batch.validate(full=True)
    assert batch.schema == EVERY_TYPE
    assert encode_datums(batch, EVERY_JSON) == content
    with with_limits(avro_single_values_max=0):  # without the shortcut for few numbers
        assert encode_datums(batch, EVERY_JSON) == content
    for column in ("must", "l", "s", "ls", "ll"):
        assert batch.column(column).to_pylist() == [row[column] for row in rows]
    decimals = [None if row["d3"] is None else Decimal(row["d3"]).scaleb(-10, WIDE) for row in rows]
    assert batch.column("d3").to_pylist() == decimals


def test_a_slice_is_encoded_as_itself() -> None:
    rows = [
        {"must": n, "s": "x" * n, "ls": ["a"] * n, "mp": [("k", None)] * (n % 2), "st": None}
        for n in range(8)
    ]
    batch = pa.RecordBatch.from_pylist(rows, EVERY_TYPE)
    part = pa.RecordBatch.from_pylist(rows[3:6], EVERY_TYPE)

    assert encode_datums(batch.slice(3, 3), EVERY_JSON) == encode_datums(part, EVERY_JSON)


def test_columns_are_matched_by_name_and_widened() -> None:
    schema_json = arrow_to_avro(pa.schema([("a", pa.int64()), ("b", pa.string())]), "r", "n")

    content = encode_datums(pa.record_batch({"b": ["x"], "a": pa.array([1], pa.int32())}), schema_json)

    assert decode_datums(content, schema_json).to_pylist() == [{"a": 1, "b": "x"}]


def test_branch_order_bytes_decimals_and_enums_of_other_writers_are_read() -> None:
    schema_json = json.dumps(
        {
            "type": "record",
            "name": "r",
            "fields": [
                {"name": "a", "type": ["string", "null"]},
                {
                    "name": "d",
                    "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                },
                {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["X", "Y"]}},
                {"name": "w", "type": ["long"]},
                {"name": "n", "type": "null"},
            ],
        }
    )
    datums = [
        b"\x00\x02x" + b"\x04\x01\x00" + b"\x02" + b"\x00\x0a",
        b"\x02" + b"\x02\xff" + b"\x00" + b"\x00\x01",
    ]
    content = struct.pack(">ii", 3, 2) + b"".join(struct.pack(">i", len(each)) + each for each in datums)

    batch = decode_datums(content, schema_json)

    assert [str(each) for each in batch.column("d").to_pylist()] == ["2.56", "-0.01"]
    assert batch.drop_columns(["d"]).to_pylist() == [
        {"a": "x", "e": "Y", "w": 5, "n": None},
        {"a": None, "e": "X", "w": -1, "n": None},
    ]
    assert decode_datums(encode_datums(batch, schema_json), schema_json).equals(batch)


def test_a_null_where_none_may_be_is_refused() -> None:
    schema_json = arrow_to_avro(
        pa.schema([pa.field("s", pa.struct([pa.field("a", pa.int32(), nullable=False)]))]), "r", "n"
    )
    batch = pa.RecordBatch.from_arrays([pa.array([{"a": None}], pa.struct([("a", pa.int32())]))], names=["s"])

    with pytest.raises(InvalidError):
        encode_datums(batch, schema_json)


def test_an_empty_block_has_no_records() -> None:
    content = encode_datums(pa.RecordBatch.from_pylist([], EVERY_TYPE), EVERY_JSON)

    assert content == struct.pack(">ii", 3, 0)
    assert decode_datums(content, EVERY_JSON).schema == EVERY_TYPE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack(">i", 3),
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 2**31 - 1),
        struct.pack(">ii", 3, 1) + struct.pack(">i", 2**31 - 1) + b"x",
        struct.pack(">ii", 3, 1) + struct.pack(">i", -4) + b"\x00" * 8,
        struct.pack(">ii", 3, 1) + struct.pack(">i", 0),
        struct.pack(">ii", 3, 0) + b"tail",
    ],
)
def test_damaged_contents_are_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptTableError):
        decode_datums(content, EVERY_JSON)


def test_another_count_than_expected_is_corrupt() -> None:
    content, schema_json = real("v9_avro.log")

    with pytest.raises(CorruptTableError, match="instead of 3"):
        decode_datums(content, schema_json, 3)


def test_an_ancient_content_version_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match="version 0"):
        decode_datums(struct.pack(">ii", 0, 1), EVERY_JSON)


SOME = {
    "must": 1,
    "s": "text",
    "d1": 7,
    "d3": 7,
    "tu": 7,
    "ls": ["a", None],
    "mp": {"k": 5},
    "ml": {"k": [{"k": 3}, None]},
}
FLIPPED = by_fastavro([{field.name: SOME.get(field.name) for field in EVERY_TYPE}] * 3, EVERY_JSON)


@settings(max_examples=3 * settings.get_profile(settings.get_current_profile_name()).max_examples)
@given(st.data())
def test_a_flipped_byte_gives_records_or_a_clear_error(drawn: st.DataObject) -> None:
    content = bytearray(FLIPPED)
    at = drawn.draw(st.integers(0, len(content) - 1))
    content[at] ^= drawn.draw(st.integers(1, 255))

    try:
        batch = decode_datums(bytes(content), EVERY_JSON)
    except (CorruptTableError, UnsupportedError):
        return
    batch.validate(full=True)
    assert batch.schema == EVERY_TYPE


@given(st.binary(max_size=60))
def test_any_bytes_give_records_or_a_clear_error(tail: bytes) -> None:
    for content in (tail, struct.pack(">iii", 3, 1, len(tail)) + tail):
        try:
            decode_datums(content, EVERY_JSON)
        except (CorruptTableError, UnsupportedError):
            continue


def test_the_schema_of_every_type_is_itself() -> None:
    assert avro_to_arrow(EVERY_JSON) == EVERY_TYPE
