r"""The index in a log file: summaries of the record keys of it and of the log files before it.

The last block of an indexed log file is a Parquet data block, which may be empty; a native log file is a
Parquet file itself. So the file ends with a Parquet footer, and one read at its end returns the index:

    ... footer | length, 4 LE | "PAR1" | 00000000 (the block's own footer map) | total, 8 BE | end
    ... footer | length, 4 LE | "PAR1" | end of a native log file

The footer has the four entries of a base file (`key_summary`) for the keys that this log file writes or
deletes, and `drawstring.log.index`, JSON, for its clique (RFC-06) and the chain of earlier cliques:

    {"version": 1, "file": its own name, "keys": number of its keys,
     "clique": [member, ...]           the earlier log files of its clique, oldest first
     "chain":  [[[name, size], ...]]   earlier cliques, newest first; in each the newest file first}

    member  {"file", "size", "keys", "smallest", "largest", "filter", "type"[, "opaque": true]}

A clique keeps the filters of its members side by side instead of one combined filter: the size and the rate
of false positives are the same, and a member that was compacted can be dropped.

The headers and footers of log blocks cannot carry it: their keys are ordinals of an enum in Hudi, and an
unknown one ends Hudi's reader. A file beside each log file would be listed by every reader and left behind by
Hudi's cleaner. With a rate of false positives of 10⁻⁵ and cliques of ten files a key takes 23 bytes. Hudi's
bloom and simple indexes do not look into log files: compact such a table before Hudi upserts into it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.errors import DrawstringError
from drawstring.base.java_compat import java_min_max
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import FILTER, FILTER_TYPE, LARGEST_KEY, SMALLEST_KEY, StoredSummary
from drawstring.formats.data_file import has_footer, is_parquet, open_footer
from drawstring.storage.protocol import Storage

ENTRY: Final = "drawstring.log.index"
FALSE_POSITIVES: Final = 1e-5
"""False positive rate of the filters: most lookups have few keys, and each file copies all members."""

FILTER_KEYS_MAX: Final = 100_000
"""Number of keys of a log file above which it has only a key range and no filter."""

_DAMAGE: Final = (struct.error, KeyError, RecursionError, TypeError, ValueError)
_VERSION: Final = 1
_PARQUET_END: Final = struct.Struct("<i4s")
_BLOCK_END_BYTES: Final = 12
_PARQUET_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 64 << 10

FileRef: TypeAlias = tuple[str, int]
"""Name and size of a log file; after an append it counts as another file."""


@dataclass(frozen=True, slots=True)
class Member:
    """The index entry of a log file, which makes reading it unnecessary in most lookups.

    Attributes:
        file: its name and size.
        summary: summary of the keys that it writes or deletes.
        is_opaque: whether keys do not describe its contents (such as a rollback), so that it must be read.
    """

    file: FileRef
    summary: StoredSummary
    is_opaque: bool = False


@dataclass(frozen=True, slots=True)
class LogIndex:
    """The index at the end of a log file.

    Attributes:
        file: name of the log file.
        own: summary of its keys.
        clique: the earlier log files of its clique, oldest first.
        chain: earlier cliques, newest first; in each the newest file first.
    """

    file: str
    own: StoredSummary
    clique: tuple[Member, ...] = ()
    chain: tuple[tuple[FileRef, ...], ...] = ()


class LogKeys:
    """Collects the keys of a log file.

    Above `FILTER_KEYS_MAX` keys the file gets no filter, since every later file of its clique would copy it.
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
        """Return the summary of the keys."""
        if not self._count:
            return StoredSummary(0)
        ends = java_min_max(pa.array(self._ends, pa.string()))
        if not self._held:
            return StoredSummary(self._count, *ends)
        bloom = BloomFilter.empty(self._count, self._count, FALSE_POSITIVES)
        bloom.add(pa.concat_arrays(self._held))
        return StoredSummary(self._count, *ends, bloom.encode(), bloom.type_code)


def encode_log_index(index: LogIndex) -> dict[str, str]:
    """Return the Parquet footer entries of an index."""
    own = index.own
    texts = {
        SMALLEST_KEY: own.smallest,
        LARGEST_KEY: own.largest,
        FILTER: own.filter_text,
        FILTER_TYPE: own.filter_type,
    }
    content = {
        "version": _VERSION,
        "file": index.file,
        "keys": own.rows,
        "clique": [_encode_member(member) for member in index.clique],
        "chain": index.chain,
    }
    entries = {name: text for name, text in texts.items() if text}
    return {**entries, ENTRY: json.dumps(content, separators=(",", ":"))}


def read_log_index(storage: Storage, path: str) -> LogIndex | None:
    """Return the index of a log file; None if its writer did not add one.

    A damaged index counts as missing, since the blocks themselves have the keys.

    Args:
        storage: storage of the table.
        path: path of the log file.

    Raises:
        FileNotFoundError: the log file is gone.
    """
    with storage.open(path) as file:
        try:
            entries = _entries(file, path)
            if entries is None or ENTRY not in entries:
                return None
            return _decode(entries, path.rpartition("/")[2])
        except (DrawstringError, pa.ArrowException, *_DAMAGE):
            return None


def _entries(file: pa.NativeFile, path: str) -> Mapping[str, str] | None:
    """Return the entries of the footer with which a log file ends; None if it has none."""
    if has_footer(path) and not is_parquet(path):
        return open_footer(file, path).entries
    return _footer_entries(file)


def _footer_entries(file: pa.NativeFile) -> dict[str, str] | None:
    size = file.size()
    tail = _last(file, size, min(size, _TAIL_BYTES))
    if len(tail) < _PARQUET_END.size + _BLOCK_END_BYTES:
        return None
    after = 0 if tail.endswith(_PARQUET_MAGIC) else _BLOCK_END_BYTES
    length, magic = _PARQUET_END.unpack_from(tail, len(tail) - after - _PARQUET_END.size)
    needed = _PARQUET_END.size + after + length
    if magic != _PARQUET_MAGIC or not 0 < needed <= size:
        return None
    if needed > len(tail):
        tail = _last(file, size, needed)
    stop = len(tail) - after
    footer = pa.BufferReader(tail[stop - length - _PARQUET_END.size : stop])
    metadata = pq.read_metadata(footer).metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items()}


def _last(file: pa.NativeFile, size: int, count: int) -> bytes:
    file.seek(size - count)
    return bytes(file.read(count))


def _decode(entries: Mapping[str, str], name: str) -> LogIndex | None:
    content = json.loads(entries[ENTRY])
    if content["version"] != _VERSION or content["file"] != name:
        return None
    chain = tuple(tuple((file, int(size)) for file, size in clique) for clique in content["chain"])
    clique = tuple(_decode_member(member) for member in content["clique"])
    return LogIndex(name, StoredSummary.of(entries, int(content["keys"])), clique, chain)


def _encode_member(member: Member) -> dict[str, Any]:
    name, size = member.file
    summary = member.summary
    content = {
        "file": name,
        "size": size,
        "keys": summary.rows,
        "smallest": summary.smallest,
        "largest": summary.largest,
        "filter": summary.filter_text,
        "type": summary.filter_type,
    }
    return {**content, "opaque": True} if member.is_opaque else content


def _decode_member(content: Mapping[str, Any]) -> Member:
    summary = StoredSummary(
        int(content["keys"]), content["smallest"], content["largest"], content["filter"], content["type"]
    )
    return Member((content["file"], int(content["size"])), summary, bool(content.get("opaque")))
