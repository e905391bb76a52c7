"""Clean plans and clean metadata, Avro in both layouts (specification: Clean).

The plan has absolute paths. The table may have been moved since, so only partition and file name of a path
are used. The metadata has only file names.
"""

from __future__ import annotations

from typing import Any, Final

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.records import inside, one_record, read_as
from drawstring.model.clean import CleanedPartition, CleanMetadata, CleanPlan, EarliestRetained
from drawstring.model.files import join_path

_VERSION: Final = 2
_SAVED: Final = "savepointed_timestamps"
_VERSIONS: Final = "hoodie.clean.fileversions.retained"
_UNCLEANED: Final = "drawstring.uncleaned_from"
_FILTERED: Final = "drawstring.partition_filter"


def encode_clean_plan(plan: CleanPlan, root: str) -> bytes:
    """Return the content of `<instant>.clean.requested`.

    Args:
        plan: the plan, with paths relative to the table.
        root: address of the table, the prefix of each stored path.
    """
    earliest = plan.earliest
    record = {
        "earliestInstantToRetain": earliest
        and {"timestamp": earliest.requested, "action": earliest.action, "state": earliest.state},
        "lastCompletedCommitTimestamp": plan.last_completed,
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {},
        "version": _VERSION,
        "filePathsToBeDeletedPerPartition": {
            partition: [_file_info(join_path(root.rstrip("/"), path)) for path in paths]
            for partition, paths in plan.files.items()
        },
        "partitionsToBeDeleted": list(plan.partitions_to_delete),
        "extraMetadata": _extra(plan),
    }
    return encode_container(schemas.compact("clean_plan"), record)


def decode_clean_plan(data: bytes) -> CleanPlan:
    """Return a clean plan with paths relative to the table.

    Args:
        data: content of `<instant>.clean.requested`.

    Raises:
        CorruptTableError: the bytes are damaged, or a path leads out of the table.
    """
    return read_as(_plan_of, one_record(data), "a clean plan")


def _plan_of(record: dict[str, Any]) -> CleanPlan:
    earliest = record.get("earliestInstantToRetain")
    named = record.get("filesToBeDeletedPerPartition") or {}
    files: dict[str, list[str]] = {partition: list(paths) for partition, paths in named.items()}
    for partition, infos in (record.get("filePathsToBeDeletedPerPartition") or {}).items():
        # Bootstrap source files do not belong to the table and are never deleted.
        own = [info["filePath"] for info in infos if not info.get("isBootstrapBaseFile")]
        files.setdefault(partition, []).extend(own)
    return CleanPlan(
        policy=record["policy"],
        earliest=earliest and EarliestRetained(earliest["timestamp"], earliest["action"], earliest["state"]),
        last_completed=record.get("lastCompletedCommitTimestamp") or "",
        files={
            partition: tuple(_relative(partition, p) for p in paths) for partition, paths in files.items()
        },
        partitions_to_delete=tuple(map(inside, record.get("partitionsToBeDeleted") or ())),
        savepoints=_saved(record),
        versions_retained=_versions(record),
        uncleaned_from=(record.get("extraMetadata") or {}).get(_UNCLEANED) or None,
        is_filtered=(record.get("extraMetadata") or {}).get(_FILTERED) == "true",
    )


def encode_clean(meta: CleanMetadata) -> bytes:
    """Return the content of a completed clean."""
    record = {
        "startCleanTime": meta.started,
        "timeTakenInMillis": meta.millis,
        "totalFilesDeleted": sum(len(each.deleted) for each in meta.partitions.values()),
        "earliestCommitToRetain": meta.earliest,
        "lastCompletedCommitTimestamp": meta.last_completed,
        "partitionMetadata": {
            partition: _cleaned_record(partition, meta.policy, each)
            for partition, each in meta.partitions.items()
        },
        "version": _VERSION,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": _extra(meta),
    }
    return encode_container(schemas.compact("clean"), record)


def decode_clean(data: bytes) -> CleanMetadata:
    """Return the metadata of a completed clean.

    Args:
        data: content of `<instant>.clean`.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(_clean_of, one_record(data), "clean metadata")


def _clean_of(record: dict[str, Any]) -> CleanMetadata:
    partitions = record.get("partitionMetadata") or {}
    return CleanMetadata(
        started=record["startCleanTime"],
        millis=record["timeTakenInMillis"],
        policy=next((each["policy"] for each in partitions.values()), ""),
        earliest=record.get("earliestCommitToRetain") or "",
        last_completed=record.get("lastCompletedCommitTimestamp") or "",
        partitions={
            partition: CleanedPartition(
                deleted=tuple(each["successDeleteFiles"]),
                failed=tuple(each["failedDeleteFiles"]),
                is_gone=bool(each.get("isPartitionDeleted")),
            )
            for partition, each in partitions.items()
        },
        savepoints=_saved(record),
        versions_retained=_versions(record),
        uncleaned_from=(record.get("extraMetadata") or {}).get(_UNCLEANED) or None,
        is_filtered=(record.get("extraMetadata") or {}).get(_FILTERED) == "true",
    )


def _cleaned_record(partition: str, policy: str, cleaned: CleanedPartition) -> dict[str, Any]:
    return {
        "partitionPath": partition,
        "policy": policy,
        "deletePathPatterns": [*cleaned.deleted, *cleaned.failed],
        "successDeleteFiles": list(cleaned.deleted),
        "failedDeleteFiles": list(cleaned.failed),
        "isPartitionDeleted": cleaned.is_gone,
    }


def _file_info(path: str) -> dict[str, Any]:
    return {"filePath": path, "isBootstrapBaseFile": False}


def _relative(partition: str, path: str) -> str:
    return inside(join_path(partition, path.rpartition("/")[2]))


def _extra(clean: CleanPlan | CleanMetadata) -> dict[str, str]:
    extra = {_SAVED: ",".join(clean.savepoints)} if clean.savepoints else {}
    if clean.versions_retained is not None:
        extra[_VERSIONS] = str(clean.versions_retained)
    if clean.uncleaned_from is not None:
        extra[_UNCLEANED] = clean.uncleaned_from
    if clean.is_filtered:
        extra[_FILTERED] = "true"
    return extra


def _saved(record: dict[str, Any]) -> tuple[str, ...]:
    text = (record.get("extraMetadata") or {}).get(_SAVED) or ""
    return tuple(time for time in text.split(",") if time)


def _versions(record: dict[str, Any]) -> int | None:
    text = (record.get("extraMetadata") or {}).get(_VERSIONS)
    return int(text) if text else None
