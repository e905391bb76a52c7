"""The key summary in the footer of a base file: bloom filter, smallest and largest record key.

A file that replaces another one extends its filter, so that only keys that are new to the file group are
hashed. Keys that left the group stay in the filter until they are too many: they are false positives, for
which Hudi reads the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.base.errors import DrawstringError
from drawstring.base.java_compat import java_min_max
from drawstring.formats.bloom import DYNAMIC, SIMPLE, BloomFilter, fill_filters, may_have_any

FILTER: Final = "org.apache.hudi.bloomfilter"
FILTER_TYPE: Final = "hoodie_bloom_filter_type_code"
SMALLEST_KEY: Final = "hoodie_min_record_key"
LARGEST_KEY: Final = "hoodie_max_record_key"

STALE_SHARE: Final = 1 / 4
"""Ratio of stale keys in a filter to rows of its file from which the filter is rebuilt."""

OVERFULL_SHARE: Final = 1 / 8
"""Share of a filter's capacity by which new keys may exceed it: the rate of false positives grows to 1e-8."""

CAPACITY_SHARE: Final = 2
"""Ratio of a filter's capacity to the rows of its file above which it is rebuilt with a smaller one."""

_FIRST_SURROGATE: Final = "\ud800"
"""Texts without characters from here on are before or after any other one alike in both orders."""


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """The key summary of a stored file.

    Attributes:
        rows: number of rows in the file.
        smallest, largest: smallest and largest key in the order of Java strings, None if not stored.
        filter_text, filter_type: text and type of the bloom filter, empty if there is none.
    """

    rows: int
    smallest: str | None = None
    largest: str | None = None
    filter_text: str = ""
    filter_type: str = ""

    @staticmethod
    def of(footer: Mapping[str, str], rows: int) -> StoredSummary:
        """Return the summary in the entries of a footer."""
        texts = (footer.get(FILTER, ""), footer.get(FILTER_TYPE) or SIMPLE)
        return StoredSummary(rows, footer.get(SMALLEST_KEY), footer.get(LARGEST_KEY), *texts)

    def may_hold_any(self, keys: Sequence[str]) -> bool:
        """Return whether the file may have any of a few keys; False is certain."""
        ends = self.smallest or "", self.largest or ""
        return _may_hold_any(ends, self.filter_text.encode(), self.filter_type, keys)

    def bounds(self) -> tuple[str, str] | None:
        """Return bounds of the keys in the order of their UTF-8 bytes; None if that of Java has others."""
        smallest, largest = self.smallest or "", self.largest or ""
        is_alike = all(each and max(each) < _FIRST_SURROGATE for each in (smallest, largest))
        return (smallest, largest) if is_alike else None

    def bloom_filter(self) -> BloomFilter | None:
        """Return the filter; None if there is none, or it cannot be read."""
        try:
            return BloomFilter.decode(self.filter_text, self.filter_type) if self.filter_text else None
        except DrawstringError:
            return None


def may_hold_any(footer: Mapping[bytes, bytes], keys: Sequence[str]) -> bool:
    """Return whether a file may have any of a few keys; False is certain.

    Args:
        footer: entries of the file's footer.
        keys: record keys.
    """
    ends = footer.get(SMALLEST_KEY.encode(), b"").decode(), footer.get(LARGEST_KEY.encode(), b"").decode()
    filter_type = footer.get(FILTER_TYPE.encode(), SIMPLE.encode()).decode()
    return _may_hold_any(ends, footer.get(FILTER.encode(), b""), filter_type, keys)


def _may_hold_any(ends: tuple[str, str], text: bytes, filter_type: str, keys: Sequence[str]) -> bool:
    """Return whether there may be any of some keys between two ends, empty if unknown, and in a filter."""
    if all(ends):
        # Writers of Avro records order keys as Java does, those of Spark's rows by their bytes.
        low, high = map(_in_java, ends)
        keys = [key for key in keys if low <= _in_java(key) <= high or ends[0] <= key <= ends[1]]
    return may_have_any(text, filter_type, keys) if keys and text else bool(keys)


def _in_java(text: str) -> bytes:
    """Return bytes that sort in the order of Java strings."""
    return text.encode("utf-16-be")


class KeySummary:
    """Collects the keys of a file while it is written.

    A file with fewer keys than the capacity of the default filter gets a smaller filter: the default one
    takes 430 KB of every footer.

    Args:
        former: filter of the file that this one replaces, which is extended.
        rate: rate of false positives of a new filter.
    """

    def __init__(self, former: BloomFilter | None = None, *, rate: float = BloomFilter.DEFAULT_RATE) -> None:
        self._rate = rate
        self._waiting: list[pa.Array] = []
        self._waiting_rows = 0
        self._new: list[pa.Array] = []
        self._former = former
        self._bloom: BloomFilter | None = None
        if former is not None and former.capacity == BloomFilter.DEFAULT_CAPACITY:
            self._bloom = former
        self._ends: list[str | None] = []

    def add(self, keys: pa.Array, *, is_known: bool = False) -> None:
        """Add the keys of some rows.

        Args:
            keys: record keys, without nulls.
            is_known: whether the replaced file had all of them.
        """
        if pa.types.is_dictionary(keys.type):
            keys = keys.cast(pa.string())
        self._ends.extend(java_min_max(keys))
        is_known = is_known and self._former is not None
        if self._bloom is not None:
            if not is_known:
                self._bloom.add(keys)
            return
        self._waiting.append(keys)
        self._waiting_rows += len(keys)
        if not is_known:
            self._new.append(keys)
        if self._waiting_rows > BloomFilter.DEFAULT_CAPACITY:
            self._bloom = _filled(BloomFilter.of_large_file(self._rate), self._waiting)
            self._waiting, self._new, self._former = [], [], None

    def footer(self) -> dict[str, str]:
        """Return the entries for the footer."""
        bloom = self._bloom or self._of_own_size()
        entries = {FILTER: bloom.encode(), FILTER_TYPE: bloom.type_code}
        smallest, largest = java_min_max(pa.array(self._ends, pa.string()))
        if smallest is not None and largest is not None:
            entries |= {SMALLEST_KEY: smallest, LARGEST_KEY: largest}
        return entries

    @property
    def awaits_filter(self) -> bool:
        """Whether the filter has yet to be made, of all keys."""
        return self._bloom is None and self._former is None and self._waiting_rows > 0

    def own_filter(self) -> tuple[BloomFilter, pa.Array]:
        """Return a filter without keys for the keys so far, which the caller fills, and the keys."""
        self._bloom = BloomFilter.empty(max(1, self._waiting_rows), false_positives=self._rate)
        return self._bloom, pa.concat_arrays(self._waiting)

    def _of_own_size(self) -> BloomFilter:
        former = self._former
        if former is not None and has_room(former, sum(map(len, self._new))):
            return _filled(former, self._new)
        own = BloomFilter.empty(max(1, self._waiting_rows), false_positives=self._rate)
        return _filled(own, self._waiting)


def fill_together(summaries: Iterable[KeySummary]) -> None:
    """Fill the filters of small new files in one go: hashing few keys takes about as long as many."""
    waiting = [each for each in summaries if each.awaits_filter]
    if len(waiting) > 1:
        fill_filters([each.own_filter() for each in waiting])


def has_room(former: BloomFilter, new: int) -> bool:
    """Return whether a filter can take a number of new keys."""
    is_growing = former.capacity == BloomFilter.DEFAULT_CAPACITY
    return is_growing or former.keys + new <= former.capacity * (1 + OVERFULL_SHARE)


def extended_footer(
    footer: Mapping[str, str], rows: int, new: pa.Array, rate: float = BloomFilter.DEFAULT_RATE
) -> dict[str, str] | None:
    """Return the entries of a file that has the keys of another one and new ones.

    Args:
        footer: entries of the other file's footer.
        rows: number of its rows.
        new: the new keys (string), without nulls.
        rate: rate of false positives that the filter may have.

    Returns:
        The entries; None if they have to be made of all keys.
    """
    former = reusable_filter(footer, rows, rate)
    ends = [footer.get(SMALLEST_KEY), footer.get(LARGEST_KEY)]
    if former is None or None in ends or not has_room(former, len(new)):
        return None
    former.add(new)
    smallest, largest = java_min_max(pa.array([*ends, *java_min_max(new)], pa.string()))
    entries = {FILTER: former.encode(), FILTER_TYPE: former.type_code}
    return entries | {SMALLEST_KEY: smallest or "", LARGEST_KEY: largest or ""}


def reusable_filter(
    footer: Mapping[str, str], rows: int, rate: float = BloomFilter.DEFAULT_RATE
) -> BloomFilter | None:
    """Return the filter of a file if the file that replaces it should extend it, else None.

    Args:
        footer: entries of the file's footer.
        rows: number of rows in the file.
        rate: rate of false positives that the filter may have.
    """
    if FILTER not in footer or footer.get(FILTER_TYPE) != DYNAMIC:
        return None
    try:
        bloom = BloomFilter.decode(footer[FILTER], DYNAMIC)
    except DrawstringError:
        return None
    has_all_and_few_others = rows <= bloom.keys <= rows * (1 + STALE_SHARE)
    is_fit = bloom.capacity <= rows * CAPACITY_SHARE and bloom.is_as_exact_as(rate)
    return bloom if has_all_and_few_others and is_fit else None


def _filled(bloom: BloomFilter, keys: list[pa.Array]) -> BloomFilter:
    """Add all keys in one call: small arrays take as long as large ones, and the keys are few in total."""
    if keys:
        bloom.add(pa.concat_arrays(keys))
    return bloom
