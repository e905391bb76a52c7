"""Encode and decode the archived timeline in both layouts, and convert between them.

Specification: Timeline, archived.

    layout 1   a record for each state of an instant, with the content of its file in one of many fields
    layout 2   a row for each instant, with its completed file and its plan

Layout 1: an archive is a log file with Avro data blocks.

    commitTime, actionType, actionState   REQUESTED, INFLIGHT or COMPLETED
    hoodieCommitMetadata, hoodieReplaceCommitMetadata, ...   one is set, the others are null

Layout 2: Parquet files.

    instantTime, completionTime, action   texts; the action of the completed state
    metadata                              bytes of the completed file
    plan                                  bytes of the requested file of table services and replace commits
    version                               1

`archived_instant_rows` converts entries of layout 1 into rows of layout 2; `archived_states` converts an
instant for layout 1.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.errors import CorruptTableError
from drawstring.formats import schemas
from drawstring.formats.avro.checks import check_bounded
from drawstring.formats.avro.container import DAMAGE, MAGIC
from drawstring.formats.metadata.commit import avro_commit, avro_file, commit_from_record
from drawstring.formats.metadata.records import one_record
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import Action

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
    commit = None if content is None else commit_from_record(content)
    return ArchiveEntry(str(record["commitTime"]), str(record["actionType"]), commit)


_SCHEMA: Final = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_KEY: Final = ("instantTime", "completionTime", "action")
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ArchivedInstantRow:
    """An archived instant."""

    requested: str
    completed: str
    action: str
    metadata: bytes
    plan: bytes | None


def encode_history(rows: Iterable[ArchivedInstantRow]) -> bytes:
    """Return a file with instants, which have to be sorted by requested time."""
    instants = list(rows)
    columns = [
        pa.array([row.requested for row in instants], pa.string()),
        pa.array([row.completed for row in instants], pa.string()),
        pa.array([row.action for row in instants], pa.string()),
        pa.array([row.metadata for row in instants], pa.binary()),
        pa.array([row.plan for row in instants], pa.binary()),
        pa.array([_VERSION] * len(instants), pa.int32()),
    ]
    return _encode(pa.Table.from_arrays(columns, schema=_SCHEMA))


def decode_history(data: bytes) -> list[ArchivedInstantRow]:
    """Return the instants of a file.

    Raises:
        CorruptTableError: the file is damaged, or lacks columns.
    """
    try:
        table = pq.read_table(pa.BufferReader(data)).select(_SCHEMA.names[:-1])
    except (pa.ArrowException, KeyError) as error:
        raise CorruptTableError(
            f"A file of the archived timeline is damaged ({error}). Restore the file from a backup."
        ) from error
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [ArchivedInstantRow(row[0], row[1], row[2], row[3] or b"", row[4]) for row in rows]


def merge_history(files: Iterable[bytes]) -> bytes:
    """Return one file with the distinct instants of several files, sorted by requested time."""
    merged = pa.concat_tables([pq.read_table(pa.BufferReader(data)).select(_SCHEMA.names) for data in files])
    first: dict[tuple[str, ...], int] = {}
    for number, key in enumerate(zip(*(merged[name].to_pylist() for name in _KEY), strict=True)):
        first.setdefault(key, number)
    return _encode(merged.cast(_SCHEMA).take(pa.array([first[key] for key in sorted(first)], pa.int64())))


def _encode(table: pa.Table) -> bytes:
    target = pa.BufferOutputStream()
    pq.write_table(table, target, compression="gzip", store_schema=False)
    return bytes(target.getvalue())


_COMPLETED_FIELD: Final[Mapping[Action, tuple[str, str]]] = {
    Action.CLEAN: ("hoodieCleanMetadata", "clean"),
    Action.ROLLBACK: ("hoodieRollbackMetadata", "rollback"),
    Action.SAVEPOINT: ("hoodieSavePointMetadata", "savepoint"),
}
_COMMITS: Final[Mapping[Action, str]] = {
    Action.COMMIT: "hoodieCommitMetadata",
    Action.DELTA_COMMIT: "hoodieCommitMetadata",
    Action.REPLACE_COMMIT: "hoodieReplaceCommitMetadata",
}
_PLANS: Final[Mapping[str, str]] = {
    "hoodieCompactionPlan": "compaction_plan",
    "hoodieCleanerPlan": "clean_plan",
    "hoodieRequestedReplaceMetadata": "requested_replace",
}
_PENDING_NAME: Final = {Action.COMMIT: "compaction", Action.DELTA_COMMIT: "logcompaction"}
_ACTIONS: Final = frozenset(action.value for action in Action)


def archived_instant_rows(records: Iterable[Mapping[str, Any]]) -> Iterator[ArchivedInstantRow]:
    """Yield a layout 2 row for each completed instant in entries of layout 1, in their order.

    Args:
        records: the decoded entries; all states of an instant are adjacent.

    Raises:
        CorruptTableError: an entry does not match the format.
    """
    states: list[Mapping[str, Any]] = []
    for record in records:
        if states and _key(states[0]) != _key(record):
            yield from _row(states)
            states = []
        states.append(record)
    if states:
        yield from _row(states)


def _key(record: Mapping[str, Any]) -> tuple[str, str]:
    name = str(record["actionType"])
    action = Action(name).completed_action if name in _ACTIONS else name
    return str(record["commitTime"]), str(action)


def _row(states: list[Mapping[str, Any]]) -> Iterator[ArchivedInstantRow]:
    requested, name = _key(states[0])
    completed = next((state for state in reversed(states) if state["actionState"] == "COMPLETED"), None)
    if completed is None or name not in _ACTIONS:
        return
    reached = completed.get("stateTransitionTime")
    yield ArchivedInstantRow(
        requested=requested,
        completed=max(str(reached), requested) if reached else requested,
        action=name,
        metadata=_metadata(Action(name), completed),
        plan=_plan(states),
    )


def _metadata(action: Action, record: Mapping[str, Any]) -> bytes:
    if action in _COMMITS:
        content = record.get(_COMMITS[action]) or record.get("hoodieCommitMetadata")
        return avro_commit(content, replace=action is Action.REPLACE_COMMIT) if content else b""
    field, schema = _COMPLETED_FIELD.get(action, ("", ""))
    content = record.get(field)
    return avro_file(schema, content) if content else b""


def _plan(states: list[Mapping[str, Any]]) -> bytes | None:
    for record in states:
        for field, schema in _PLANS.items():
            if content := record.get(field):
                return avro_file(schema, content)
    return None


def archived_states(row: ArchivedInstantRow) -> list[ArchivedState]:
    """Return the states of an instant for layout 1: requested, if it has a plan, and completed."""
    states = [ArchivedState(row.requested, row.action, "COMPLETED", row.completed, row.metadata)]
    if row.plan:
        pending = _PENDING_NAME.get(Action(row.action), row.action)
        states.insert(0, ArchivedState(row.requested, pending, "REQUESTED", row.requested, row.plan))
    return states
