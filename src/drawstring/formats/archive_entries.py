"""Entries of the archived timeline of layout 1 (specification: Timeline, archived).

A log file of Avro data blocks; a record for every state of an instant:

    commitTime, actionType, actionState   REQUESTED, INFLIGHT or COMPLETED
    hoodieCommitMetadata, hoodieReplaceCommitMetadata, ...   one of them, the others null
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import fastavro

from drawstring.base.errors import CorruptTableError
from drawstring.formats.avro_checks import check_bounded
from drawstring.formats.avro_container import DAMAGE
from drawstring.formats.metadata import commit_of
from drawstring.model.commit import CommitMetadata

_HEAD: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")
_COMPLETED: Final = "COMPLETED"
_METADATA: Final = ("hoodieReplaceCommitMetadata", "hoodieCommitMetadata")


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A completed instant as an archive tells of it.

    Attributes:
        requested: its requested time.
        action: its action as written; a compaction may be called so or `commit`.
        commit: what it says about itself, None when it is no write.
    """

    requested: str
    action: str
    commit: CommitMetadata | None


def decode_archive_entries(data: bytes, schema_json: str) -> list[ArchiveEntry]:
    """Return the completed instants of one block of an archive.

    Args:
        data: content of the block.
        schema_json: Avro schema of the block's header.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    try:
        schema = json.loads(schema_json)
        check_bounded(schema)
        parsed = fastavro.parse_schema(schema)
        return [_entry(record) for record in _records(data, parsed) if record["actionState"] == _COMPLETED]
    except DAMAGE as error:
        raise CorruptTableError(
            f"A block of the archived timeline is damaged ({error}); restore the file from a backup."
        ) from error


def _records(data: bytes, schema: Any) -> Iterator[dict[str, Any]]:
    _, count = _HEAD.unpack_from(data)
    if not 0 <= count <= len(data) // _LENGTH.size:
        raise ValueError(f"it claims {count} entries in {len(data)} bytes")
    at = _HEAD.size
    for _ in range(count):
        start = at + _LENGTH.size
        at = start + _LENGTH.unpack_from(data, at)[0]
        if not start < at <= len(data):
            raise ValueError("an entry is longer than the block")
        record: Any = fastavro.schemaless_reader(io.BytesIO(data[start:at]), schema, None)
        yield record


def _entry(record: dict[str, Any]) -> ArchiveEntry:
    content = next((record[name] for name in _METADATA if record.get(name)), None)
    commit = None if content is None else commit_of(content)
    return ArchiveEntry(str(record["commitTime"]), str(record["actionType"]), commit)
