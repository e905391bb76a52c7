"""The hash and order of Java strings, against a plain reading of their definition."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.java_compat import java_min_max, string_hash

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=30)


def java_hash(text: str) -> int:
    units = text.encode("utf-16-be")
    total = 0
    for at in range(0, len(units), 2):
        total = (31 * total + int.from_bytes(units[at : at + 2], "big")) % 2**32
    return total - 2**32 if total >= 2**31 else total


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("ab😀é", 147461157)],
)
def test_hash_is_that_of_the_jvm(text: str, expected: int) -> None:
    assert string_hash(pa.array([text])).tolist() == [expected]


@given(TEXTS)
def test_hashes_of_any_texts_follow_the_definition(texts: list[str | None]) -> None:
    expected = [0 if text is None else java_hash(text) for text in texts]
    assert string_hash(pa.array(texts, pa.string())).tolist() == expected
    assert string_hash(pa.array(texts, pa.large_string())).tolist() == expected
    assert string_hash(pa.array(texts, pa.string()).dictionary_encode()).tolist() == expected


def test_texts_longer_and_shorter_than_a_block_are_hashed_alike() -> None:
    texts = ["é" * 100_000, "x" * 200_000, "", *(f"key-{number}" for number in range(20_000))]
    assert string_hash(pa.array(texts)).tolist() == [java_hash(text) for text in texts]


def test_slice_is_hashed_as_what_it_shows() -> None:
    texts = [None if number % 7 == 0 else f"鍵{number}" for number in range(100)]
    expected = [0 if text is None else java_hash(text) for text in texts[13:60]]
    assert string_hash(pa.array(texts).slice(13, 47)).tolist() == expected


@given(st.integers(0, 40), st.data())
def test_texts_of_one_length_are_hashed_as_any_others_are(size: int, data: st.DataObject) -> None:
    letters = st.characters(max_codepoint=data.draw(st.sampled_from((0x7F, 0xFF))))
    texts = data.draw(st.lists(st.text(letters, min_size=size, max_size=size), max_size=6))
    assert string_hash(pa.array(["elsewhere", *texts]).slice(1)).tolist() == [
        java_hash(each) for each in texts
    ]


def test_many_texts_of_one_length_are_hashed_alike() -> None:
    texts = [f"ride-{number:012d}" for number in range(10_000)]
    assert string_hash(pa.array(texts)).tolist() == [java_hash(text) for text in texts]


@given(TEXTS)
def test_smallest_and_largest_are_by_code_unit(texts: list[str | None]) -> None:
    present = sorted((text for text in texts if text is not None), key=lambda text: text.encode("utf-16-be"))
    expected = (present[0], present[-1]) if present else (None, None)
    assert java_min_max(pa.array(texts, pa.string())) == expected


def test_character_above_the_basic_plane_sorts_before_private_use() -> None:
    assert java_min_max(pa.array(["\ue000", "😀", "\uffee"])[0:3]) == ("😀", "\uffee")
