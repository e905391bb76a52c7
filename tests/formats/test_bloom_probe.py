"""A filter in a footer is asked about few keys without decoding it, and answers as the decoded one does."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.formats.bloom import (
    DYNAMIC,
    DYNAMIC_HEAD,
    SIMPLE,
    SIMPLE_HEAD,
    BloomFilter,
    BloomShape,
    may_have_any,
)
from drawstring.formats.bloom_footer import may_hold_any
from tests.support.footers import footer_of

TEXTS = st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=9, unique=True)


@given(TEXTS, TEXTS, st.integers(1, 4))
def test_it_answers_as_the_decoded_filter_does(inside: list[str], others: list[str], capacity: int) -> None:
    bloom = BloomFilter.empty(capacity, 8, 0.3)
    bloom.add(pa.array(inside))
    for kind in (bloom, BloomFilter(BloomShape(13, 3), 1, 1, SIMPLE)):
        kind.add(pa.array(inside))
        text = kind.encode()
        decoded = BloomFilter.decode(text, kind.type_code)
        for key in (*inside, *others):
            expected = bool(decoded.contains(pa.array([key]))[0])
            assert may_have_any(text.encode(), kind.type_code, [key]) == expected
        assert may_have_any(text.encode(), kind.type_code, [*others, inside[0]])


def test_a_filter_of_many_rows_has_its_keys_and_hardly_others() -> None:
    keys = [f"key-{number}" for number in range(1_000)]
    bloom = BloomFilter.build(pa.array(keys), capacity=100).encode().encode()
    assert all(may_have_any(bloom, DYNAMIC, [key]) for key in keys[::7])
    assert not any(may_have_any(bloom, DYNAMIC, [f"other-{number}"]) for number in range(100))


def with_hashes(image: bytes) -> bytes:
    """Return a filter of one row that has all bits set and a key of which has 2^31 - 1 of them."""
    at = DYNAMIC_HEAD.size
    version, _, kind, bits = SIMPLE_HEAD.unpack_from(image, at)
    return (
        image[:at]
        + SIMPLE_HEAD.pack(version, 2**31 - 1, kind, bits)
        + b"\xff" * (len(image) - at - SIMPLE_HEAD.size)
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-4],
        lambda text: b"!" * len(text),
        lambda text: b"",
        lambda text: base64.b64encode(b"\xff" * 60),
        lambda text: text.replace(text[:4], b"AAAA"),
        lambda text: base64.b64encode(with_hashes(base64.b64decode(text))),
    ],
    ids=["cut", "no base64", "empty", "no filter", "another version", "endless hashes"],
)
def test_a_damaged_filter_may_have_any_key(damage: object) -> None:
    text = BloomFilter.build(pa.array(["a"])).encode().encode()
    assert callable(damage)
    assert may_have_any(damage(text), DYNAMIC, ["other"])


def test_a_filter_of_a_later_kind_may_have_any_key() -> None:
    assert may_have_any(BloomFilter.build(pa.array(["a"])).encode().encode(), "LATER", ["other"])


def test_a_footer_tells_by_its_ends_too_in_the_orders_of_java_and_of_bytes() -> None:
    low, high = "a", "\U0001f600"  # in Java's order before "\uffff", in that of UTF-8 after it
    footer = {name.encode(): text.encode() for name, text in footer_of(pa.array([low, high])).items()}
    without_filter = {name: text for name, text in footer.items() if b"bloom" not in name}
    assert may_hold_any(without_filter, ["b"])
    assert not may_hold_any(without_filter, ["A"])
    assert may_hold_any(without_filter, ["\uffff"])  # Spark's row writer orders keys by their bytes
    assert not may_hold_any(without_filter, ["\U0001f601"])
    assert may_hold_any(footer, [low]) and may_hold_any(footer, [high])
    assert not may_hold_any(footer, ["b"]) and not may_hold_any(footer, [])
    assert may_hold_any({}, ["b"])
