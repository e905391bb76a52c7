"""Encode and decode rollbacks, savepoints and restores: their plans and their metadata.

Specification: Rollback, Savepoint. Savepoints and restores are Avro in both layouts.

Files of rollbacks have absolute paths, the model relative ones. The table may have been moved since, so
decoders use only partition path and file name of an absolute path elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.records import inside, one_record, read_as
from drawstring.model.files import FileStatus, LogFile, join_path
from drawstring.model.plans import (
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RollbackStat,
    Savepoint,
)


def encode_rollback_plan(plan: RollbackPlan, root: str) -> bytes:
    """Return the content of `<instant>.rollback.requested`.

    Args:
        plan: the plan, with paths relative to the table.
        root: absolute path of the table, the prefix of each stored path.
    """
    record = {
        "instantToRollback": {"commitTime": plan.instant, "action": plan.action},
        "RollbackRequests": [_request_record(request, root) for request in plan.requests],
        "version": 1,
    }
    return encode_container(schemas.compact("rollback_plan"), record)


def _request_record(request: RollbackRequest, root: str) -> dict[str, Any]:
    return {
        "partitionPath": request.partition,
        "fileId": request.file_id,
        "latestBaseInstant": request.base_instant,
        "filesToBeDeleted": _absolute(request.files_to_delete, root),
        "logBlocksToBeDeleted": _absolute_sizes(request.log_blocks, root),
    }


def decode_rollback_plan(data: bytes, root: str) -> RollbackPlan:
    """Return a rollback plan with paths relative to the table.

    Args:
        data: content of `<instant>.rollback.requested`.
        root: absolute path of the table; of paths elsewhere only partition and file name are used.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(lambda record: _plan_of(record, root), one_record(data), "a rollback plan")


def _plan_of(record: dict[str, Any], root: str) -> RollbackPlan:
    target = record["instantToRollback"]
    requests = tuple(_request_of(each, root) for each in record.get("RollbackRequests") or ())
    return RollbackPlan(target["commitTime"], target["action"], requests)


def _request_of(record: dict[str, Any], root: str) -> RollbackRequest:
    partition = record["partitionPath"]
    return RollbackRequest(
        partition=partition,
        file_id=record.get("fileId") or "",
        base_instant=record.get("latestBaseInstant") or "",
        files_to_delete=_relative(record.get("filesToBeDeleted"), partition, root),
        log_blocks=_relative_sizes(record.get("logBlocksToBeDeleted"), partition, root),
    )


def encode_rollback(meta: RollbackMetadata, root: str) -> bytes:
    """Return the content of a completed rollback.

    Args:
        meta: the metadata, with paths relative to the table.
        root: absolute path of the table, the prefix of each stored path.
    """
    return encode_container(schemas.compact("rollback"), rollback_record(meta, root))


def rollback_record(meta: RollbackMetadata, root: str) -> dict[str, Any]:
    """Return a rollback as a record, which restore metadata contains, too; arguments as `encode_rollback`."""
    return {
        "startRollbackTime": meta.started,
        "timeTakenInMillis": round(meta.seconds * 1000),
        "totalFilesDeleted": sum(len(stat.deleted) for stat in meta.stats),
        "commitsRollback": [meta.instant],
        "partitionMetadata": {stat.partition: _stat_record(stat, root) for stat in meta.stats},
        "version": 1,
        "instantsRollback": [{"commitTime": meta.instant, "action": meta.action}],
    }


def _stat_record(stat: RollbackStat, root: str) -> dict[str, Any]:
    return {
        "partitionPath": stat.partition,
        "successDeleteFiles": _absolute(stat.deleted, root),
        "failedDeleteFiles": _absolute(stat.failed, root),
        "rollbackLogFiles": _absolute_sizes(stat.command_files, root),
        "logFilesFromFailedCommit": {},
    }


def decode_rollback(data: bytes, root: str) -> RollbackMetadata:
    """Return the metadata of a completed rollback, with paths relative to the table.

    Args:
        data: content of `<instant>.rollback`.
        root: absolute path of the table; of paths elsewhere only partition and file name are used.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(lambda record: rollback_of(record, root), one_record(data), "rollback metadata")


def rollback_of(record: dict[str, Any], root: str) -> RollbackMetadata:
    """Return the rollback in a decoded record; arguments as `decode_rollback`."""
    instants = record.get("instantsRollback") or ()
    partitions = record.get("partitionMetadata") or {}
    return RollbackMetadata(
        started=record["startRollbackTime"],
        seconds=record["timeTakenInMillis"] / 1000,
        instant=record["commitsRollback"][0],
        action=instants[0]["action"] if instants else "",
        stats=tuple(_stat_of(partition, each, root) for partition, each in partitions.items()),
    )


def _stat_of(partition: str, record: dict[str, Any], root: str) -> RollbackStat:
    return RollbackStat(
        partition=partition,
        deleted=_relative(record.get("successDeleteFiles"), partition, root),
        failed=_relative(record.get("failedDeleteFiles"), partition, root),
        command_files=_relative_sizes(record.get("rollbackLogFiles"), partition, root),
    )


def _absolute(paths: Iterable[str], root: str) -> list[str]:
    return [join_path(root.rstrip("/"), path) for path in paths]


def _absolute_sizes(sizes: Mapping[str, int], root: str) -> dict[str, int]:
    return {join_path(root.rstrip("/"), path): size for path, size in sizes.items()}


def _relative(paths: Iterable[str] | None, partition: str, root: str) -> tuple[str, ...]:
    return tuple(_relative_path(path, partition, root) for path in paths or ())


def _relative_sizes(sizes: Mapping[str, int] | None, partition: str, root: str) -> dict[str, int]:
    """Return sizes by relative path of the log file; '' if the writer stored the table's path instead."""
    return {
        _relative_path(path, partition, root) if _is_log(path) else "": size
        for path, size in (sizes or {}).items()
    }


def _relative_path(path: str, partition: str, root: str) -> str:
    inside = root.rstrip("/") + "/"
    if root and path.startswith(inside):
        return path.removeprefix(inside)
    return join_path(partition, _name(path))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_log(path: str) -> bool:
    return LogFile.parse(FileStatus(_name(path), 0)) is not None


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
