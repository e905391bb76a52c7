"""The record keys of a base file, as its footer tells them: bloom filter, smallest and largest key.

A file that takes the place of another begins with that one's filter, so that only the keys that are
new to the file group are hashed. Keys that left the group stay in the filter until they are too many:
a filter may say yes for a key that is not there, and Hudi looks into the file then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.base.errors import DrawstringError
from drawstring.base.javahash import java_min_max
from drawstring.formats.bloom.filters import DYNAMIC, SIMPLE, BloomFilter
from drawstring.formats.bloom.probe import may_have_any

FILTER: Final = "org.apache.hudi.bloomfilter"
FILTER_TYPE: Final = "hoodie_bloom_filter_type_code"
SMALLEST_KEY: Final = "hoodie_min_record_key"
LARGEST_KEY: Final = "hoodie_max_record_key"

STALE_SHARE: Final = 1 / 4
"""Keys in a filter, by rows of its file, that may have left the file before it is made anew."""

CAPACITY_SHARE: Final = 2
"""Keys that a filter is made for, by rows of its file, above which it is made anew, and smaller."""


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """What a base file tells of its keys.

    Attributes:
        rows: rows in the file.
        smallest, largest: its ends in the order of Java's strings, None where it does not tell.
        filter_text, filter_type: of the bloom filter, empty where there is none.
    """

    rows: int
    smallest: str | None = None
    largest: str | None = None
    filter_text: str = ""
    filter_type: str = ""

    @staticmethod
    def of(footer: Mapping[str, str], rows: int) -> StoredSummary:
        """Return what the entries of a footer tell."""
        texts = (footer.get(FILTER, ""), footer.get(FILTER_TYPE) or SIMPLE)
        return StoredSummary(rows, footer.get(SMALLEST_KEY), footer.get(LARGEST_KEY), *texts)

    def bloom_filter(self) -> BloomFilter | None:
        """Return the filter; None where there is none that can be asked."""
        try:
            return BloomFilter.decode(self.filter_text, self.filter_type) if self.filter_text else None
        except DrawstringError:
            return None


def may_hold_any(footer: Mapping[bytes, bytes], keys: Sequence[str]) -> bool:
    """Tell whether a file may have one of a few keys; a no is certain.

    Args:
        footer: entries of its footer.
        keys: record keys.
    """
    smallest, largest = (footer.get(name.encode(), b"").decode() for name in (SMALLEST_KEY, LARGEST_KEY))
    if smallest and largest:
        low, high = _in_java(smallest), _in_java(largest)
        keys = [key for key in keys if low <= _in_java(key) <= high]
    text = footer.get(FILTER.encode())
    if not (keys and text):
        return bool(keys)
    return may_have_any(text, footer.get(FILTER_TYPE.encode(), SIMPLE.encode()).decode(), keys)


def _in_java(text: str) -> bytes:
    """Return what texts compare by as Java's strings do."""
    return text.encode("utf-16-be")


class KeySummary:
    """Takes the keys of a file as they are written.

    A file with fewer keys than the default filter is made for gets a filter of its own size: the
    default one takes 430 KB of every footer.

    Args:
        former: filter of the file that this one takes the place of; it is added to.
    """

    def __init__(self, former: BloomFilter | None = None) -> None:
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
            is_known: whether the former file had them all.
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
            self._bloom = _filled(BloomFilter.empty(), self._waiting)
            self._waiting, self._new, self._former = [], [], None

    def footer(self) -> dict[str, str]:
        """Return the footer's entries."""
        bloom = self._bloom or self._of_own_size()
        entries = {FILTER: bloom.encode(), FILTER_TYPE: bloom.type_code}
        smallest, largest = java_min_max(pa.array(self._ends, pa.string()))
        if smallest is not None and largest is not None:
            entries |= {SMALLEST_KEY: smallest, LARGEST_KEY: largest}
        return entries

    def _of_own_size(self) -> BloomFilter:
        former = self._former
        if former is not None and former.keys + sum(map(len, self._new)) <= former.capacity:
            return _filled(former, self._new)
        return _filled(BloomFilter.empty(max(1, self._waiting_rows)), self._waiting)


def reusable_filter(footer: Mapping[str, str], rows: int) -> BloomFilter | None:
    """Return the filter of a file for the file that takes its place; None when a new one is better.

    Args:
        footer: entries of the file's footer.
        rows: rows in the file.
    """
    if FILTER not in footer or footer.get(FILTER_TYPE) != DYNAMIC:
        return None
    try:
        bloom = BloomFilter.decode(footer[FILTER], DYNAMIC)
    except DrawstringError:
        return None
    has_all_and_few_others = rows <= bloom.keys <= rows * (1 + STALE_SHARE)
    return bloom if has_all_and_few_others and bloom.capacity <= rows * CAPACITY_SHARE else None


def _filled(bloom: BloomFilter, keys: list[pa.Array]) -> BloomFilter:
    """Add keys all at once, for crumbs of a few hundred take as long as batches; they are few together."""
    if keys:
        bloom.add(pa.concat_arrays(keys))
    return bloom
