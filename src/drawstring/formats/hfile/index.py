"""HFile indexes, which list the first key of each block. All numbers are big-endian.

root          entries: { int64 offset, int32 stored size, vint key length, key }
leaf, inner   int32 n, n + 1 x int32 start of each entry, n x { int64 offset, int32 size, key }

The key of a data block is an int16 length and the row; the bytes that HBase writes after the row are ignored.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from drawstring.formats.hfile.blocks import HEAD_BYTES, INNER_INDEX, LEAF_INDEX, BlockSource
from drawstring.formats.hfile.trailer import vint

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
