r"""The index in a log file: which record keys it and the log files before it may have.

The last block of an indexed log file is a Parquet data block, its own one or, where it has none, one
without rows; so the file ends in a Parquet footer, and one read at its end tells all:

    ... footer | length, 4 LE | "PAR1" | 00000000 (the block's own footer map) | total, 8 BE | end

Entries of that footer: the four of a base file (`key_summary`) for the keys that this log file writes or
deletes, and `drawstring.log.index`, JSON, for its clique and the chain of cliques before:

    {"version": 1, "file": its own name, "keys": how many it has,
     "clique": [member, ...]           the log files before it in its clique, oldest first
     "chain":  [[[name, size], ...]]   earlier cliques, newest first; each the newest of its files first}

    member  {"file", "size", "keys", "smallest", "largest", "filter", "type"[, "opaque": true]}

The accumulated filter of a clique is the filters of its members side by side: as many bytes as one that
was added to, at one rate of false positives, and a member that was compacted just drops out.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.javahash import java_min_max
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.bloom.key_summary import FILTER, FILTER_TYPE, LARGEST_KEY, SMALLEST_KEY, StoredSummary
from drawstring.storage.protocol import Storage

ENTRY: Final = "drawstring.log.index"
FALSE_POSITIVES: Final = 1e-5
"""Rate of the filters: most changes ask about a few thousand keys, and a member is copied into each file."""

FILTER_KEYS_MAX: Final = 100_000
"""Keys of a log file above which it has no filter; its range tells then."""

_VERSION: Final = 1
_FOOTER_END: Final = struct.Struct("<i4s4sq")
_PARQUET_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 64 << 10

FileRef: TypeAlias = tuple[str, int]
"""Name and size of a log file; a file that was appended to since is another one."""


@dataclass(frozen=True, slots=True)
class Member:
    """What is known of one log file without reading it.

    Attributes:
        file: its name and size.
        summary: the keys that it writes or deletes.
        is_opaque: it holds more than keys tell, a rollback for instance, and is read in any case.
    """

    file: FileRef
    summary: StoredSummary
    is_opaque: bool = False


@dataclass(frozen=True, slots=True)
class LogIndex:
    """What the end of a log file tells.

    Attributes:
        file: the file's name.
        own: its keys.
        clique: the log files before it in its clique, oldest first.
        chain: earlier cliques, newest first; each the newest of its files first.
    """

    file: str
    own: StoredSummary
    clique: tuple[Member, ...] = ()
    chain: tuple[tuple[FileRef, ...], ...] = ()


class LogKeys:
    """Takes the keys of a log file, piece by piece.

    Above `FILTER_KEYS_MAX` keys the file has no filter, which every member of its clique would copy.
    """

    def __init__(self) -> None:
        self._count = 0
        self._held: list[pa.Array] = []
        self._ends: list[str | None] = []

    def add(self, keys: pa.Array) -> None:
        """Add record keys, text, without nulls."""
        self._count += len(keys)
        self._ends.extend(java_min_max(keys))
        self._held = [*self._held, keys] if self._count <= FILTER_KEYS_MAX else []

    def summary(self) -> StoredSummary:
        """Return what the file tells of its keys."""
        if not self._count:
            return StoredSummary(0)
        ends = java_min_max(pa.array(self._ends, pa.string()))
        if not self._held:
            return StoredSummary(self._count, *ends)
        bloom = BloomFilter.empty(self._count, self._count, FALSE_POSITIVES)
        bloom.add(pa.concat_arrays(self._held))
        return StoredSummary(self._count, *ends, bloom.encode(), bloom.type_code)


def encode_log_index(index: LogIndex) -> dict[str, str]:
    """Return the entries of a Parquet footer."""
    own = index.own
    texts = {
        SMALLEST_KEY: own.smallest,
        LARGEST_KEY: own.largest,
        FILTER: own.filter_text,
        FILTER_TYPE: own.filter_type,
    }
    told = {
        "version": _VERSION,
        "file": index.file,
        "keys": own.rows,
        "clique": [_encode_member(member) for member in index.clique],
        "chain": index.chain,
    }
    entries = {name: text for name, text in texts.items() if text}
    return {**entries, ENTRY: json.dumps(told, separators=(",", ":"))}


def read_log_index(storage: Storage, path: str) -> LogIndex | None:
    """Return what the end of a log file tells; None for a file that other writers or older ones made.

    A damaged index counts as none: the blocks say themselves what they hold.

    Args:
        storage: the table's files.
        path: of the log file.

    Raises:
        FileNotFoundError: the log file is gone.
    """
    with storage.open(path) as file:
        try:
            entries = _footer_entries(file)
            if entries is None or ENTRY not in entries:
                return None
            return _decode(entries, path.rpartition("/")[2])
        except (pa.ArrowException, struct.error, KeyError, RecursionError, TypeError, ValueError):
            return None


def _footer_entries(file: pa.NativeFile) -> dict[str, str] | None:
    size = file.size()
    tail = _last(file, size, min(size, _TAIL_BYTES))
    if len(tail) < _FOOTER_END.size:
        return None
    length, magic, _, _ = _FOOTER_END.unpack(tail[-_FOOTER_END.size :])
    needed = _FOOTER_END.size + length
    if magic != _PARQUET_MAGIC or not 0 < needed <= size:
        return None
    if needed > len(tail):
        tail = _last(file, size, needed)
    stop = len(tail) - (_FOOTER_END.size - 8)
    metadata = pq.read_metadata(pa.BufferReader(tail[stop - length - 8 : stop])).metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}


def _last(file: pa.NativeFile, size: int, count: int) -> bytes:
    file.seek(size - count)
    return bytes(file.read(count))


def _decode(entries: Mapping[str, str], name: str) -> LogIndex | None:
    told = json.loads(entries[ENTRY])
    if told["version"] != _VERSION or told["file"] != name:
        return None
    chain = tuple(tuple((file, int(size)) for file, size in clique) for clique in told["chain"])
    clique = tuple(_decode_member(each) for each in told["clique"])
    return LogIndex(name, StoredSummary.of(entries, int(told["keys"])), clique, chain)


def _encode_member(member: Member) -> dict[str, Any]:
    name, size = member.file
    summary = member.summary
    told = {
        "file": name,
        "size": size,
        "keys": summary.rows,
        "smallest": summary.smallest,
        "largest": summary.largest,
        "filter": summary.filter_text,
        "type": summary.filter_type,
    }
    return {**told, "opaque": True} if member.is_opaque else told


def _decode_member(told: Mapping[str, Any]) -> Member:
    summary = StoredSummary(
        int(told["keys"]), told["smallest"], told["largest"], told["filter"], told["type"]
    )
    return Member((told["file"], int(told["size"])), summary, bool(told.get("opaque")))
