"""Read an HFile: scan all entries, or look up keys and prefixes of keys.

    data blocks | meta blocks | root index, index of meta blocks, file information | trailer

Keys are sorted by their UTF-8 bytes.

Indexes list the first key of each block. All numbers are big-endian.

    root          entries: { int64 offset, int32 stored size, vint key length, key }
    leaf, inner   int32 n, n + 1 x int32 start of each entry, n x { int64 offset, int32 size, key }

The key of a data block is an int16 length and the row; the reader ignores the bytes that HBase writes after
the row.

Records (`read_hfile_records`): the values are Avro datums, and the reader fills their empty field `key` with
the entry's key.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise, zip_longest
from operator import methodcaller
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.formats.avro.decoder import DAMAGE, RowDecoder, Spans
from drawstring.formats.bloom import SIMPLE, BloomFilter
from drawstring.formats.hfile.blocks import (
    DATA,
    FILE_INFO,
    HEAD_BYTES,
    INNER_INDEX,
    LEAF_INDEX,
    META,
    ROOT_INDEX,
    TRAILER_BYTES,
    BlockSource,
    HFileEntries,
    concat_entries,
    decode_entries,
    decode_info,
    decode_trailer,
    vint,
)
from drawstring.schema.avro import avro_to_arrow

_ENTRY = struct.Struct(">qi")
_ROOT_ENTRY = struct.Struct(">qib")
_COUNT = struct.Struct(">i")
_ROW = struct.Struct(">h")


class IndexEntry(NamedTuple):
    """A block and its first key."""

    key: bytes
    offset: int


def decode_root(data: bytes, count: int) -> list[IndexEntry]:
    """Return the entries of a root index.

    Args:
        data: payload of the block.
        count: number of entries according to the trailer.

    Raises:
        ValueError: the index is damaged.
    """
    if not 0 <= count <= len(data) // _ROOT_ENTRY.size:
        raise ValueError(f"an index claims {count} entries in {len(data)} bytes")
    entries = []
    at = 0
    for _ in range(count):
        offset, _, size = _ROOT_ENTRY.unpack_from(data, at)
        at += _ROOT_ENTRY.size
        if size < 0:
            size, at = vint(data, at - 1)
        if not 0 <= size <= len(data) - at:
            raise ValueError("a key of an index is longer than the index")
        entries.append(IndexEntry(data[at : at + size], offset))
        at += size
    return entries


def decode_inner(data: bytes, blocks_max: int) -> list[IndexEntry]:
    """Return the entries of a leaf or an inner index.

    Args:
        data: payload of the block.
        blocks_max: largest possible number of blocks.

    Raises:
        ValueError: the index is damaged.
    """
    count = _COUNT.unpack_from(data)[0]
    if not 0 <= count < len(data) // _COUNT.size or count > blocks_max:
        raise ValueError(f"an index claims {count} entries in {len(data)} bytes")
    base = _COUNT.size * (count + 2)
    starts = np.frombuffer(data, ">i4", count + 1, _COUNT.size).astype(np.int64)
    sizes = np.diff(starts)
    if starts[0] < 0 or (sizes < _ENTRY.size).any() or base + starts[-1] > len(data):
        raise ValueError("the entries of an index are out of place")
    bounds = (base + starts).tolist()
    return [
        IndexEntry(data[start + _ENTRY.size : stop], _ENTRY.unpack_from(data, start)[0])
        for start, stop in pairwise(bounds)
    ]


def data_blocks(source: BlockSource, root: list[IndexEntry], levels: int) -> list[IndexEntry]:
    """Return the data blocks below a root index, in the order of their keys.

    Args:
        source: the file.
        root: entries of the root index.
        levels: number of index levels, 1 if the root refers to data blocks.

    Raises:
        ValueError: an index is damaged, or refers to a block twice.
    """
    entries = root
    for _ in range(levels - 1):
        entries = _level_below(source, entries)
        _check_once(entries)
    _check_once(entries)
    return [IndexEntry(row_of(key), offset) for key, offset in entries]


def _level_below(source: BlockSource, entries: list[IndexEntry]) -> list[IndexEntry]:
    """Return the entries of the index blocks that entries refer to, at most as many as fit into the file."""
    blocks_left = source.end // HEAD_BYTES
    below: list[IndexEntry] = []
    for entry in entries:
        _, payload, _ = source.block(entry.offset, LEAF_INDEX, INNER_INDEX)
        children = decode_inner(payload, blocks_left)
        blocks_left -= len(children)
        below += children
    return below


def _check_once(entries: list[IndexEntry]) -> None:
    if len({entry.offset for entry in entries}) != len(entries):
        raise ValueError("an index refers to a block twice")


def row_of(key: bytes) -> bytes:
    """Return the row of a key.

    Raises:
        ValueError: the key is shorter than its length field.
    """
    size = _ROW.unpack_from(key)[0]
    if not 0 <= size <= len(key) - _ROW.size:
        raise ValueError("a key is shorter than its row")
    return key[_ROW.size : _ROW.size + size]


_DAMAGE = (ValueError, LookupError, EOFError, struct.error, pa.ArrowException)
_KEY_VALUE_VERSION: Final = b"KEY_VALUE_VERSION"
_WITH_TIMESTAMPS: Final = struct.pack(">i", 1)
_SCHEMA: Final = b"schema"
_BLOOM_FILTER: Final = "bloomFilter"
_BLOOM_TYPE: Final = b"bloomFilterTypeCode"
_SEEK_SHARE_MAX: Final = 1 / 2
"""Ratio of looked-up keys to entries above which the bloom filter is not asked."""

_LEVELS_MAX: Final = 16
_BYTES: Final = methodcaller("as_py")


class HFileReader:
    """Reads an HFile.

    Args:
        file: the file, or one that it is a part of, such as a log file; open for random access.
        size: its size in bytes.
        start: where it starts in the file.

    Raises:
        CorruptTableError: the file is damaged.
        UnsupportedError: its version or compression is not supported.
    """

    def __init__(self, file: pa.NativeFile, size: int, start: int = 0) -> None:
        with _damage():
            if size < TRAILER_BYTES:
                raise ValueError(f"it has only {size} bytes")
            end = size - TRAILER_BYTES
            file.seek(start + end)
            trailer = decode_trailer(file.read(TRAILER_BYTES))
            if not 1 <= trailer.index_levels <= _LEVELS_MAX:
                raise ValueError(f"its index has {trailer.index_levels} levels")
            self.entry_count = trailer.entry_count
            self._source = BlockSource(file, end, trailer.codec, start)
            _, root, at = self._source.block(trailer.load_on_open_offset, ROOT_INDEX)
            _, metas, at = self._source.block(at, ROOT_INDEX)
            _, info, _ = self._source.block(at, FILE_INFO)
            self.info: Mapping[bytes, bytes] = decode_info(info)
            self._metas = {entry.key: entry for entry in decode_root(metas, trailer.meta_index_count)}
            entries = decode_root(root, trailer.data_index_count)
            self._blocks = data_blocks(self._source, entries, trailer.index_levels)
        self._first_keys = [block.key for block in self._blocks]

    @property
    def schema_json(self) -> str | None:
        """The Avro schema of the values, None if the file has none."""
        with _damage():
            return self.info[_SCHEMA].decode() if _SCHEMA in self.info else None

    def meta(self, name: str) -> bytes | None:
        """Return a meta block, such as `bloomFilter`; None if the file does not have it.

        Raises:
            CorruptTableError: the block is damaged.
        """
        entry = self._metas.get(name.encode())
        with _damage():
            return None if entry is None else self._source.block(entry.offset, META)[1]

    def scan(self) -> Iterator[HFileEntries]:
        """Yield all entries, block by block.

        Raises:
            CorruptTableError: a block is damaged, or the number of entries differs from the trailer's.
        """
        count = 0
        for block in self._blocks:
            entries = self._entries(block)
            count += len(entries.keys)
            yield entries
        if count != self.entry_count:
            raise _corrupt(f"it has {count} entries instead of {self.entry_count}")

    def seek(self, keys: pa.Array) -> Iterator[HFileEntries]:
        """Yield the entries with some keys, in order; each block that may have one is read once.

        Args:
            keys: the keys (string), in any order; those that the file lacks are skipped.

        Raises:
            CorruptTableError: a block is damaged.
        """
        yield from concat_entries(self._seek(keys))

    def _seek(self, keys: pa.Array) -> Iterator[HFileEntries]:
        wanted = self._possible(pc.unique(keys.cast(pa.binary())))
        ordered = wanted.take(pc.sort_indices(wanted))
        start, number = 0, 0
        while start < len(ordered) and number < len(self._blocks):
            # The last block that begins before the key may end with it.
            number = max(number, bisect_left(self._first_keys, ordered[start].as_py()) - 1)
            first, after = self._first_keys[number], self._first_key(number + 1)
            start = bisect_left(ordered, first, start, key=_BYTES)
            stop = len(ordered) if after is None else bisect_right(ordered, after, start, key=_BYTES)
            if start < stop:
                yield self._entries(self._blocks[number]).of(ordered.slice(start, stop - start))
                start = stop - (ordered[stop - 1].as_py() == after)
            number += 1

    def _possible(self, keys: pa.Array) -> pa.Array:
        """Return the keys that the bloom filter may have; all if there is none, or reading is cheaper."""
        text = self.meta(_BLOOM_FILTER) if 0 < len(keys) <= self.entry_count * _SEEK_SHARE_MAX else None
        if text is None:
            return keys
        with _damage():
            kind = self.info.get(_BLOOM_TYPE, SIMPLE.encode()).decode()
            bloom = BloomFilter.decode(text.decode(), kind)
            return keys.filter(pa.array(bloom.contains(keys.cast(pa.string()))))

    def _first_key(self, number: int) -> bytes | None:
        return self._first_keys[number] if number < len(self._first_keys) else None

    def seek_prefixes(self, prefixes: Iterable[str]) -> Iterator[HFileEntries]:
        """Yield the entries whose keys begin with any of some texts, in order.

        Args:
            prefixes: the texts, in any order.

        Raises:
            CorruptTableError: a block is damaged.
        """
        yield from concat_entries(self._seek_prefixes(prefixes))

    def _seek_prefixes(self, prefixes: Iterable[str]) -> Iterator[HFileEntries]:
        wanted = sorted({prefix.encode() for prefix in prefixes})
        sizes = {len(prefix) for prefix in wanted}
        for block, after in self._blocks_and_next_keys():
            begun = {block.key[:size] for size in sizes}.intersection(wanted)
            within = sorted(begun.union(wanted[_between(wanted, block.key, after)]))
            if within:
                yield self._entries(block).with_prefixes(within)

    def _blocks_and_next_keys(self) -> Iterator[tuple[IndexEntry, bytes | None]]:
        """Yield each block with the first key of the next, which may continue keys of the block.

        A key of a block is not less than the block's first key and not greater than the next block's, None
        after the last block.
        """
        return zip_longest(self._blocks, self._first_keys[1:])

    def _entries(self, block: IndexEntry) -> HFileEntries:
        with _damage():
            _, payload, _ = self._source.block(block.offset, DATA)
            return decode_entries(payload, self.info.get(_KEY_VALUE_VERSION) == _WITH_TIMESTAMPS)


def _between(rows: list[bytes], first: bytes, last: bytes | None) -> slice:
    """Return which of sorted rows are not less than one key and not greater than another."""
    return slice(bisect_left(rows, first), len(rows) if last is None else bisect_right(rows, last))


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise _corrupt(error) from error


def _corrupt(why: object) -> CorruptTableError:
    return CorruptTableError(f"An HFile is damaged ({why}). To repair the table, {REPAIR}.")


KEY_FIELD: Final = "key"
_SCHEMAS_CACHED: Final = 32
"""Number of schemas and choices of columns whose decoders are cached: all files have the same few."""


def read_hfile_records(
    entries: Iterable[HFileEntries], schema_json: str, columns: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of entries.

    Args:
        entries: entries of one HFile.
        schema_json: Avro schema of the values.
        columns: names of the columns to read; None for all.

    Raises:
        CorruptTableError: the values are damaged.
        UnsupportedError: a type is not supported.
    """
    wanted = None if columns is None else frozenset(columns)
    for each in entries:
        spans = Spans(each.block, each.starts, each.ends)
        done = 0
        try:
            for batch in _decoder(schema_json, wanted).decode(spans):
                yield _with_keys(batch, each.keys.slice(done, batch.num_rows))
                done += batch.num_rows
        except DAMAGE as error:
            raise CorruptTableError(
                f"A record of an HFile is damaged ({error}). To repair the table, {REPAIR}."
            ) from error


@lru_cache(maxsize=_SCHEMAS_CACHED)
def _decoder(schema_json: str, columns: frozenset[str] | None) -> RowDecoder:
    schema = avro_to_arrow(schema_json, with_unions=True)
    return RowDecoder.of(json.loads(schema_json), schema, columns)


def _with_keys(batch: pa.RecordBatch, keys: pa.StringArray) -> pa.RecordBatch:
    """Fill empty fields `key` with the keys of the entries."""
    index = batch.schema.get_field_index(KEY_FIELD)
    if index < 0 or not pa.types.is_string(batch.schema.field(index).type):
        return batch
    stored = batch.column(index)
    filled = pc.if_else(pc.equal(stored, ""), keys, stored)
    return batch.set_column(index, batch.schema.field(index), filled)
