"""Positions of records as headers of log blocks: of real files, of CRoaring, and damaged ones."""

from __future__ import annotations

import base64
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError
from drawstring.formats.log_inline import HeaderKey
from drawstring.formats.record_positions import decode_bitmap, decode_list, encode_bitmap, encode_list
from tests.support.hudi_files import data, scan

positions = st.sets(st.integers(0, 200_000) | st.integers(0, (1 << 62) - 1))
runs = st.lists(st.tuples(st.integers(0, 1 << 33), st.integers(1, 100_000)), max_size=3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v9_avro.log", [[1, 2]]),
        ("v9_delete.log", [[1]]),
        ("v9_soft_delete.log", [[2], [1]]),
        ("v9_parquet.log", [[2, 3, 4, 5, 6, 7, 8]]),
        ("v9_partial.log", [[1]]),
    ],
)
def test_positions_are_read_and_written_as_hudi_wrote_them(name: str, expected: list[list[int]]) -> None:
    headers = [block.header[HeaderKey.RECORD_POSITIONS] for block in scan(data(name))]
    assert [decode_bitmap(header).tolist() for header in headers] == expected
    assert [encode_bitmap(np.array(numbers)) for numbers in expected] == headers


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([], "AAAAAAAAAAA="),
        (range(100, 5000), "AQAAAAAAAAAAAAAAOzAAAAEAACMTAQBkACMT"),
        (
            [1, 70000, 140000, 210000, 280000],
            "AQAAAAAAAAAAAAAAOjAAAAUAAAAAAAAAAQAAAAIAAAADAAAABAAAADAAAAAyAAAANAAAADYAAAA4AAAAAQBwEeAiUDTARQ==",
        ),
        (
            [*range(100), 70000, *range(140000, 140500), 210000],
            "AQAAAAAAAAAAAAAAOzADAAUAAGMAAQAAAAIA8wEDAAAAJQAAACsAAAAtAAAAMwAAAAEAAABjAHARAQDgIvMBUDQ=",
        ),
        (
            [5, 1 << 32, (1 << 32) + 1, 7 << 33],
            "AwAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAUAAQAAADowAAABAAAAAAABABAAAAAAAAEADgAAADowAAABAAAAAAAAABAAAAAAAA==",
        ),
    ],
    ids=["none", "a run", "five containers", "five containers with runs", "three bitmaps"],
)
def test_a_bitmap_has_the_bytes_of_croaring(numbers: Any, expected: str) -> None:
    assert encode_bitmap(np.array(numbers, np.int64)) == expected
    assert decode_bitmap(expected).tolist() == list(numbers)


@pytest.mark.parametrize(
    ("numbers", "digest"),
    [
        (range(0, 20_000, 5), "d15265f20c0809f2895a9fc29acdacf7a3ddc9a5d82e0cd87c4a6fd4bd7ed386"),
        (range(0, 60_000, 3), "5312ad8851606f02d350e15e0f514cdcd2e6a4a16f9837250cb41aabc587f76b"),
    ],
    ids=["numbers", "bits"],
)
def test_a_large_container_has_the_bytes_of_croaring(numbers: range, digest: str) -> None:
    encoded = encode_bitmap(np.array(numbers))
    assert sha256(encoded.encode()).hexdigest() == digest
    assert decode_bitmap(encoded).tolist() == list(numbers)


@given(positions, runs)
def test_a_bitmap_comes_back(some: set[int], ranges: list[tuple[int, int]]) -> None:
    parts = [np.array(sorted(some), np.int64), *(np.arange(start, start + count) for start, count in ranges)]
    numbers = np.unique(np.concatenate(parts))
    assert np.array_equal(decode_bitmap(encode_bitmap(numbers)), numbers)


def test_a_list_has_a_count_and_varints_in_the_order_of_the_records() -> None:
    encoded = encode_list(np.array([300, 2, 7]))
    assert base64.b64decode(encoded) == bytes([0, 0, 0, 3, 0xAC, 0x02, 2, 7])
    assert decode_list(encoded).tolist() == [300, 2, 7]


@given(positions.map(list))
def test_a_list_comes_back(numbers: list[int]) -> None:
    assert decode_list(encode_list(np.array(numbers, np.int64))).tolist() == numbers


def altered(text: str, at: int, byte: int) -> str:
    content = bytearray(base64.b64decode(text))
    content[at % len(content)] = byte
    return base64.b64encode(content).decode()


@pytest.mark.parametrize("decode", [decode_bitmap, decode_list])
@pytest.mark.parametrize(
    "text", ["no base64!", "", "AA==", "AAAAAw==", "AQAAAAAAAAAAAAAAOjAAAAEA", "//////////8="]
)
def test_damaged_positions_are_refused(decode: Callable[[str], Any], text: str) -> None:
    with pytest.raises(CorruptTableError, match="positions of a log block are damaged"):
        decode(text)


@given(positions, runs, st.integers(0, 1 << 20), st.integers(0, 255), st.integers(0, 1 << 20))
def test_damage_ends_in_ascending_positions_or_an_error(
    some: set[int], ranges: list[tuple[int, int]], at: int, byte: int, length: int
) -> None:
    parts = [np.array(sorted(some), np.int64), *(np.arange(start, start + count) for start, count in ranges)]
    numbers = np.unique(np.concatenate(parts))
    for encoded, decode in ((encode_bitmap(numbers), decode_bitmap), (encode_list(numbers), decode_list)):
        for damaged in (altered(encoded, at, byte), encoded[: length % len(encoded) // 4 * 4]):
            try:
                found = decode(damaged)
            except CorruptTableError:
                continue
            assert decode is decode_list or (np.diff(found) > 0).all()
