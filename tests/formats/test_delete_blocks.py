"""Delete blocks: real ones to the byte, every ordering type, damage."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.formats.log_inline import BlockType, decode_deletes, encode_deletes
from tests.support.hudi_files import content_of, data, scan


def real(name: str) -> bytes:
    """Return the content of the delete block in a file that Hudi wrote."""
    file = data(name)
    (block,) = (each for each in scan(file) if each.kind is BlockType.DELETE)
    return content_of(file, block)


def test_a_delete_operation_of_hudi_is_a_commit_time_delete() -> None:
    deletes = decode_deletes(real("v9_delete.log"))

    assert deletes.keys.to_pylist() == ["3"]
    assert deletes.ordering is None
    assert deletes.is_commit_time.to_pylist() == [True]


def test_a_soft_delete_of_hudi_carries_its_ordering_value() -> None:
    deletes = decode_deletes(real("v9_soft_delete.log"))

    assert deletes.ordering is not None
    assert deletes.ordering.type == pa.int64()
    assert deletes.is_commit_time.to_pylist() == [False] * len(deletes.keys)


@pytest.mark.parametrize(
    ("name", "partition"), [("v9_delete.log", "p0"), ("v9_soft_delete.log", "p0"), ("v9_compacted.log", "")]
)
def test_deletes_are_written_to_the_byte_as_hudi_writes_them(name: str, partition: str) -> None:
    deletes = decode_deletes(real(name))

    assert encode_deletes(deletes.keys, partition, deletes.ordering) == real(name)


def test_no_deletes_are_an_empty_list() -> None:
    content = encode_deletes(pa.array([], pa.string()), "p")

    assert content == bytes.fromhex("000000030000000100")
    assert len(decode_deletes(content).keys) == 0


@pytest.mark.parametrize(
    ("values", "back"),
    [
        (pa.array([True, None, False]), pa.bool_()),
        (pa.array([7, None, -(2**31)], pa.int32()), pa.int32()),
        (pa.array([2**40, None, -(2**63)], pa.int64()), pa.int64()),
        (pa.array([1.5, None, float("-inf")], pa.float32()), pa.float64()),
        (pa.array([1.1, None, 2.5e300], pa.float64()), pa.float64()),
        (pa.array(["é" * 100, None, ""]), pa.string()),
        (pa.array([b"\xff\x00", None, b"x"]), pa.binary()),
        (pa.array([Decimal("12.34"), None, Decimal("-0.01")], pa.decimal128(9, 2)), pa.decimal128(30, 15)),
        (pa.array([dt.date(2024, 1, 15), None, dt.date(1960, 1, 1)]), pa.int32()),
        (pa.array([1_700_000_000_123_456, None, -1], pa.timestamp("us", "UTC")), pa.int64()),
        (pa.array([1_700_000_000_123, None, -1], pa.timestamp("ms")), pa.int64()),
    ],
)
def test_every_ordering_type_comes_back(values: pa.Array, back: pa.DataType) -> None:
    keys = pa.array(["a", "b", "c"])

    deletes = decode_deletes(encode_deletes(keys, "p/q", values))

    assert deletes.keys == keys
    assert deletes.is_commit_time.to_pylist() == [False, True, False]
    assert deletes.ordering is not None
    assert deletes.ordering.type == back
    assert deletes.ordering.cast(values.type) == values


def test_several_ordering_columns_come_back_as_a_struct() -> None:
    ordering = pa.StructArray.from_arrays(
        [pa.array([1, None, None], pa.int64()), pa.array(["x", "y", None])], names=["ts", "seq"]
    )

    deletes = decode_deletes(encode_deletes(pa.array(["a", "b", "c"]), "", ordering))

    assert deletes.is_commit_time.to_pylist() == [False, False, True]
    assert deletes.ordering is not None
    assert deletes.ordering.field(0).to_pylist() == [1, None, None]
    assert deletes.ordering.field(1).to_pylist() == ["x", "y", None]


def test_an_ordering_type_that_a_delete_cannot_carry_is_refused() -> None:
    with pytest.raises(InvalidError, match="list"):
        encode_deletes(pa.array(["a"]), "p", pa.array([[1]]))


def test_a_slice_of_keys_is_encoded_as_itself() -> None:
    keys = pa.array(["a", "bb", "ccc", "d"])
    ordering = pa.array([1, 2, 3, 4], pa.int64())

    assert encode_deletes(keys.slice(1, 2), "p", ordering.slice(1, 2)) == encode_deletes(
        pa.array(["bb", "ccc"]), "p", pa.array([2, 3], pa.int64())
    )


@pytest.mark.parametrize("version", [0, 4])
def test_an_older_or_newer_content_is_not_supported(version: int) -> None:
    with pytest.raises(UnsupportedError, match=f"version {version}"):
        decode_deletes(struct.pack(">ii", version, 1) + b"\x00")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x02",
        b"\x02\x00\x00\x00\x00",  # a record without key
        b"\x02\x02\x02k\x00\x20\x00",  # an ordering branch that is not there
        b"\x00\x00",
        b"\xff" * 20,
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x02\x02k",
        b"\x04" + b"\x02\x02k\x00\x0e\x02x" + b"\x02\x02l\x00\x06\x02" + b"\x00",  # text and number
    ],
)
def test_damaged_payloads_are_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptTableError):
        decode_deletes(struct.pack(">ii", 3, len(payload)) + payload)


@given(st.sampled_from(["v9_delete.log", "v9_soft_delete.log", "v9_compacted.log"]), st.data())
def test_a_flipped_byte_gives_deletes_or_a_clear_error(name: str, drawn: st.DataObject) -> None:
    content = bytearray(real(name))
    at = drawn.draw(st.integers(0, len(content) - 1))
    content[at] ^= drawn.draw(st.integers(1, 255))

    try:
        deletes = decode_deletes(bytes(content))
    except (CorruptTableError, UnsupportedError):
        return
    assert len(deletes.keys) == len(deletes.is_commit_time)


@given(st.lists(st.tuples(st.text(max_size=200), st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=40))
def test_any_deletes_survive(rows: list[tuple[str, int | None]]) -> None:
    keys = pa.array([key for key, _ in rows], pa.string())
    ordering = pa.array([value for _, value in rows], pa.int64())

    deletes = decode_deletes(encode_deletes(keys, "p", ordering))

    assert deletes.keys == keys
    assert deletes.is_commit_time.to_pylist() == [value is None for _, value in rows]
    if np.any([value is not None for _, value in rows]):
        assert deletes.ordering == ordering
