r"""Load the metadata table of a table: its timeline and file groups, the instants that count, and its keys.

A write adds to the metadata table first and then completes its instant in the table. In between, and after
a crash there, the metadata table knows files of a write that is not committed. So a delta commit whose
instant is pending in the table does not count:

    metadata table    deltacommit 10     deltacommit 20     deltacommit 30
    table             commit 10          inflight 20        (archived, or a service of the metadata table)
    counts            yes                no                 yes

The partitions (`kind_of`, `record_schema`):

    files                                file names and sizes by partition of the table
    column_stats, partition_stats        bounds and counts by column and file, or partition
    bloom_filters                        a bloom filter of the record keys by file
    record_index                         the file group of each record key
    secondary_index_<name>               the record keys of each value of a column
    expr_index_<name>                    statistics, or a bloom filter, of an expression by file

The keys of their records:

column_stats             b64(xxh64(column)) b64(xxh64(partition)) b64(md5(file name))
partition_stats          b64(xxh64(column)) b64(xxh64(partition))
bloom_filters            b64(xxh64(partition)) b64(md5(file name))
expr_index_<name>        one of the first and the last; of a partition
                         b64(xxh64(column)) b64(xxh64("__partition_stat__")) b64(xxh64(partition))
secondary_index_<name>   value "$" record key, in both of which \, $ and NUL are preceded by \;
                         a null value is one NUL

A `Lookup` says which file groups to read, and which keys or beginnings of keys in their HFiles:

    files                     the key is a partition path
    record_index              the key is a record key, whose hash gives the file group of a global index
    secondary_index_<name>    keys begin with the value
    column_stats, bloom_filters and the like   keys begin with the hash of a column or a partition
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.clock import Clock
from drawstring.base.errors import (
    REPAIR,
    CorruptTableError,
    DrawstringError,
    InvalidError,
    MetadataTableError,
    UnsupportedError,
)
from drawstring.base.java_compat import string_hash
from drawstring.base.lazy import cached_property
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_system_view import FileGroupView, FixedListing, table_view
from drawstring.filegroups.read_task import InstantRange
from drawstring.formats import schemas
from drawstring.formats.hfile import HFileEntries, HFileReader
from drawstring.model.files import FileSlice
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State, is_build
from drawstring.schema.avro import avro_to_arrow
from drawstring.storage.protocol import Storage, Subfolder
from drawstring.timeline.properties import PROPERTIES_PATH, load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

METADATA_FOLDER: Final = ".hoodie/metadata"
PARTITIONS_KEY: Final = "hoodie.table.metadata.partitions"
"""Table property: the partitions of the metadata table that are complete."""

BUILDING_KEY: Final = "hoodie.table.metadata.partitions.inflight"
"""Table property: the partitions of the metadata table that are being built."""

FILES: Final = "files"
RECORD_INDEX: Final = "record_index"
BLOOM_FILTERS: Final = "bloom_filters"
ALL_PARTITIONS: Final = "__all_partitions__"
"""Key of the record in `files` that lists the partitions of the table."""

ROOT_PARTITION: Final = "."
"""How the metadata table calls the one partition of an unpartitioned table."""

KEY: Final = "key"
TYPE: Final = "type"
IS_REMOVED: Final = "is_removed"
"""Whether a row is an entry of a delete block."""

NAME: Final = "name"
SIZE: Final = "size_bytes"
FILE_INFOS: Final = "filesystemMetadata"
BLOOM: Final = "BloomFilterMetadata"
STATISTICS: Final = "ColumnStatsMetadata"
LOCATION: Final = "recordIndexMetadata"
SECONDARY: Final = "SecondaryIndexMetadata"
PARTITION_STATISTICS: Final = 6
"""Record type of statistics of a partition."""


class Kind(StrEnum):
    """What the records of a partition hold."""

    FILES = "files"
    STATISTICS = "statistics"
    BLOOM_FILTERS = "bloom filters"
    RECORD_INDEX = "record index"
    SECONDARY_INDEX = "secondary index"
    EXPRESSION_INDEX = "expression index"


_BY_NAME: Final = {
    FILES: Kind.FILES,
    "column_stats": Kind.STATISTICS,
    "partition_stats": Kind.STATISTICS,
    "bloom_filters": Kind.BLOOM_FILTERS,
    RECORD_INDEX: Kind.RECORD_INDEX,
}
_BY_PREFIX: Final = {
    "secondary_index_": Kind.SECONDARY_INDEX,
    "expr_index_": Kind.EXPRESSION_INDEX,
}
_COLUMNS: Final = {
    Kind.FILES: (FILE_INFOS,),
    Kind.STATISTICS: (STATISTICS,),
    Kind.BLOOM_FILTERS: (BLOOM,),
    Kind.RECORD_INDEX: (LOCATION,),
    Kind.SECONDARY_INDEX: (SECONDARY,),
    Kind.EXPRESSION_INDEX: (STATISTICS, BLOOM),
}


def kind_of(partition: str) -> Kind:
    """Return what the records of a partition of the metadata table hold.

    Raises:
        UnsupportedError: this release does not know the partition.
    """
    for prefix, kind in _BY_PREFIX.items():
        if partition.startswith(prefix):
            return kind
    if partition not in _BY_NAME:
        raise UnsupportedError(
            f"The partition {partition!r} of the metadata table is of a kind that this release does not know."
            " Read it with the release of Apache Hudi that wrote it."
        )
    return _BY_NAME[partition]


@cache
def record_schema(kind: Kind) -> pa.Schema:
    """Return the columns of the records of a kind: key, type and content, all nullable."""
    whole = avro_to_arrow(schemas.text("metadata_record"), with_unions=True)
    return pa.schema([whole.field(name).with_nullable(True) for name in (KEY, TYPE, *_COLUMNS[kind])])


_READ_MAX: Final = 8
"""Number of delta commits without a log file of `files` up to which their metadata is read."""

_TO_REPAIR: Final = "To repair the table, "


@dataclass(frozen=True)
class MetadataTable:
    """A metadata table as one load sees it.

    Attributes:
        storage: its files.
        config: its settings.
        own_timeline: its timeline as stored.
        timeline: its timeline, where delta commits that do not count are pending.
        store: the files of its timeline.
        view: its file groups.
        ready: the partitions that are complete.
        building: the partitions that are being built.
    """

    storage: Storage
    config: TableConfig
    own_timeline: Timeline
    timeline: Timeline
    store: TimelineStore
    view: FileGroupView
    ready: tuple[str, ...]
    building: tuple[str, ...]

    def with_building(self) -> MetadataTable:
        """Return the table with its partitions that are being built, for those who write to them."""
        return replace(self, ready=tuple(sorted({*self.ready, *self.building})))

    @cached_property
    def _slices(self) -> dict[str, list[FileSlice]]:
        return {}

    @cached_property
    def instants(self) -> InstantRange:
        """The instants whose log blocks count."""
        return InstantRange.of(self.timeline)

    def slices(self, partition: str) -> list[FileSlice]:
        """Return the latest slice of each file group of a partition, by file id.

        Raises:
            CorruptTableError: a file of the partition is missing.
            InvalidError: the metadata table does not have the partition.
        """
        self.check_has(partition)
        if partition not in self._slices:
            with about_metadata(self.storage):
                named = self._named_slices() if partition == FILES and self._is_named_by_writes else None
                self._slices[partition] = named or self.view.slices(partition)
        return self._slices[partition]

    @property
    def _is_named_by_writes(self) -> bool:
        return not self.config.rules.names_logs_by_slice

    def _named_slices(self) -> list[FileSlice] | None:
        """Return the slices of `files` if the names of its files show that none is missing, else None.

        Nearly every delta commit writes a log file of its time. So the metadata of the newest delta commits,
        by which a missing file is found, need not be read, except of the few without one, such as those of
        cleans that deleted nothing: for a query these are most of the requests.
        """
        listing = FixedListing(self.view.listing.files(FILES))
        slices = table_view(self.storage, self.config, self.timeline, self.store, listing).slices(FILES)
        compacted = max((each.requested for each in self.timeline.completed_of(Action.COMMIT)), default="")
        found = {log.instant for each in slices for log in each.logs}
        others = [
            each
            for each in self.timeline.completed_of(Action.DELTA_COMMIT)
            if (each.completed or "") > compacted
            and each.requested not in found
            and not is_build(each.requested)
        ]
        if len(others) > _READ_MAX or not self._is_based(slices, compacted):
            return None
        return None if any(map(self._lists_files, others)) else slices

    def _lists_files(self, written: Instant) -> bool:
        """Return whether a delta commit has a log file of the list of files."""
        return any(stat.partition == FILES for stat in self.store.commit_metadata(written).stats)

    def _is_based(self, slices: list[FileSlice], compacted: str) -> bool:
        """Return whether the list has the base file that it was given last; a new table's begins without."""
        bases = [each.base.instant for each in slices if each.base]
        if bases or compacted:
            return not compacted or compacted in bases
        return bool(slices) and not self.store.commit_metadata(self.own_timeline.writes()[0]).stats

    def check_has(self, partition: str) -> None:
        """Check that a partition of the metadata table is complete.

        Raises:
            InvalidError: it is not.
        """
        if partition in self.ready:
            return
        if partition in self.building:
            message = (
                f"The partition {partition!r} of the metadata table is still being built. Wait for that."
            )
        else:
            message = (
                f"The metadata table has no partition {partition!r}. Use one of {', '.join(self.ready)}."
            )
        raise InvalidError(message, table=self.storage.spec.uri)


def open_metadata_table(
    storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock
) -> MetadataTable:
    """Open the metadata table of a table.

    Args:
        storage: the table's files.
        config: the table's settings.
        timeline: the table's timeline; what is pending in it does not count in the metadata table.
        clock: for the timeline of the metadata table.

    Raises:
        InvalidError: the table has no metadata table.
        MetadataTableError: its properties or its timeline are missing or damaged.
    """
    building = inflight_partitions(config)
    if not (config.metadata_partitions or building):
        raise InvalidError(
            "The table has no metadata table. The next write builds one, unless hoodie.metadata.enable is"
            " false.",
            table=storage.spec.uri,
        )
    own_storage = Subfolder(storage, METADATA_FOLDER)
    with about_metadata(own_storage):
        own_config = load_config(own_storage)
        store = TimelineStore(own_storage, own_config, clock)
        own_timeline = store.load()
    if not own_timeline.writes():
        raise damaged(own_storage, "its timeline has no completed write")
    counted = _counted(own_timeline, timeline)
    view = table_view(own_storage, own_config, counted, store)
    ready = tuple(sorted(config.metadata_partitions))
    return MetadataTable(own_storage, own_config, own_timeline, counted, store, view, ready, building)


def inflight_partitions(config: TableConfig) -> tuple[str, ...]:
    """Return the partitions of the metadata table that are registered as being built."""
    return tuple(filter(None, config.properties.get(BUILDING_KEY, "").split(",")))


@contextmanager
def about_metadata(storage: Storage) -> Iterator[None]:
    """Say of errors in files of the metadata table that they are there, and what to do.

    Args:
        storage: files of the metadata table.
    """
    try:
        yield
    except MetadataTableError:
        raise
    except (CorruptTableError, InvalidError) as error:
        reason = error.message.partition(REPAIR)[0].removesuffix(_TO_REPAIR).rstrip(" .:")
        if isinstance(error, InvalidError) and not storage.exists(PROPERTIES_PATH):
            reason = f"{PROPERTIES_PATH} is missing there"
        raise damaged(storage, reason).at(instant=error.instant, path=error.path) from error
    except FileNotFoundError as error:
        reason = f"a file is missing there or a folder belongs in its place: {error.filename}"
        raise damaged(storage, reason) from error
    except UnicodeEncodeError:  # of a text that a caller gave
        raise
    except (ValueError, LookupError, pa.ArrowException) as error:
        raise damaged(storage, str(error)) from error


def damaged(storage: Storage, reason: str) -> DrawstringError:
    """Return the error for a damaged metadata table.

    Args:
        storage: files of the metadata table.
        reason: what is wrong, without a full stop.
    """
    message = (
        f"The metadata table is damaged ({reason}). Run `drawstring services repair`, which builds it again"
        " or"
        " switches it off."
    )
    return MetadataTableError(message, table=storage.spec.uri)


def missing_instant_error(storage: Storage, missing: Instant) -> DrawstringError:
    """Return the error for a metadata table without a completed write or clean of the table.

    Args:
        storage: files of the metadata table.
        missing: the instant.
    """
    error = damaged(storage, f"it lacks the {missing.action} {missing.requested}")
    return error.at(instant=missing.requested)


def _counted(own: Timeline, timeline: Timeline) -> Timeline:
    """Return the timeline of the metadata table without completions that are pending in the table.

    A savepoint has the requested time of the completed write that it keeps.
    """
    pending = {each.requested for each in timeline.pending() if each.action is not Action.SAVEPOINT}
    if not any(own.write_at(requested) for requested in pending):
        return own
    return own.with_instants(
        tuple(
            _reopened(instant) if instant.is_write and instant.requested in pending else instant
            for instant in own.instants
        )
    )


def _reopened(instant: Instant) -> Instant:
    return replace(instant, state=State.INFLIGHT, completed=None)


def missing_instants(own: Timeline, timeline: Timeline) -> Iterator[Instant]:
    """Yield the completed writes and cleans of a table that its metadata table lacks.

    Args:
        own: the timeline of the metadata table, with a completed write.
        timeline: the timeline of the table.
    """
    first = own.writes()[0]
    for instant in timeline.completed_of(*WRITE_ACTIONS, Action.CLEAN):
        is_known = own.has_completed(instant.requested) or instant.requested < first.requested
        if not is_known and not _before(instant, first):
            yield instant


def _before(instant: Instant, first: Instant) -> bool:
    """Return whether an instant completed before the first of the metadata table, which listed all files."""
    if instant.completed is None or first.completed is None:
        return False
    return instant.completed <= first.completed


NAME_HASH_CHARS: Final = 12
"""Length of the hash of a column or a partition."""

_SEED: Final = 0xFFFFFFFFDABADABA
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_MASK: Final = (1 << 64) - 1
_STRIPE_BYTES: Final = 32
_SECONDARY: Final = re.compile(r"((?:[^\\$]|\\.)*)\$(.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_TO_ESCAPE: Final = re.compile(r"[\\$\0]")
_NULL: Final = "\0"


def name_hash(name: str) -> str:
    """Return the hash of a column, or of a partition other than the root's, as keys have it."""
    return base64.b64encode(xxh64(name.encode()).to_bytes(8, "big")).decode()


def partition_hash(partition: str) -> str:
    """Return the hash of a partition path as keys have it; that of the root is empty."""
    return name_hash(partition or ROOT_PARTITION)


def file_hash(name: str) -> str:
    """Return the hash of a file name as keys have it."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()


def encode_secondary_value(value: str) -> str:
    """Return the beginning of the keys with a value of a secondary index."""
    return _TO_ESCAPE.sub(r"\\\g<0>", value) + "$"


def decode_secondary_key(key: str) -> tuple[str | None, str]:
    """Return the value, None for null, and the record key of a key of a secondary index.

    Raises:
        ValueError: the key has no `$`.
    """
    match = _SECONDARY.fullmatch(key)
    if match is None:
        raise ValueError(f"the key {key!r} of a secondary index has no $")
    value, record_key = match.groups()
    return None if value == _NULL else _ESCAPED.sub(r"\1", value), _ESCAPED.sub(r"\1", record_key)


def xxh64(data: bytes, seed: int = _SEED) -> int:
    """Return the XXH64 hash of bytes, by default with the seed of the metadata table."""
    size = len(data)
    stripes_end, words_end, half_word_end = (size // each * each for each in (_STRIPE_BYTES, 8, 4))
    hashed = _stripes(data, stripes_end, seed) if stripes_end else seed + _P5
    hashed = hashed + size & _MASK
    for at in range(stripes_end, words_end, 8):
        hashed = _rotated(hashed ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4 & _MASK
    if half_word_end > words_end:
        hashed = _rotated(hashed ^ _word(data, words_end, 4) * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
    for byte in data[half_word_end:]:
        hashed = _rotated(hashed ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    hashed = (hashed ^ hashed >> 33) * _P2 & _MASK
    hashed = (hashed ^ hashed >> 29) * _P3 & _MASK
    return hashed ^ hashed >> 32


def _stripes(data: bytes, end: int, seed: int) -> int:
    """Mix the bytes up to `end`, 32 at a time, in four lanes."""
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for start in range(0, end, _STRIPE_BYTES):
        lanes = [_round(lane, _word(data, start + 8 * number, 8)) for number, lane in enumerate(lanes)]
    hashed = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        hashed = (hashed ^ _round(0, lane)) * _P1 + _P4 & _MASK
    return hashed


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


_DASHES_OF_PARTITIONED: Final = 4
"""Number of dashes in the id of a file group that has the record index of one partition of the table."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What to read of HFiles.

    Attributes:
        keys: whole keys (string); None to look for prefixes.
        prefixes: beginnings of keys.
    """

    keys: pa.Array | None = None
    prefixes: tuple[str, ...] = ()

    @staticmethod
    def of(kind: Kind, names: Sequence[str]) -> Lookup:
        """Return the look-up of record keys, values, columns or partition paths, as the kind has them."""
        match kind:
            case Kind.FILES:
                return Lookup(keys=pa.array([name or ROOT_PARTITION for name in names], pa.string()))
            case Kind.RECORD_INDEX:
                return Lookup(keys=pa.array(names, pa.string()))
            case Kind.SECONDARY_INDEX:
                return Lookup(prefixes=tuple(encode_secondary_value(name) for name in names))
            case _:
                return Lookup(prefixes=tuple(partition_hash(name) for name in names))

    def entries(self, reader: HFileReader) -> Iterator[HFileEntries]:
        """Yield the entries of an HFile."""
        yield from reader.seek_prefixes(self.prefixes) if self.keys is None else reader.seek(self.keys)

    def by_group(self, slices: Sequence[FileSlice]) -> Iterator[tuple[FileSlice, Lookup]]:
        """Yield the file groups that may have the keys, with the look-up in each.

        Args:
            slices: the latest slices of all file groups of the partition, by file id.
        """
        if self.keys is None or not slices or any(_is_of_partition(each) for each in slices):
            yield from ((each, self) for each in slices)
            return
        groups = group_numbers(self.keys, len(slices))
        for number in np.unique(groups):
            yield slices[number], Lookup(self.keys.filter(pa.array(groups == number)))


def _is_of_partition(file_slice: FileSlice) -> bool:
    return file_slice.file_id.count("-") >= _DASHES_OF_PARTITIONED


def group_numbers(keys: pa.Array, groups: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the number of the file group that each key belongs to, as Java computes it.

    Args:
        keys: keys of records.
        groups: number of file groups.
    """
    hashes = string_hash(keys).astype(np.int64)
    # Java's absolute value of the smallest int is itself; the remainder has its sign.
    positive = np.where(hashes == np.iinfo(np.int32).min, hashes, np.abs(hashes))
    return np.abs(np.fmod(positive, max(1, groups)))
