"""Avro schemas and Arrow schemas say the same."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.schema.avro import arrow_to_avro, avro_to_arrow, decimal_size_bytes, record_name
from drawstring.schema.evolution import normalise
from drawstring.schema.fields import META_COLUMNS, with_meta, without_meta

# The text that Hudi 1.2.0 on Spark stores for a table of many types.
HUDI_TEXT = (
    '{"type":"record","name":"types_record","namespace":"hoodie.types","fields":['
    '{"name":"id","type":["null","int"],"default":null},'
    '{"name":"b","type":["null","boolean"],"default":null},'
    '{"name":"l","type":["null","long"],"default":null},'
    '{"name":"f","type":["null","float"],"default":null},'
    '{"name":"d","type":["null","double"],"default":null},'
    '{"name":"d1","type":["null",{"type":"fixed","name":"fixed","namespace":"hoodie.types.types_record.d1",'
    '"size":3,"logicalType":"decimal","precision":5,"scale":2}],"default":null},'
    '{"name":"d3","type":["null",{"type":"fixed","name":"fixed","namespace":"hoodie.types.types_record.d3",'
    '"size":16,"logicalType":"decimal","precision":38,"scale":10}],"default":null},'
    '{"name":"dt","type":["null",{"type":"int","logicalType":"date"}],"default":null},'
    '{"name":"tm","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},'
    '{"name":"tn","type":["null",{"type":"long","logicalType":"local-timestamp-micros"}],"default":null},'
    '{"name":"bin","type":["null","bytes"],"default":null},'
    '{"name":"st","type":["null",{"type":"record","name":"st","namespace":"hoodie.types.types_record",'
    '"fields":[{"name":"a","type":["null","int"],"default":null},'
    '{"name":"c","type":["null",{"type":"record","name":"c","namespace":"hoodie.types.types_record.st",'
    '"fields":[{"name":"y","type":["null",{"type":"array","items":["null","int"]}],"default":null}]}],'
    '"default":null}]}],"default":null},'
    '{"name":"mp","type":["null",{"type":"map","values":["null","int"]}],"default":null},'
    '{"name":"ars","type":["null",{"type":"array","items":["null",{"type":"record","name":"ars",'
    '"namespace":"hoodie.types.types_record","fields":[{"name":"k","type":["null","string"],"default":null}]}]}],'
    '"default":null},'
    '{"name":"part","type":"string"}]}'
)


def test_the_text_that_hudi_stores_comes_back_to_the_letter() -> None:
    assert arrow_to_avro(avro_to_arrow(HUDI_TEXT), "types_record", "hoodie.types") == HUDI_TEXT


def test_each_avro_type_has_its_arrow_type() -> None:
    schema = avro_to_arrow(HUDI_TEXT)

    assert schema.field("d1").type == pa.decimal128(5, 2)
    assert schema.field("dt").type == pa.date32()
    assert schema.field("tm").type == pa.timestamp("us", "UTC")
    assert schema.field("tn").type == pa.timestamp("us")
    assert schema.field("mp").type == pa.map_(pa.string(), pa.int32())
    assert schema.field("st").type.field("c").type.field("y").type == pa.list_(pa.int32())
    assert schema.field("id").nullable
    assert not schema.field("part").nullable


def test_meta_columns_stand_in_front_as_hudi_writes_them() -> None:
    schema = with_meta(pa.schema([pa.field("id", pa.int32())]))

    text = arrow_to_avro(schema, "t_record", "hoodie.t")

    first = json.loads(text)["fields"][0]
    assert first == {"name": "_hoodie_commit_time", "type": ["null", "string"], "doc": "", "default": None}
    assert schema.names[:5] == list(META_COLUMNS)
    assert without_meta(schema).names == ["id"]
    assert with_meta(schema) == schema


def test_a_named_type_may_be_used_again() -> None:
    schema = avro_to_arrow(
        '{"type":"record","name":"r","namespace":"n","fields":['
        '{"name":"a","type":{"type":"fixed","name":"four","size":4}},{"name":"b","type":["null","four"]},'
        '{"name":"c","type":"n.four"},{"name":"e","type":{"type":"enum","name":"e","symbols":["X"]}}]}'
    )

    assert [field.type for field in schema] == [pa.binary(4)] * 3 + [pa.string()]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '"int"',
        '{"type":"record","name":"r"}',
        '{"type":"record","name":"r","fields":[{"name":"a","type":"nope"}]}',
        '{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"fixed","name":"f"}}]}',
        '{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"bytes","logicalType":"decimal",'
        '"precision":99}}]}',
        '{"type":' * 2000,
    ],
)
def test_text_that_is_no_schema_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptTableError):
        avro_to_arrow(text)


def test_a_union_of_types_is_not_supported_and_names_the_column() -> None:
    with pytest.raises(UnsupportedError, match=r"'s\.u'"):
        avro_to_arrow(
            '{"type":"record","name":"r","fields":[{"name":"s","type":{"type":"record","name":"x",'
            '"fields":[{"name":"u","type":["null","int","string"]}]}}]}'
        )


def test_a_type_that_holds_itself_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match="recursive"):
        avro_to_arrow('{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}')


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [
        (pa.int8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary_view(), pa.binary()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.int16()), pa.int32()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.timestamp("ms", "UTC"), pa.timestamp("ms", "UTC")),
        (pa.time32("s"), pa.time32("ms")),
        (pa.time64("ns"), pa.time64("us")),
        (pa.decimal256(30, 5), pa.decimal128(30, 5)),
        (pa.large_list(pa.int8()), pa.list_(pa.int32())),
        (pa.list_(pa.int8(), 3), pa.list_(pa.int32())),
        (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int32())])),
        (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
        (pa.uuid(), pa.binary(16)),
    ],
)
def test_a_type_becomes_the_one_that_a_table_keeps(given_type: pa.DataType, kept: pa.DataType) -> None:
    assert normalise(pa.schema([("c", given_type)])).field("c").type == kept


@pytest.mark.parametrize(
    "kind",
    [
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.map_(pa.int32(), pa.string()),
        pa.decimal256(60, 2),
        pa.decimal128(5, -2),
        pa.dense_union([pa.field("a", pa.int32())]),
        pa.struct([("inner", pa.duration("s"))]),
    ],
)
def test_a_type_that_no_table_holds_is_refused_with_the_column(kind: pa.DataType) -> None:
    with pytest.raises(InvalidError, match="'wrong"):
        normalise(pa.schema([("fine", pa.int32()), ("wrong", kind)]))


def test_names_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(InvalidError, match="'a b'"):
        arrow_to_avro(pa.schema([("a b", pa.int32())]), "r", "n")
    with pytest.raises(InvalidError, match="Several columns have the name"):
        normalise(pa.schema([("a", pa.int32()), ("a", pa.int32())]))
    with pytest.raises(InvalidError, match="no type"):
        arrow_to_avro(pa.schema([("a", pa.null())]), "r", "n")


def test_a_table_name_becomes_a_legal_record_name() -> None:
    assert record_name("flights") == ("flights_record", "hoodie.flights")
    assert record_name("2-fast.x") == ("____fast__x_record", "hoodie.____fast__x")


def test_a_decimal_takes_as_few_bytes_as_hold_its_digits() -> None:
    assert [decimal_size_bytes(digits) for digits in (1, 2, 3, 5, 9, 10, 18, 19, 38)] == [
        1,
        1,
        2,
        3,
        4,
        5,
        8,
        9,
        16,
    ]


SIMPLE = st.sampled_from(
    [
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.binary(7),
        pa.date32(),
        pa.time32("ms"),
        pa.time64("us"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms"),
        pa.decimal128(12, 3),
    ]
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def _fields(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    return st.dictionaries(NAMES, st.tuples(children, st.booleans()), min_size=1, max_size=4).map(
        lambda fields: [pa.field(name, kind, nullable) for name, (kind, nullable) in fields.items()]
    )


TYPES = st.recursive(
    SIMPLE,
    lambda children: st.one_of(
        children.map(pa.list_),
        children.map(lambda kind: pa.map_(pa.string(), kind)),
        _fields(children).map(pa.struct),
    ),
    max_leaves=6,
)


@given(_fields(TYPES))
def test_any_schema_survives_avro(fields: list[pa.Field]) -> None:
    schema = pa.schema(fields)

    text = arrow_to_avro(schema, "t_record", "hoodie.t")

    assert avro_to_arrow(text) == schema
    assert arrow_to_avro(avro_to_arrow(text), "t_record", "hoodie.t") == text


def test_a_schema_that_unfolds_without_end_is_corrupt() -> None:
    fields: list[object] = [
        {"name": "a", "type": {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}}
    ]
    for level in range(1, 60):
        inner = [{"name": name, "type": f"r{level - 1}"} for name in "ab"]
        fields.append({"name": f"f{level}", "type": {"type": "record", "name": f"r{level}", "fields": inner}})

    with pytest.raises(CorruptTableError, match="50000 fields"):
        avro_to_arrow(json.dumps({"type": "record", "name": "top", "fields": fields}))


def test_a_union_of_several_types_is_a_struct_for_reading_only() -> None:
    union = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int", "string"]}]}

    assert avro_to_arrow(json.dumps(union), with_unions=True) == pa.schema(
        [pa.field("a", pa.struct([("member0", pa.int32()), ("member1", pa.string())]))]
    )
    with pytest.raises(UnsupportedError, match="'a'"):
        avro_to_arrow(json.dumps(union))
