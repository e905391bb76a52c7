"""Check the record keys of a table: readable, each key in one file group, in the right bucket, sorted.

A task reads the keys of one slice, batch by batch, and returns a 64-bit hash of each distinct key.
`SharedKeys` compares the hashes of a partition, or with a global index of the table, in bounded memory:

    add(slice, bits) ──> one of 64 parts by the highest bits ──> memory, or a file on the local disk
    shared()         ──> part by part: sort, find equal neighbours, return the slices that have them

Where hashes are equal, the keys themselves are compared.

In the layout `lsm_tree` base and log files are sorted by record key; `unsorted_files` finds those that are
not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.errors import DrawstringError, UnsupportedError
from drawstring.base.java_compat import string_hash
from drawstring.config.table.storage_layout import DEFAULT_LAYOUT, STORAGE_LAYOUT
from drawstring.config.table_config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.engine.spill import SpillingGroups
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.sorted_merge import AscendingKeys
from drawstring.formats.data_file import Selection, has_footer, read_base
from drawstring.index.consistent_bucket import xxhash32
from drawstring.index.protocol import Index
from drawstring.model.files import FileSlice
from drawstring.model.result import Finding, Remedy, Severity
from drawstring.schema.fields import RECORD_KEY
from drawstring.services.progress import Progress, in_rounds
from drawstring.services.validation.metadata_checks import OnePlaceEach
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage

Hashes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

SHARED_KEYS_BYTES_MAX: Final = 256 << 20
"""Greatest number of bytes of hashes kept in memory before they are spilled to disk."""

_PARTS: Final = 64
_KEYS_REPORTED: Final = 1000
_BITS_PER_SORT: Final = 1 << 20
_SCHEMA: Final = pa.schema([("bits", pa.uint64()), ("slice", pa.uint32())])


@dataclass(frozen=True, slots=True)
class Shared:
    """The keys that several slices have in common.

    Attributes:
        keys: number of such keys, by their hashes.
        bits: hashes of some of them.
        slices: numbers of the slices that have these.
    """

    keys: int
    bits: Hashes
    slices: frozenset[int] = field(default=frozenset())


class SharedKeys:
    """Collects and compares the keys of slices.

    Args:
        limit_bytes: greatest number of bytes kept in memory.
    """

    def __init__(self, limit_bytes: int = SHARED_KEYS_BYTES_MAX) -> None:
        self._parts = SpillingGroups(_SCHEMA, limit_bytes)
        self._new: list[tuple[Hashes, int]] = []
        self._new_count = 0

    def add(self, number: int, bits: Hashes) -> None:
        """Add the keys of a slice.

        Args:
            number: of the slice.
            bits: a 64-bit hash of each key, with evenly distributed high bits.
        """
        distinct_bits = np.unique(bits)
        self._new.append((distinct_bits, number))
        self._new_count += len(distinct_bits)
        if self._new_count >= _BITS_PER_SORT:
            self._divide()

    def shared(self) -> Shared:
        """Return the keys that several slices share; call it after the last `add`."""
        self._divide()
        count, bits, slices = 0, [np.empty(0, dtype=np.uint64)], set()
        for values, numbers in self._shared_by_part():
            distinct = np.unique(values)
            count += len(distinct)
            reported = distinct[: max(0, _KEYS_REPORTED - sum(map(len, bits)))]
            bits.append(reported)
            slices.update(np.unique(numbers[np.isin(values, reported)]).tolist())
        return Shared(count, np.concatenate(bits), frozenset(slices))

    def close(self) -> None:
        """Delete the spilled files."""
        self._parts.close()

    def _divide(self) -> None:
        """Distribute the new hashes among the parts."""
        if not self._new:
            return
        bits = np.concatenate([slice_bits for slice_bits, _ in self._new])
        numbers = np.repeat(
            [number for _, number in self._new], [len(slice_bits) for slice_bits, _ in self._new]
        )
        order = np.argsort(bits, kind="stable")
        bits, numbers = bits[order], numbers[order].astype(np.uint32)
        edges = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(64 - 6)
        cuts = [0, *np.searchsorted(bits, edges).tolist(), len(bits)]
        for part, (start, stop) in enumerate(pairwise(cuts)):
            if stop > start:
                columns = [pa.array(bits[start:stop]), pa.array(numbers[start:stop])]
                self._parts.add(part, pa.record_batch(columns, schema=_SCHEMA))
        self._new, self._new_count = [], 0

    def _shared_by_part(self) -> Iterator[tuple[Hashes, np.ndarray[Any, np.dtype[np.uint32]]]]:
        for part in self._parts.groups():
            table = pa.Table.from_batches(self._parts.batches(part), _SCHEMA)
            self._parts.drop(part)
            bits = table["bits"].to_numpy()
            order = np.argsort(bits, kind="stable")
            bits, numbers = bits[order], table["slice"].to_numpy()[order]
            same = bits[1:] == bits[:-1]
            is_shared = np.concatenate([same, [False]]) | np.concatenate([[False], same])
            yield bits[is_shared], numbers[is_shared]


def unsorted_files(storage: Storage, file_slice: FileSlice) -> list[Finding]:
    """Return a finding for each file of a slice that is not sorted; reads the keys of all.

    Args:
        storage: of the table.
        file_slice: the slice; inline log files, whose blocks are in no order, count as unsorted.
    """
    paths = [file_slice.base.status.path] if file_slice.base else []
    paths += [log.status.path for log in file_slice.logs]
    return [_finding(path) for path in paths if not _is_sorted(storage, path)]


def without_layout(config: TableConfig) -> TableConfig:
    """Return a table's configuration with the default layout, in which readers take nothing for sorted."""
    return replace(config, properties={**config.properties, STORAGE_LAYOUT: DEFAULT_LAYOUT})


def _is_sorted(storage: Storage, path: str) -> bool:
    if not has_footer(path):
        return False
    keys = AscendingKeys()
    batches = read_base(storage, path, Selection([RECORD_KEY]))
    return all(keys.go_on(batch.column(RECORD_KEY)) for batch in batches)


def _finding(path: str) -> Finding:
    text = (
        "The file is not sorted by record key, as hoodie.table.storage.layout=lsm_tree promises: readers may"
        " miss rows. Set the layout to default (drawstring versions set-storage-layout), or rewrite the"
        " file group."
    )
    return Finding(Severity.ERROR, "order", text, path)


_KEYS_PER_FINDING_MAX: Final = 5
_UNUSED: Final = (
    "Queries do not use the record index, since the table had several records of a key. It has none any more."
    " Run `drawstring services repair --apply`, which builds the index again."
)


@dataclass(frozen=True, slots=True)
class SliceContent:
    """The result of reading one slice.

    Attributes:
        records: number of live records.
        hashes: a 64-bit hash of each distinct key.
        repeated: some of the keys that occur more than once in the slice.
        misplaced: some of the keys that belong to another bucket.
        finding: the reason why the slice cannot be read.
        unsorted: a finding for each file that should be sorted and is not.
    """

    records: int = 0
    hashes: Hashes | None = None
    repeated: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = ()
    finding: Finding | None = None
    unsorted: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadContent:
    """A task that reads the keys of one slice.

    Attributes:
        keys: reads the keys.
        index: knows where a key belongs.
    """

    keys: ReadKeys
    index: Index

    def __call__(self, file_slice: FileSlice) -> SliceContent:
        """Read one slice; where its files should be sorted and are not, as if they need not be."""
        try:
            unsorted = self._unsorted(file_slice)
            if not unsorted:
                return self._content(file_slice)
        except UnsupportedError as error:
            return SliceContent(finding=_unreadable(Severity.NOTE, "unknown", file_slice, error))
        except (DrawstringError, OSError) as error:
            return SliceContent(finding=_unreadable(Severity.ERROR, "unreadable", file_slice, error))
        keys = replace(self.keys, config=without_layout(self.keys.config))
        return replace(ReadContent(keys, self.index)(file_slice), unsorted=unsorted)

    def _content(self, file_slice: FileSlice) -> SliceContent:
        records, misplaced, bits = 0, list[str](), DistinctBits()
        for keys in live_keys(self.keys, file_slice):
            records += len(keys)
            bits.add(key_bits(keys))
            if len(misplaced) < _KEYS_PER_FINDING_MAX:
                misplaced += keys.filter(pa.array(~self.index.owns_keys(file_slice, keys)))[
                    :_KEYS_PER_FINDING_MAX
                ].to_pylist()
        repeated = self._repeated(file_slice, bits.repeated()[:_KEYS_PER_FINDING_MAX])
        return SliceContent(records, bits.distinct(), repeated, tuple(misplaced[:_KEYS_PER_FINDING_MAX]))

    def _unsorted(self, file_slice: FileSlice) -> tuple[Finding, ...]:
        if not self.keys.config.has_sorted_files:
            return ()
        return tuple(unsorted_files(open_spec(self.keys.storage), file_slice))

    def _repeated(self, file_slice: FileSlice, bits: Hashes) -> tuple[str, ...]:
        """Return the keys with some hashes that occur more than once in a slice; no hashes, no reading."""
        counts: dict[str, int] = {}
        for keys in live_keys(self.keys, file_slice) if len(bits) else ():
            for each in pc.value_counts(keys.filter(pa.array(np.isin(key_bits(keys), bits)))).to_pylist():
                counts[each["values"]] = counts.get(each["values"], 0) + each["counts"]
        return tuple(key for key, count in counts.items() if count > 1)[:_KEYS_PER_FINDING_MAX]


def check_contents(
    engine: Engine,
    task: ReadContent,
    slices: Sequence[FileSlice],
    progress: Progress | None,
    *,
    is_global: bool = False,
    places: OnePlaceEach | None = None,
) -> tuple[list[Finding], int]:
    """Read all slices and compare their keys.

    Args:
        engine: runs the tasks.
        task: reads one slice.
        slices: the latest slices of all file groups, partition by partition.
        progress: called after each round.
        is_global: whether a key is unique in the whole table rather than in each partition.
        places: a record index, which has one place of each such key; None if there is none.

    Returns:
        The findings, and the number of records.
    """
    findings: list[Finding] = []
    records, is_repeated = 0, False
    contents = in_rounds(engine, task, slices, progress)
    scopes = groupby(enumerate(slices), lambda pair: "" if is_global else pair[1].partition)
    for _, scope in scopes:
        seen = SharedKeys()
        try:
            for number, file_slice in scope:
                content = next(contents)
                records += content.records
                findings += _slice_findings(file_slice, content)
                if content.hashes is not None:
                    seen.add(number, content.hashes)
            shared = [*_shared_keys(task, slices, seen.shared(), places)]
            is_repeated = is_repeated or bool(shared)
            findings += shared
        finally:
            seen.close()
    if places is not None and places.unused is not None and not is_repeated:
        findings.append(Finding(Severity.WARNING, "metadata", _UNUSED, ".", None, Remedy.METADATA))
    return findings, records


def live_keys(read: ReadKeys, file_slice: FileSlice) -> Iterator[pa.Array]:
    """Yield the record keys of the live records of a slice, a bounded number at a time."""
    for each in read(file_slice):
        yield each.column(0).filter(pc.invert(each.column(3))).cast(pa.string())


def key_bits(keys: pa.Array) -> Hashes:
    """Return a 64-bit hash of each key, from two independent hashes, with evenly distributed high bits."""
    low = string_hash(keys).astype(np.uint32).astype(np.uint64)
    return np.asarray(xxhash32(keys).astype(np.uint64) << np.uint64(32) | low)


class DistinctBits:
    """The distinct hashes of keys, in bounded memory."""

    def __init__(self) -> None:
        self._distinct: Hashes = np.empty(0, np.uint64)
        self._repeated: Hashes = np.empty(0, np.uint64)
        self._new: list[Hashes] = []
        self._new_count = 0

    def add(self, bits: Hashes) -> None:
        """Add the hashes of some keys."""
        self._new.append(bits)
        self._new_count += len(bits)
        if self._new_count > max(limits.in_force.distinct_hashes_unsorted_max, len(self._distinct)):
            self._merge_new()

    def distinct(self) -> Hashes:
        """Return all distinct hashes, sorted."""
        self._merge_new()
        return self._distinct

    def repeated(self) -> Hashes:
        """Return hashes that were added more than once; only some if there are many."""
        self._merge_new()
        return self._repeated

    def _merge_new(self) -> None:
        bits = np.sort(np.concatenate([self._distinct, *self._new]))
        is_first = np.ones(len(bits), np.bool_)
        np.not_equal(bits[1:], bits[:-1], out=is_first[1:])
        self._distinct = bits[is_first]
        self._repeated = np.unique(np.concatenate([self._repeated, bits[~is_first]]))[
            : limits.in_force.distinct_hashes_unsorted_max
        ]
        self._new, self._new_count = [], 0


def _slice_findings(file_slice: FileSlice, content: SliceContent) -> Iterator[Finding]:
    place = f"{file_slice.partition}/{file_slice.file_id}".lstrip("/")
    if content.finding is not None:
        yield content.finding
    yield from content.unsorted
    if content.repeated:
        text = f"Keys that occur more than once: {_quoted_list(content.repeated)}. An insert allows that."
        yield Finding(Severity.WARNING, "key", text, place)
    if content.misplaced:
        text = f"Keys of another bucket: {_quoted_list(content.misplaced)}. Upserts will not find them."
        yield Finding(Severity.ERROR, "bucket", text, place)


def _shared_keys(
    task: ReadContent, slices: Sequence[FileSlice], shared: Shared, places: OnePlaceEach | None
) -> Iterator[Finding]:
    """Find keys that several file groups have, by reading the slices with equal hashes again."""
    holders: dict[str, list[FileSlice]] = {}
    for number in sorted(shared.slices):
        for keys in live_keys(task.keys, slices[number]):
            for key in pc.unique(keys.filter(pa.array(np.isin(key_bits(keys), shared.bits)))).to_pylist():
                group_slices = holders.setdefault(key, [])
                if slices[number] not in group_slices[-1:]:
                    group_slices.append(slices[number])
    key_slices = {key: group_slices for key, group_slices in holders.items() if len(group_slices) > 1}
    if not key_slices:
        return
    count = len(key_slices) if shared.keys == len(shared.bits) else shared.keys
    moved = {
        key: group_slices
        for key, group_slices in key_slices.items()
        if len({each.partition for each in group_slices}) > 1
    }
    key, group_slices = next(iter((moved or key_slices).items()))
    if places is not None:
        ids = " and ".join(f"{each.partition}/{each.file_id}".lstrip("/") for each in group_slices[:2])
        what = f"{count} keys are in several file groups, {key!r} in {ids} for instance"
        yield _indexed_once(what, places.unused)
    elif moved:
        where = " and ".join(dict.fromkeys(each.partition or "." for each in group_slices[:2]))
        text = (
            f"{count} keys are in several file groups, {key!r} in the partitions {where} for instance, though"
            " a key is unique in the table. An insert or append allows that. Delete the keys, then upsert"
            " them."
        )
        yield Finding(Severity.WARNING, "key", text, ".")
    else:
        ids = " and ".join(each.file_id for each in group_slices[:2])
        text = (
            f"{count} keys are in several file groups, {key!r} in {ids}"
            " for instance. An insert or append allows that. An upsert of these keys changes all of them."
        )
        yield Finding(Severity.WARNING, "key", text, group_slices[0].partition or ".")


def _indexed_once(what: str, unused: str | None) -> Finding:
    """Return a finding for keys of which the record index has one place of several."""
    if unused is not None:
        text = f"{what}, so queries do not use the record index. {unused}"
        return Finding(Severity.WARNING, "key", text, ".")
    text = (
        f"{what}, of which the record index knows one: queries by key miss rows. Drop the index with"
        " `drawstring indexes drop` and create it again: a new one notes that, and queries do without it."
    )
    return Finding(Severity.ERROR, "metadata", text, ".")


def _unreadable(severity: Severity, check: str, file_slice: FileSlice, error: Exception) -> Finding:
    path = getattr(error, "path", None) or f"{file_slice.partition}/{file_slice.file_id}".lstrip("/")
    return Finding(severity, check, getattr(error, "message", None) or str(error), path)


def _quoted_list(keys: Sequence[str]) -> str:
    return ", ".join(repr(key) for key in keys)
