"""Entries of the archived timeline, layout 1 (specification: Timeline, archived).

An archive is a log file with Avro data blocks, which have one record for each state of an instant:

    commitTime, actionType, actionState   REQUESTED, INFLIGHT or COMPLETED
    hoodieCommitMetadata, hoodieReplaceCommitMetadata, ...   one is set, the others are null
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import fastavro

from drawstring.base.errors import CorruptTableError
from drawstring.formats import schemas
from drawstring.formats.avro.checks import check_bounded
from drawstring.formats.avro.container import DAMAGE, MAGIC
from drawstring.formats.metadata.commit import commit_of
from drawstring.formats.metadata.records import one_record
from drawstring.model.commit import CommitMetadata

_HEAD: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")
_COMPLETED: Final = "COMPLETED"
_METADATA: Final = ("hoodieReplaceCommitMetadata", "hoodieCommitMetadata")
_CONTENT_VERSION: Final = 3
_FIELDS: Final[Mapping[tuple[str, str], str]] = {
    ("commit", "COMPLETED"): "hoodieCommitMetadata",
    ("commit", "INFLIGHT"): "hoodieCommitMetadata",
    ("deltacommit", "COMPLETED"): "hoodieCommitMetadata",
    ("deltacommit", "INFLIGHT"): "hoodieCommitMetadata",
    ("replacecommit", "COMPLETED"): "hoodieReplaceCommitMetadata",
    ("replacecommit", "INFLIGHT"): "HoodieInflightReplaceMetadata",
    ("replacecommit", "REQUESTED"): "hoodieRequestedReplaceMetadata",
    ("compaction", "REQUESTED"): "hoodieCompactionPlan",
    ("logcompaction", "REQUESTED"): "hoodieCompactionPlan",
    ("clean", "COMPLETED"): "hoodieCleanMetadata",
    ("clean", "INFLIGHT"): "hoodieCleanerPlan",
    ("clean", "REQUESTED"): "hoodieCleanerPlan",
    ("rollback", "COMPLETED"): "hoodieRollbackMetadata",
}
"""The field for the content of a state's file; other states are empty or redundant."""

_TEXTS: Final = "extraMetadata"


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A completed instant in an archive.

    Attributes:
        requested: its requested time.
        action: its action as stored; that of a compaction may be `compaction` or `commit`.
        commit: its commit metadata, None if it is not a write.
    """

    requested: str
    action: str
    commit: CommitMetadata | None


@dataclass(frozen=True, slots=True)
class ArchivedState:
    """A file of the active timeline that is archived.

    Attributes:
        requested: requested time of the instant.
        action: its action in this state.
        state: `REQUESTED`, `INFLIGHT` or `COMPLETED`.
        reached: time of the transition to this state, as an instant time.
        content: content of the file.
    """

    requested: str
    action: str
    state: str
    reached: str
    content: bytes


def encode_archive_entries(states: Sequence[ArchivedState]) -> tuple[bytes, str]:
    """Return the content of a block of an archive, and the Avro schema for its header.

    Raises:
        CorruptTableError: the content of a state is damaged.
    """
    schema = schemas.load("archived_entry")
    parsed = fastavro.parse_schema(schema)
    parts = [_HEAD.pack(_CONTENT_VERSION, len(states))]
    for state in states:
        stream = io.BytesIO()
        try:
            fastavro.schemaless_writer(stream, parsed, _record(state))
        except DAMAGE as error:
            raise CorruptTableError(
                f"The {state.action} cannot be archived because its {state.state.lower()} file is damaged"
                f" ({error}). Restore the file from a backup.",
                instant=state.requested,
            ) from error
        datum = stream.getvalue()
        parts += (_LENGTH.pack(len(datum)), datum)
    return b"".join(parts), json.dumps(schema, separators=(",", ":"))


def _record(state: ArchivedState) -> dict[str, Any]:
    record: dict[str, Any] = {
        "commitTime": state.requested,
        "actionType": state.action,
        "actionState": state.state,
        "stateTransitionTime": state.reached,
    }
    field = _FIELDS.get((state.action, state.state))
    if field and state.content:
        is_avro = state.content[:4] == MAGIC
        content = one_record(state.content) if is_avro else json.loads(state.content)
        if content.get(_TEXTS):
            content[_TEXTS] = {key: str(text) for key, text in content[_TEXTS].items() if text is not None}
        record[field] = content
    return record


def decode_archive_entries(data: bytes, schema_json: str) -> list[ArchiveEntry]:
    """Return the completed instants in a block of an archive.

    Args:
        data: content of the block.
        schema_json: Avro schema of the block's header.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    records = decode_archive_records(data, schema_json)
    try:
        return [_entry(record) for record in records if record["actionState"] == _COMPLETED]
    except DAMAGE as error:
        raise _damaged(error) from error


def decode_archive_records(data: bytes, schema_json: str) -> list[dict[str, Any]]:
    """Return all decoded records of a block of an archive; see `decode_archive_entries`."""
    try:
        schema = json.loads(schema_json)
        check_bounded(schema)
        return list(_records(data, fastavro.parse_schema(schema)))
    except DAMAGE as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"A block of the archived timeline is damaged ({error}). Restore the file from a backup."
    )


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
