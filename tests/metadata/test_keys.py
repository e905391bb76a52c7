"""Keys of metadata records: hashes with known values, and escaped secondary keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.metadata.table import (
    decode_secondary_key,
    encode_secondary_value,
    file_hash,
    name_hash,
    partition_hash,
    xxh64,
)


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("I want an unsigned 64-bit seed!", 0xD4CB0A70A2B8C7C1),
        ("The quick brown fox jumps over the lazy dog", 0x0B242D361FDA71BC),
    ],
)
def test_hashes_are_those_of_xxh64(text: str, hashed: int) -> None:
    assert xxh64(text.encode(), seed=0) == hashed


def test_another_seed_gives_another_hash() -> None:
    assert xxh64(b"I want an unsigned 64-bit seed!", seed=1) == 0xCE5087F12470D961


def test_keys_have_the_hashes_of_apache_hudi() -> None:
    assert name_hash("id") == "sLZoasJosec="
    assert name_hash("0") == "06zdpyCf3Jg="
    assert file_hash("a.parquet") == "ziWfGpvMZP1XYkarUrP7AA=="
    assert partition_hash("") == name_hash(".")


@pytest.mark.parametrize(
    ("key", "value", "record_key"),
    [
        ("plain$1", "plain", "1"),
        (r"a\$b$id\$1", "a$b", "id$1"),
        (r"back\\$\\", "back\\", "\\"),
        ("$1", "", "1"),
        ("\0$1", None, "1"),
        ("\\\0$1", "\0", "1"),
        ("two\nlines$1", "two\nlines", "1"),
    ],
)
def test_secondary_keys_are_split_and_unescaped(key: str, value: str | None, record_key: str) -> None:
    assert decode_secondary_key(key) == (value, record_key)


@given(st.text("a$\\\0ä", max_size=6), st.text("a$\\\0", max_size=3))
def test_values_are_found_by_the_beginning_of_their_keys(value: str, record_key: str) -> None:
    escaped = encode_secondary_value(record_key).removesuffix("$")
    assert decode_secondary_key(encode_secondary_value(value) + escaped) == (value, record_key)


def test_a_secondary_key_without_its_separator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no \$"):
        decode_secondary_key(r"a\$b")
