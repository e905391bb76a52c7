"""What is in the files of a table: can it be read, is every key in one file group, and in the right bucket.

A task reads the keys of one slice, batch by batch, and sends back 64 bits of each distinct one. Those of a
partition, with a global index those of the table, are compared in bounded memory (`shared_keys`); where bits
agree, the keys themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import DrawstringError, UnsupportedError
from drawstring.base.javahash import string_hash
from drawstring.engine.protocol import Engine
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.index.consistent.xxhash import xxhash32
from drawstring.index.protocol import Index
from drawstring.model.files import FileSlice
from drawstring.model.validation import Finding, Severity
from drawstring.services.progress import Progress, in_rounds
from drawstring.services.validation.shared_keys import Hashes, Shared, SharedKeys

_SHOWN: Final = 5
_SETTLED_AT_ONCE: Final = 1 << 18
"""Bits of keys that are kept as they come before they are sorted."""


@dataclass(frozen=True, slots=True)
class SliceContent:
    """What a slice holds.

    Attributes:
        records: live records.
        hashes: 64 bits of each distinct key.
        repeated: keys that the slice has more than once, some of them.
        misplaced: keys whose bucket is another one, some of them.
        finding: what keeps it from being read.
    """

    records: int = 0
    hashes: Hashes | None = None
    repeated: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = ()
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class ReadContent:
    """A task that reads the keys of one slice.

    Attributes:
        keys: reads them.
        index: tells where keys belong.
    """

    keys: ReadKeys
    index: Index

    def __call__(self, file_slice: FileSlice) -> SliceContent:
        """Read one slice."""
        records, misplaced, bits = 0, list[str](), DistinctBits()
        try:
            for keys in live_keys(self.keys, file_slice):
                records += len(keys)
                bits.add(key_bits(keys))
                if len(misplaced) < _SHOWN:
                    misplaced += keys.filter(pa.array(~self.index.holds(file_slice, keys)))[
                        :_SHOWN
                    ].to_pylist()
            repeated = self._repeated(file_slice, bits.repeated()[:_SHOWN])
        except UnsupportedError as error:
            return SliceContent(finding=_unread(Severity.NOTE, "unknown", file_slice, error))
        except (DrawstringError, OSError) as error:
            return SliceContent(finding=_unread(Severity.ERROR, "unreadable", file_slice, error))
        return SliceContent(records, bits.distinct(), repeated, tuple(misplaced[:_SHOWN]))

    def _repeated(self, file_slice: FileSlice, bits: Hashes) -> tuple[str, ...]:
        """Return the keys of some bits that a slice has more than once; without bits nothing is read."""
        counts: dict[str, int] = {}
        for keys in live_keys(self.keys, file_slice) if len(bits) else ():
            for each in pc.value_counts(keys.filter(pa.array(np.isin(key_bits(keys), bits)))).to_pylist():
                counts[each["values"]] = counts.get(each["values"], 0) + each["counts"]
        return tuple(key for key, count in counts.items() if count > 1)[:_SHOWN]


def check_contents(
    engine: Engine,
    task: ReadContent,
    slices: Sequence[FileSlice],
    progress: Progress | None,
    *,
    is_global: bool = False,
) -> tuple[list[Finding], int]:
    """Read all slices and compare their keys.

    Args:
        engine: runs the reading.
        task: reads one slice.
        slices: the latest of all file groups, partition by partition.
        progress: told after each round.
        is_global: whether a key has one place in the whole table, rather than in each partition.

    Returns:
        What was found, and how many records there are.
    """
    findings: list[Finding] = []
    records = 0
    contents = in_rounds(engine, task, slices, progress)
    scopes = groupby(enumerate(slices), lambda pair: "" if is_global else pair[1].partition)
    for _, scope in scopes:
        seen = SharedKeys()
        try:
            for number, file_slice in scope:
                content = next(contents)
                records += content.records
                findings += _of_slice(file_slice, content)
                if content.hashes is not None:
                    seen.add(number, content.hashes)
            findings += _shared_keys(task, slices, seen.shared())
        finally:
            seen.close()
    return findings, records


def live_keys(read: ReadKeys, file_slice: FileSlice) -> Iterator[pa.Array]:
    """Yield the record keys of a slice that are not deleted, a bounded number at a time."""
    for each in read(file_slice):
        yield each.column(0).filter(pc.invert(each.column(3))).cast(pa.string())


def key_bits(keys: pa.Array) -> Hashes:
    """Return 64 bits of each key, of two hashes that have nothing in common; the high ones spread evenly."""
    low = string_hash(keys).astype(np.uint32).astype(np.uint64)
    return np.asarray(xxhash32(keys).astype(np.uint64) << np.uint64(32) | low)


class DistinctBits:
    """Bits of keys, each kept once, however often they come."""

    def __init__(self) -> None:
        self._distinct: Hashes = np.empty(0, np.uint64)
        self._repeated: Hashes = np.empty(0, np.uint64)
        self._new: list[Hashes] = []
        self._new_count = 0

    def add(self, bits: Hashes) -> None:
        """Take the bits of some keys."""
        self._new.append(bits)
        self._new_count += len(bits)
        if self._new_count > max(_SETTLED_AT_ONCE, len(self._distinct)):
            self._settle()

    def distinct(self) -> Hashes:
        """Return all bits, sorted."""
        self._settle()
        return self._distinct

    def repeated(self) -> Hashes:
        """Return bits that came more than once, some of them where they are many."""
        self._settle()
        return self._repeated

    def _settle(self) -> None:
        bits = np.sort(np.concatenate([self._distinct, *self._new]))
        is_first = np.ones(len(bits), np.bool_)
        np.not_equal(bits[1:], bits[:-1], out=is_first[1:])
        self._distinct = bits[is_first]
        self._repeated = np.unique(np.concatenate([self._repeated, bits[~is_first]]))[:_SETTLED_AT_ONCE]
        self._new, self._new_count = [], 0


def _of_slice(file_slice: FileSlice, content: SliceContent) -> Iterator[Finding]:
    place = f"{file_slice.partition}/{file_slice.file_id}".lstrip("/")
    if content.finding is not None:
        yield content.finding
    if content.repeated:
        text = f"keys that stand in it more than once: {_listed(content.repeated)}; an insert allows that"
        yield Finding(Severity.WARNING, "key", text, place)
    if content.misplaced:
        text = f"keys of another bucket: {_listed(content.misplaced)}; upserts will not find them"
        yield Finding(Severity.ERROR, "bucket", text, place)


def _shared_keys(task: ReadContent, slices: Sequence[FileSlice], shared: Shared) -> Iterator[Finding]:
    """Find keys that several file groups have, some of which are looked at again."""
    holders: dict[str, list[FileSlice]] = {}
    for number in sorted(shared.slices):
        for keys in live_keys(task.keys, slices[number]):
            for key in pc.unique(keys.filter(pa.array(np.isin(key_bits(keys), shared.bits)))).to_pylist():
                found = holders.setdefault(key, [])
                if slices[number] not in found[-1:]:
                    found.append(slices[number])
    several = {key: found for key, found in holders.items() if len(found) > 1}
    if not several:
        return
    count = len(several) if shared.keys == len(shared.bits) else shared.keys
    moved = {key: found for key, found in several.items() if len({each.partition for each in found}) > 1}
    key, found = next(iter((moved or several).items()))
    if moved:
        where = " and ".join(dict.fromkeys(each.partition or "." for each in found[:2]))
        text = (
            f"{count} keys are in several file groups, {key!r} in the partitions {where} for instance, though"
            " a key has one place in the table: an insert or append allows that; delete them, then upsert"
        )
        yield Finding(Severity.WARNING, "key", text, ".")
        return
    ids = " and ".join(each.file_id for each in found[:2])
    text = (
        f"{count} keys are in several file groups, {key!r} in {ids}"
        " for instance: an insert or append allows that; an upsert of these keys changes all of them"
    )
    yield Finding(Severity.WARNING, "key", text, found[0].partition or ".")


def _unread(severity: Severity, check: str, file_slice: FileSlice, error: Exception) -> Finding:
    path = getattr(error, "path", None) or f"{file_slice.partition}/{file_slice.file_id}".lstrip("/")
    return Finding(severity, check, getattr(error, "message", None) or str(error), path)


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(repr(key) for key in keys)
