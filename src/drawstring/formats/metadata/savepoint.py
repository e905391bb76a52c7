"""Savepoints, restore plans and restore metadata; Avro in both layouts (specification: Savepoint)."""

from __future__ import annotations

from typing import Any

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.records import inside, one_record, read_as
from drawstring.formats.metadata.rollback import rollback_of, rollback_record
from drawstring.model.savepoint import RestoreMetadata, RestorePlan, Savepoint


def encode_savepoint(saved: Savepoint) -> bytes:
    """Return the content of a completed savepoint."""
    record = {
        "savepointedBy": saved.by,
        "savepointedAt": saved.at_ms,
        "comments": saved.comments,
        "partitionMetadata": {
            partition: {"partitionPath": partition, "savepointDataFile": list(names)}
            for partition, names in saved.files.items()
        },
        "version": 1,
    }
    return encode_container(schemas.compact("savepoint"), record)


def decode_savepoint(data: bytes) -> Savepoint:
    """Return a savepoint.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(_savepoint_of, one_record(data), "a savepoint")


def _savepoint_of(record: dict[str, Any]) -> Savepoint:
    return Savepoint(
        by=record["savepointedBy"],
        at_ms=record["savepointedAt"],
        comments=record["comments"],
        files={
            inside(partition): tuple(map(inside, each["savepointDataFile"]))
            for partition, each in record["partitionMetadata"].items()
        },
    )


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """Return the content of `<instant>.restore.requested`."""
    record = {
        "instantsToRollback": _instants(plan.instants),
        "version": 2,
        "savepointToRestoreTimestamp": plan.savepoint,
    }
    return encode_container(schemas.compact("restore_plan"), record)


def decode_restore_plan(data: bytes) -> RestorePlan:
    """Return a restore plan.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(_restore_plan_of, one_record(data), "a restore plan")


def _restore_plan_of(record: dict[str, Any]) -> RestorePlan:
    instants = tuple((each["commitTime"], each["action"]) for each in record["instantsToRollback"])
    return RestorePlan(instants, record.get("savepointToRestoreTimestamp") or None)


def encode_restore(meta: RestoreMetadata, root: str) -> bytes:
    """Return the content of a completed restore.

    Args:
        meta: the metadata, with paths relative to the table.
        root: absolute path of the table, the prefix of each stored path.
    """
    record = {
        "startRestoreTime": meta.started,
        "timeTakenInMillis": meta.millis,
        "instantsToRollback": [requested for requested, _ in meta.instants],
        "hoodieRestoreMetadata": {
            requested: [rollback_record(rollback, root) for rollback in rollbacks]
            for requested, rollbacks in meta.rollbacks.items()
        },
        "version": 1,
        "restoreInstantInfo": _instants(meta.instants),
    }
    return encode_container(schemas.compact("restore"), record)


def decode_restore(data: bytes, root: str) -> RestoreMetadata:
    """Return the metadata of a completed restore, with paths relative to the table.

    Args:
        data: content of `<instant>.restore`.
        root: absolute path of the table; of paths elsewhere only partition and file name are used.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(lambda record: _restore_of(record, root), one_record(data), "restore metadata")


def _restore_of(record: dict[str, Any], root: str) -> RestoreMetadata:
    undone = record.get("hoodieRestoreMetadata") or {}
    return RestoreMetadata(
        started=record["startRestoreTime"],
        millis=record["timeTakenInMillis"],
        instants=tuple(
            (each["commitTime"], each["action"]) for each in record.get("restoreInstantInfo") or ()
        ),
        rollbacks={
            requested: tuple(rollback_of(each, root) for each in rollbacks if each)
            for requested, rollbacks in undone.items()
        },
    )


def _instants(pairs: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"commitTime": requested, "action": action} for requested, action in pairs]
