"""The filter of a file that takes the place of another: no key is ever missed, stale ones are bounded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import KeySummary, StoredSummary, reusable_filter
from tests.support.footers import footer_of


def keys(start: int, stop: int) -> pa.Array:
    return pa.array([f"key-{number:06}" for number in range(start, stop)])


def filter_in(footer: dict[str, str]) -> BloomFilter:
    return BloomFilter.decode(footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"])


def successor(former: dict[str, str], rows: int, known: pa.Array, new: pa.Array) -> dict[str, str]:
    summary = KeySummary(reusable_filter(former, rows))
    for start in range(0, len(known), 9_000):
        summary.add(known[start : start + 9_000], is_known=True)
    summary.add(new)
    return summary.footer()


@pytest.mark.parametrize(
    ("rows", "new"),
    [(1_000, 0), (1_000, 500), (59_000, 5_000), (70_000, 0), (70_000, 50_000)],
    ids=["updates", "grown", "grown over the default size", "large, updates", "large, grown"],
)
def test_the_successors_filter_has_every_key(rows: int, new: int) -> None:
    footer = successor(footer_of(keys(0, rows)), rows, keys(0, rows), keys(rows, rows + new))
    bloom = filter_in(footer)
    assert bloom.contains(keys(0, rows + new)).all()
    assert bloom.contains(keys(200_000, 201_000)).sum() <= 1
    assert footer["hoodie_max_record_key"] == f"key-{rows + new - 1:06}"


@pytest.mark.parametrize(("rows", "rows_of_filter"), [(1_000, 1), (61_000, 2), (230_000, 4), (300_000, 4)])
def test_a_filter_for_few_questions_has_a_third_of_the_bits_and_more_rows(
    rows: int, rows_of_filter: int
) -> None:
    summary = KeySummary(rate=BloomFilter.LOOSE_RATE)
    summary.add(keys(0, rows))
    footer = summary.footer()
    bloom = filter_in(footer)
    assert bloom.contains(keys(0, rows)).all()
    assert bloom.contains(keys(700_000, 710_000)).mean() < 0.02
    assert len(footer["org.apache.hudi.bloomfilter"]) < rows_of_filter * 2.4 * min(rows, 60_000) + 100
    assert reusable_filter(footer, rows, BloomFilter.LOOSE_RATE) is not None
    assert reusable_filter(footer, rows, BloomFilter.DEFAULT_RATE) is None


@pytest.mark.parametrize("rows", [1_000, 70_000])
def test_keys_of_the_former_file_are_not_hashed_again(rows: int) -> None:
    former = footer_of(keys(0, rows))
    assert filter_in(successor(former, rows, keys(0, rows), keys(0, 0))).keys == filter_in(former).keys


def test_a_filter_with_too_many_keys_that_left_is_made_anew() -> None:
    former = footer_of(keys(0, 70_000))
    assert reusable_filter(former, 60_000) is not None
    assert reusable_filter(former, 50_000) is None


def test_a_filter_far_larger_than_its_file_is_made_anew() -> None:
    bloom = BloomFilter.build(keys(0, 10))
    former = {"org.apache.hudi.bloomfilter": bloom.encode(), "hoodie_bloom_filter_type_code": "DYNAMIC_V0"}
    assert reusable_filter(former, 10) is None


def test_a_filter_that_cannot_have_had_all_keys_is_made_anew() -> None:
    former = footer_of(keys(0, 70_000))
    assert reusable_filter(former, 70_001) is None


@pytest.mark.parametrize(
    "footer", [{}, {"org.apache.hudi.bloomfilter": "!", "hoodie_bloom_filter_type_code": "DYNAMIC_V0"}]
)
def test_a_file_without_a_whole_filter_hands_none_on(footer: dict[str, str]) -> None:
    assert reusable_filter(footer, 1) is None


@pytest.mark.parametrize(
    ("ends", "bounds"),
    [
        (("a", "é"), ("a", "é")),
        (("", "b"), None),
        (("a", "\ue000"), None),  # Java sorts U+10000 before it, UTF-8 after it
        (("a", "\U00010000"), None),
        ((None, None), None),
    ],
)
def test_bounds_hold_in_both_orders_of_texts_or_not_at_all(
    ends: tuple[str | None, str | None], bounds: tuple[str, str] | None
) -> None:
    assert StoredSummary(1, *ends).bounds() == bounds
