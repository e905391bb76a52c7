"""The types that Hudi 1.2 adds: as what they are stored, and what columns may be one."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.schema.avro import arrow_to_avro, avro_to_arrow
from drawstring.schema.evolution import conform, evolve, normalise
from drawstring.schema.internal_schema import first_history
from drawstring.schema.logical_types import (
    BLOB,
    VARIANT,
    described_type,
    descriptor,
    vector_columns,
    vector_type,
)

FLOATS, DOUBLES = vector_type(3), vector_type(2, pa.float64())
BYTES = vector_type(4, pa.int8())
COLUMNS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("v", FLOATS),
        pa.field("d", DOUBLES),
        pa.field("i", BYTES),
        pa.field("w", FLOATS),
        pa.field("b", BLOB),
        pa.field("ts", pa.int64()),
    ]
)


def fixed(name: str, size: int, dimension: int, element: str) -> dict[str, Any]:
    return {
        "type": "fixed",
        "name": name,
        "namespace": "",
        "size": size,
        "logicalType": "vector",
        "dimension": dimension,
        "elementType": element,
        "storageBacking": "FIXED_BYTES",
    }


def nullable(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


REFERENCE = {
    "type": "record",
    "name": "reference",
    "fields": [
        {"name": "external_path", "type": "string"},
        {"name": "offset", "type": ["null", "long"]},
        {"name": "length", "type": ["null", "long"]},
        {"name": "managed", "type": "boolean"},
    ],
}
STORAGE_TYPE = {"type": "enum", "name": "blob_storage_type", "symbols": ["INLINE", "OUT_OF_LINE"]}
BLOB_RECORD = {
    "type": "record",
    "name": "blob",
    "namespace": "",
    "fields": [
        {"name": "type", "type": STORAGE_TYPE},
        nullable("data", "bytes"),
        nullable("reference", REFERENCE),
    ],
    "logicalType": "blob",
}
OF_HUDI = {
    "type": "record",
    "name": "t1_record",
    "namespace": "hoodie.t1",
    "fields": [
        nullable("id", "string"),
        nullable("v", fixed("vector_float_3", 12, 3, "FLOAT")),
        nullable("d", fixed("vector_double_2", 16, 2, "DOUBLE")),
        nullable("i", fixed("vector_int8_4", 4, 4, "INT8")),
        nullable("w", "vector_float_3"),
        nullable("b", BLOB_RECORD),
        nullable("ts", "long"),
    ],
}
"""The schema that Hudi 1.2.0 stored of a table with these columns; the second VECTOR(3) names the first."""


def told(name: str) -> dict[str, str]:
    return {"hudi_type": name}


def rows(kind: pa.DataType, *values: Any) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, kind)})


def vectors(*values: Any, kind: pa.DataType = FLOATS) -> list[Any]:
    given = rows(pa.list_(pa.float64()), *values)
    return list(conform(given, pa.schema([("v", kind)])).column(0).to_pylist())


def test_the_schema_of_a_table_is_the_one_that_hudi_stores() -> None:
    stored = arrow_to_avro(COLUMNS, "t1_record", "hoodie.t1")
    assert stored == json.dumps(OF_HUDI, separators=(",", ":"))
    assert avro_to_arrow(stored) == COLUMNS
    assert vector_columns(COLUMNS) == "v:VECTOR(3),d:VECTOR(2, DOUBLE),i:VECTOR(4, INT8),w:VECTOR(3)"


def test_a_variant_is_a_record_of_metadata_and_value() -> None:
    stored = json.loads(arrow_to_avro(pa.schema([("x", VARIANT)]), "t_record", "hoodie.t"))
    kind = stored["fields"][0]["type"][1]
    assert (kind["name"], kind["namespace"], kind["logicalType"]) == ("x", "hoodie.t.t_record", "variant")
    parts = [(each["name"], each["type"], each["doc"]) for each in kind["fields"]]
    assert parts == [
        ("metadata", "bytes", "Variant metadata component"),
        ("value", "bytes", "Variant value component"),
    ]


def test_blobs_inside_of_other_columns_are_blobs() -> None:
    kind = pa.struct([("n", pa.int32()), ("b", BLOB)])
    nested = pa.schema([("s", kind), ("l", pa.list_(pa.field("item", BLOB))), ("b", BLOB)])
    stored = arrow_to_avro(nested, "t_record", "hoodie.t")
    assert avro_to_arrow(stored) == nested
    assert stored.count("blob_storage_type") == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("VECTOR(3)", FLOATS),
        ("vector( 3 , float )", FLOATS),
        ("VECTOR(3, FLOAT, FIXED_BYTES)", FLOATS),
        ("VECTOR(2,DOUBLE)", DOUBLES),
        ("VECTOR(4, INT8)", BYTES),
        ("blob", BLOB),
        ("VARIANT", VARIANT),
    ],
)
def test_columns_of_arrow_name_the_type_in_their_metadata(text: str, kind: pa.DataType) -> None:
    given = pa.list_(kind.value_type) if pa.types.is_fixed_size_list(kind) else kind
    assert normalise(pa.schema([pa.field("c", given, metadata=told(text))])).field("c").type == kind
    assert described_type(descriptor(kind) or "", "c") == kind


@pytest.mark.parametrize(
    "text",
    [
        "VECTOR",
        "VECTOR()",
        "VECTOR(0)",
        "VECTOR(-1)",
        "VECTOR(3, BIGINT)",
        "VECTOR(3, FLOAT, X)",
        "BLOB(1)",
        "X",
    ],
)
def test_a_name_of_no_type_is_refused(text: str) -> None:
    column = pa.field("c", pa.list_(pa.float32()), metadata=told(text))
    with pytest.raises(
        InvalidError, match=r"'c' has the Hudi type .* there is not\. Write VECTOR\(dimension\)"
    ):
        normalise(pa.schema([column]))


def test_a_column_of_another_shape_than_its_type_is_refused() -> None:
    of_doubles = pa.field("c", pa.list_(pa.float64()), metadata=told("VECTOR(3)"))
    with pytest.raises(InvalidError, match=r"'c' is VECTOR\(3\) by its entry 'hudi_type', but has type list"):
        normalise(pa.schema([of_doubles]))
    texts = pa.struct([("metadata", pa.string()), ("value", pa.binary())])
    with pytest.raises(InvalidError, match="'c' is VARIANT by its entry 'hudi_type', but has type struct"):
        normalise(pa.schema([pa.field("c", texts, metadata=told("VARIANT"))]))
    short = pa.struct([("type", pa.string()), ("data", pa.binary())])
    with pytest.raises(InvalidError, match="'c' is BLOB by its entry 'hudi_type', but has type struct"):
        normalise(pa.schema([pa.field("c", short, metadata=told("BLOB"))]))
    inner = pa.field("v", pa.list_(pa.float32()), metadata=told("VECTOR(3)"))
    with pytest.raises(InvalidError, match=r"VECTOR column 's\.v' is inside of a struct"):
        normalise(pa.schema([("s", pa.struct([inner]))]))


def test_a_vector_stays_one_in_another_process() -> None:
    assert pickle.loads(pickle.dumps(COLUMNS)) == COLUMNS
    assert normalise(pickle.loads(pickle.dumps(COLUMNS))) == COLUMNS


def test_a_list_of_fixed_size_whose_items_may_be_null_is_a_list() -> None:
    assert normalise(pa.schema([("c", pa.list_(pa.float32(), 3))])).field("c").type == pa.list_(pa.float32())


def test_lists_become_the_vectors_of_their_column() -> None:
    assert vectors([1, 2, 3.5], None, [4, 5, 0.1]) == [[1, 2, 3.5], None, [4, 5, pytest.approx(0.1)]]
    assert vectors(None, None) == [None, None]
    assert vectors([1.0, -128, 3, 127], kind=BYTES) == [[1, -128, 3, 127]]


@pytest.mark.parametrize(
    ("value", "kind", "error"),
    [
        ([1.0, 2.0], FLOATS, r"'v' is VECTOR\(3\), but a row has 2 numbers"),
        ([], FLOATS, r"'v' is VECTOR\(3\), but a row has 0 numbers"),
        ([1.0, None, 3.0], FLOATS, r"'v' is VECTOR\(3\), but a vector has a null"),
        ([1.0, 2.0, 3.0, 128.0], BYTES, r"'v' is VECTOR\(4, INT8\), but .*128"),
        ([1.0, 2.0, 3.0, 0.5], BYTES, r"'v' is VECTOR\(4, INT8\), but "),
    ],
)
def test_lists_that_are_no_vectors_of_their_column_are_refused(
    value: list[Any], kind: pa.DataType, error: str
) -> None:
    with pytest.raises(InvalidError, match=error):
        vectors(None, value, kind=kind)


def test_a_table_keeps_its_vector_whatever_lists_are_written() -> None:
    table = pa.schema([("v", FLOATS)])
    assert evolve(table, pa.schema([("v", pa.list_(pa.float64()))])) == table
    assert evolve(table, pa.schema([("v", pa.list_(pa.float32(), 3))])) == table
    with pytest.raises(InvalidError, match=r"'v' is VECTOR\(3\) in the table and VECTOR\(2, DOUBLE\) in"):
        evolve(table, pa.schema([("v", DOUBLES)]))
    with pytest.raises(InvalidError, match=r"'v' is list<.*> in the table and VECTOR\(3\) in"):
        evolve(pa.schema([("v", pa.list_(pa.float32()))]), table)


def test_a_blob_has_the_fields_of_a_blob_and_one_of_two_types() -> None:
    table = pa.schema([("v", BLOB)])
    short = pa.struct([("type", pa.string()), ("data", pa.binary())])
    assert evolve(table, pa.schema([("v", short)])) == table
    with pytest.raises(InvalidError, match=r"'v' is BLOB in the table and struct<.*mime"):
        evolve(table, pa.schema([("v", pa.struct([*short, ("mime", pa.string())]))]))
    stored = conform(rows(short, {"type": "INLINE", "data": b"x"}, None), table).column(0).to_pylist()
    assert stored == [{"type": "INLINE", "data": b"x", "reference": None}, None]
    with pytest.raises(InvalidError, match="'v' is a BLOB of type 'inline'"):
        conform(rows(short, {"type": "inline", "data": b"x"}), table)
    with pytest.raises(InvalidError, match=r"'v\.type' must not be null"):
        conform(rows(short, {"type": None, "data": b"x"}), table)


def test_versions_of_a_schema_have_none_of_these_types() -> None:
    for kind in (FLOATS, BLOB, VARIANT):
        with pytest.raises(UnsupportedError, match=r"'c' is .*, which versions of a schema"):
            first_history(pa.schema([("c", kind)]))


def test_a_vector_whose_size_is_wrong_is_damage() -> None:
    damaged = arrow_to_avro(pa.schema([("v", FLOATS)]), "t_record", "").replace('"size":12', '"size":13')
    with pytest.raises(CorruptTableError, match=r"a VECTOR of 3, FLOAT does not have 13 bytes"):
        avro_to_arrow(damaged)
