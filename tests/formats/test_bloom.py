"""Bloom filters against those that the JVM writer made."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.bloom import SIMPLE, SIMPLE_HEAD, BloomFilter, fill_filters

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "bloom_vectors.json").read_text())


def text_of(packed: str) -> str:
    return base64.b64encode(zlib.decompress(base64.b64decode(packed))).decode()


def long_keys(count: int) -> pa.Array:
    return pa.array([f"ключ-{number * 7919}" for number in range(count)], pa.string())


@pytest.mark.parametrize("vector", VECTORS["filters"], ids=lambda vector: str(vector["table"]))
def test_filter_of_a_real_base_file_is_rebuilt_to_the_letter(vector: dict[str, Any]) -> None:
    assert BloomFilter.build(pa.array(vector["keys"])).encode() == text_of(vector["filter"])


@pytest.mark.parametrize(("count", "digest"), VECTORS["long"]["counts"].items())
def test_rows_are_added_and_then_filled_in_turn_as_the_jvm_does(count: str, digest: str) -> None:
    text = BloomFilter.build(long_keys(int(count))).encode()
    assert hashlib.sha256(text.encode()).hexdigest() == digest


def test_keys_added_in_portions_give_the_same_filter() -> None:
    keys = long_keys(125_000)
    portions = BloomFilter.empty()
    for start in range(0, len(keys), 7_001):
        portions.add(keys[start : start + 7_001])
    assert portions.encode() == BloomFilter.build(keys).encode()


@pytest.mark.parametrize("count", [0, 1, 60_000, 60_001, 130_000])
def test_decoded_filter_has_all_its_keys_and_encodes_to_the_same_text(count: int) -> None:
    keys = long_keys(count)
    text = BloomFilter.build(keys).encode()
    decoded = BloomFilter.decode(text, "DYNAMIC_V0")
    assert decoded.contains(keys).all()
    assert decoded.encode() == text


@pytest.mark.parametrize("added", [1, 10, 3_000])
def test_keys_added_to_a_decoded_filter_give_the_text_of_a_filter_of_all(added: int) -> None:
    keys = long_keys(61_000 + added)
    decoded = BloomFilter.decode(BloomFilter.build(keys[:61_000]).encode(), "DYNAMIC_V0")
    assert not decoded.contains(keys[61_000:]).any()
    decoded.add(keys[61_000:])
    assert decoded.contains(keys[61_000:]).all()
    assert decoded.encode() == BloomFilter.build(keys).encode()


def test_simple_filter_of_the_jvm_is_read() -> None:
    text = text_of(VECTORS["simple"]["filter"])
    bloom = BloomFilter.decode(text, "SIMPLE")
    assert bloom.contains(pa.array([f"k{number}" for number in range(1000)])).all()
    assert not bloom.contains(pa.array([f"z{number}" for number in range(1000)])).any()
    assert bloom.encode() == text


def test_full_small_filter_is_small_and_refuses_foreign_keys() -> None:
    bloom = BloomFilter.build(long_keys(1000), capacity=1000)
    foreign = pa.array([f"other-{number}" for number in range(20_000)])
    assert len(bloom.encode()) < 10_000
    assert not bloom.contains(foreign).any()


def test_order_and_slices_of_keys_do_not_matter_within_a_row() -> None:
    keys = pa.array(["", "a", "bb", "ccc", "dddd", "eeeee", "é", "鍵", "😀", "x" * 1000])
    shuffled = keys.take(pa.array(np.arange(len(keys))[::-1]))
    padded = pa.concat_arrays([pa.array(["front"]), keys, pa.array(["back"])]).slice(1, len(keys))
    assert BloomFilter.build(shuffled).encode() == BloomFilter.build(keys).encode()
    assert BloomFilter.build(padded).encode() == BloomFilter.build(keys).encode()


@pytest.mark.parametrize("text", ["", "not base64!", "AAAA", base64.b64encode(bytes(60)).decode()])
@pytest.mark.parametrize("type_code", ["SIMPLE", "DYNAMIC_V0"])
def test_damaged_filter_is_refused(text: str, type_code: str) -> None:
    with pytest.raises(CorruptTableError, match="damaged"):
        BloomFilter.decode(text, type_code)


def test_shortened_filter_is_refused() -> None:
    text = BloomFilter.build(long_keys(10)).encode()
    with pytest.raises(CorruptTableError, match="damaged"):
        BloomFilter.decode(text[:-400], "DYNAMIC_V0")


@pytest.mark.parametrize("wrong", ["*", "=", "é", "\n"])
def test_a_letter_that_is_not_base64_far_from_the_head_is_refused(wrong: str) -> None:
    text = BloomFilter.build(long_keys(10)).encode()
    with pytest.raises(CorruptTableError, match="damaged"):
        BloomFilter.decode(text[:-50] + wrong + text[-49:], "DYNAMIC_V0")


def test_filter_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="RIBBON"):
        BloomFilter.decode("", "RIBBON")


def test_a_filter_with_more_hashes_than_any_needs_is_refused() -> None:
    # All bits are set: a lookup would go through two thousand million hashes.
    image = SIMPLE_HEAD.pack(-1, 2**31 - 1, 1, 64) + b"\xff" * 8
    with pytest.raises(CorruptTableError, match="hashes"):
        BloomFilter.decode(base64.b64encode(image).decode(), SIMPLE)


@pytest.mark.parametrize("rate", [BloomFilter.DEFAULT_RATE, BloomFilter.LOOSE_RATE])
def test_filters_that_are_filled_together_are_those_filled_apart(rate: float) -> None:
    keys = [
        pa.array([f"{'ü' * (row % 3)}file{number}-{row}" for row in range(rows)])
        for number, rows in enumerate((1, 160, 7, 20_000, 33))
    ]
    together = [(BloomFilter.empty(len(each), false_positives=rate), each) for each in keys]
    fill_filters(together)
    for bloom, each in together:
        apart = BloomFilter.empty(len(each), false_positives=rate)
        apart.add(each)
        assert bloom.encode() == apart.encode()
        assert bloom.keys == apart.keys
        assert bloom.contains(each).all()
