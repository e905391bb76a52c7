"""Delete blocks with many records are read column by column, and say the same as records read one by one."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError
from drawstring.base.limits import Limits
from drawstring.formats.log_inline import DeleteRecords, decode_deletes, encode_deletes
from drawstring.testing import with_limits

RECORDS_MIN = Limits().delete_columns_records_min
MANY = RECORDS_MIN + 12
LONGS = st.none() | st.integers(-(2**63), 2**63 - 1)


def one_by_one(content: bytes) -> DeleteRecords:
    with with_limits(delete_columns_records_min=1 << 40):
        return decode_deletes(content)


def check_same(content: bytes) -> None:
    found, expected = decode_deletes(content), one_by_one(content)

    assert found.keys == expected.keys
    assert found.is_commit_time == expected.is_commit_time
    assert found.ordering == expected.ordering
    if expected.ordering is not None:
        assert found.ordering is not None
        assert found.ordering.type == expected.ordering.type


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, None, False]),
        pa.array([7, None, 0], pa.int32()),
        pa.array([2**40, 0, -(2**63)], pa.int64()),
        pa.array([1.5, None, float("-inf")], pa.float32()),
        pa.array([1.1, None, 2.5e300], pa.float64()),
        pa.array(["é" * 100, None, ""]),
        pa.array([dt.date(2024, 1, 15), None, dt.date(1960, 1, 1)]),
        pa.array([1_700_000_000_123_456, None, -1], pa.timestamp("us", "UTC")),
        pa.array([None, None, None], pa.int64()),
        pa.array([b"\xff\x00", None, b"x"]),
        pa.StructArray.from_arrays([pa.array([1, None, 2]), pa.array(["x", "y", None])], names=["a", "b"]),
    ],
)
@pytest.mark.parametrize("partition", ["", "a/b", "p" * 9_000])
def test_many_deletes_have_the_values_of_deletes_read_one_by_one(values: pa.Array, partition: str) -> None:
    keys = pa.array([f"\x02key{'x' * (number % 80 * 50)}{number}" for number in range(MANY)])
    ordering = pa.concat_arrays([values] * (MANY // 3))

    check_same(encode_deletes(keys, partition, ordering))


def test_ints_beside_longs_become_longs() -> None:
    ints = encode_deletes(pa.array(["a"] * MANY), "p", pa.array([5] * MANY, pa.int32()))

    check_same(ints.replace(b"\x04\x0a", b"\x06\x0a", 7))


@given(st.lists(st.tuples(st.text(max_size=200), LONGS), min_size=RECORDS_MIN, max_size=120))
def test_any_many_deletes_survive(rows: list[tuple[str, int | None]]) -> None:
    keys = pa.array([key for key, _ in rows], pa.string())
    ordering = pa.array([value for _, value in rows], pa.int64())

    check_same(encode_deletes(keys, "p", ordering))


@given(st.data())
def test_a_flipped_byte_that_leaves_many_deletes_readable_changes_them_alike(drawn: st.DataObject) -> None:
    keys = pa.array([f"key-{number}" for number in range(MANY)])
    ordering = pa.array([None if number % 3 else number << 30 for number in range(MANY)], pa.int64())
    content = bytearray(encode_deletes(keys, "a/b", ordering))
    at = drawn.draw(st.integers(8, len(content) - 1))
    content[at] ^= drawn.draw(st.integers(1, 255))

    try:
        one_by_one(bytes(content))
    except CorruptTableError:
        return  # the partition path of a delete is not looked at otherwise
    check_same(bytes(content))
