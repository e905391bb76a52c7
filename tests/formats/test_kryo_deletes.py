"""Delete blocks of content versions 1 and 2.

`kryo_vectors.json` holds arrays of `HoodieKey` and `DeleteRecord` as `SerializationUtils.serialize`
of Apache Hudi 1.2.0 writes them, with Kryo 4.0.2 as in the releases that wrote such blocks.
"""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.log_inline import DeleteRecords, decode_deletes

VECTORS = {
    name: bytes.fromhex(text)
    for name, text in json.loads((Path(__file__).parent / "kryo_vectors.json").read_text()).items()
}


def deletes(name: str) -> DeleteRecords:
    version = 1 if name.startswith("v1") else 2
    return decode_deletes(struct.pack(">ii", version, len(VECTORS[name])) + VECTORS[name])


def test_keys_of_version_1_are_commit_time_deletes() -> None:
    found = deletes("v1")

    assert found.keys.to_pylist() == ["id:1", "k", "ключ-😀", ""]
    assert found.ordering is None
    assert found.is_commit_time.to_pylist() == [True] * 4
    assert len(deletes("v1_empty").keys) == 0


def test_long_keys_are_read() -> None:
    digits = "0123456789" * 10

    assert deletes("v1_long").keys.to_pylist() == [digits, digits[:64], digits * 3]


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [
        ("v2_int", pa.int32(), [None, 7, -300]),
        ("v2_long", pa.int64(), [5, 1_700_000_000_123_456, None]),
        ("v2_string", pa.string(), ["2024-01-01", "ts", "ts"]),
        ("v2_double", pa.float64(), [1.5, -0.0]),
        ("v2_float", pa.float64(), [1.5]),
        ("v2_boolean", pa.bool_(), [True, False]),
        ("v2_decimal", pa.decimal128(30, 15), [Decimal("12.30"), Decimal("-1.5"), Decimal(0)]),
        ("v2_short", pa.int32(), [5, 6]),
        ("v2_twice", pa.int32(), [1, 1]),
        ("v2_key", pa.int64(), [1, 2]),
    ],
)
def test_ordering_values_of_version_2_are_read(name: str, kind: pa.DataType, values: list[Any]) -> None:
    found = deletes(name)

    assert found.ordering is not None
    assert found.ordering.type == kind
    assert found.ordering.to_pylist() == values
    assert found.is_commit_time.to_pylist() == [value is None for value in values]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("v2_timestamp", [1_700_000_000_123_000, -5_000]),
        ("v2_date", [19_724]),
        ("v2_local_date", [19_724]),
    ],
)
def test_times_of_version_2_are_read(name: str, numbers: list[int]) -> None:
    ordering = deletes(name).ordering

    assert ordering is not None
    assert ordering.cast(pa.int64() if name == "v2_timestamp" else pa.int32()).to_pylist() == numbers


def test_objects_that_occur_twice_are_the_same_delete() -> None:
    assert deletes("v2_twice").keys.to_pylist() == ["a1", "a1"]
    assert deletes("v2_key").keys.to_pylist() == ["a1", "a1"]


@pytest.mark.parametrize(("name", "what"), [("v2_big", "java.math.BigInteger"), ("other", "class number 41")])
def test_other_objects_are_refused_by_name(name: str, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        deletes(name)


def test_a_null_among_the_records_is_corrupt() -> None:
    with pytest.raises(CorruptTableError):
        deletes("v2_null")


@pytest.mark.parametrize("scale", ["ffffffff0f", "feffffff0f"])
def test_a_decimal_of_an_endless_scale_is_corrupt(scale: str) -> None:
    payload = VECTORS["v2_decimal"].replace(bytes.fromhex("0304ce04"), bytes.fromhex(f"0304ce{scale}"))
    assert payload != VECTORS["v2_decimal"]

    with pytest.raises(CorruptTableError):
        decode_deletes(struct.pack(">ii", 2, len(payload)) + payload)


@given(st.data())
def test_flipped_and_cut_bytes_give_deletes_or_a_clear_error(drawn: st.DataObject) -> None:
    name = drawn.draw(st.sampled_from(sorted(VECTORS)))
    payload = bytearray(VECTORS[name])
    for _ in range(drawn.draw(st.integers(0, 3))):
        payload[drawn.draw(st.integers(0, len(payload) - 1))] = drawn.draw(st.integers(0, 255))
    del payload[drawn.draw(st.integers(0, len(payload))) :]
    version = drawn.draw(st.sampled_from([1, 2]))

    try:
        found = decode_deletes(struct.pack(">ii", version, len(payload)) + payload)
    except (CorruptTableError, UnsupportedError):
        return
    found.keys.validate(full=True)
