"""Encode and decode the plans of clustering, base-file compaction, clean and indexing, Avro in both layouts.

Clustering plans are `<T>.clustering.requested`, in version 6 `<T>.replacecommit.requested`: a
HoodieRequestedReplaceMetadata with a HoodieClusteringPlan. Files have full addresses, as Hudi expects.
Readers use only the last part, since tables may be moved.

Base-file compaction plans (HoodieBaseFileCompactionPlan) are within clustering plans. On the timeline a
base-file compaction is a clustering without sorting, so that all readers and writers of the table understand
it. The record, Avro in base64 in the plan's extra metadata, marks it as a base-file compaction.

Clean plans (specification: Clean) have absolute paths. The table may have been moved since, so readers use
only partition and file name of a path. Clean metadata has only file names.

Indexing plans are `<instant>.indexing.requested`; the metadata is the completed file.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.records import inside, one_record, read_as
from drawstring.model.commit import WriteOperation
from drawstring.model.files import join_path
from drawstring.model.plans import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    EarliestRetained,
    IndexedPartition,
    IndexPlan,
)

BASE_FILE_COMPACTION_KEY: Final = "drawstring.base_file_compaction_plan"
CANCELLED_BY_WRITES: Final = {"drawstring.gives_way": "true"}
"""Extra metadata of automatic plans: a write to one of their file groups rolls them back."""

_BASE_FILE_COMPACTION_VERSION: Final = 1


def base_file_plan(groups: Iterable[ClusteringGroup]) -> dict[str, str]:
    """Return the extra metadata that marks a clustering as a base-file compaction.

    Args:
        groups: the clustering groups.
    """
    groups = tuple(groups)
    operations = [
        {"baseFilePaths": list(paths), "partitionPath": partition, "metrics": dict(group.metrics)}
        for group, (partition, paths) in zip(groups, base_files_in(groups), strict=True)
    ]
    record = {"operations": operations, "extraMetadata": {}, "version": _BASE_FILE_COMPACTION_VERSION}
    data = encode_container(schemas.compact("base_file_compaction_plan"), record)
    return {BASE_FILE_COMPACTION_KEY: base64.b64encode(data).decode()}


def base_files_in(groups: Iterable[ClusteringGroup]) -> list[tuple[str, tuple[str, ...]]]:
    """Return partition and paths of the base files of each clustering group."""
    return [
        (group.partition, tuple(join_path(each.partition, each.base_file) for each in group.slices))
        for group in groups
    ]


def base_files_of(plan: ClusteringPlan) -> list[tuple[str, tuple[str, ...]]] | None:
    """Return partition and paths of the base files of each group of a base-file compaction.

    Args:
        plan: a clustering plan; the result is None if it is not a base-file compaction.

    Raises:
        CorruptTableError: the record is damaged.
    """
    if BASE_FILE_COMPACTION_KEY not in plan.extra:
        return None
    return read_as(
        _operations_of,
        {BASE_FILE_COMPACTION_KEY: plan.extra[BASE_FILE_COMPACTION_KEY]},
        "a base-file compaction plan",
    )


def is_cancelled_by_writes(plan: ClusteringPlan) -> bool:
    """Return whether writes to the file groups of a pending clustering are allowed and roll it back."""
    return CANCELLED_BY_WRITES.items() <= plan.extra.items()


def _operations_of(extra: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    record = one_record(base64.b64decode(extra[BASE_FILE_COMPACTION_KEY], validate=True))
    return [(each["partitionPath"], tuple(each["baseFilePaths"])) for each in record["operations"] or ()]


CLUSTERING_PLAN_VERSION: Final = 1


def encode_clustering_plan(plan: ClusteringPlan, root: str) -> bytes:
    """Return the content of a requested clustering.

    Args:
        plan: the plan.
        root: the table's full address.
    """
    missing = plan.missing_partitions
    record = {
        "operationType": WriteOperation.CLUSTER.value,
        "clusteringPlan": {
            "inputGroups": [_group_record(group, root) for group in plan.groups],
            "strategy": {
                "strategyClassName": plan.strategy,
                "strategyParams": dict(plan.parameters),
                "version": CLUSTERING_PLAN_VERSION,
            },
            "extraMetadata": dict(plan.extra),
            "version": CLUSTERING_PLAN_VERSION,
            "preserveHoodieMetadata": plan.keeps_commit_times,
            "missingSchedulePartitions": None if missing is None else list(missing),
        },
        "extraMetadata": {},
        "version": CLUSTERING_PLAN_VERSION,
    }
    return encode_container(schemas.compact("requested_replace"), record)


def decode_clustering_plan(data: bytes) -> ClusteringPlan:
    """Return the plan of a requested clustering.

    Args:
        data: the whole requested file.

    Raises:
        CorruptTableError: the bytes are damaged, or have no plan.
        UnsupportedError: rows are to be taken from bootstrap files.
    """
    return read_as(_plan_of, one_record(data), "a clustering plan")


def _plan_of(record: dict[str, Any]) -> ClusteringPlan:
    plan = record["clusteringPlan"]
    strategy = plan.get("strategy") or {}
    missing = plan.get("missingSchedulePartitions")
    keeps = plan.get("preserveHoodieMetadata")
    return ClusteringPlan(
        groups=tuple(_group_of(each) for each in plan.get("inputGroups") or ()),
        strategy=strategy.get("strategyClassName") or "",
        parameters=dict(strategy.get("strategyParams") or {}),
        extra=dict(plan.get("extraMetadata") or {}),
        keeps_commit_times=True if keeps is None else bool(keeps),
        missing_partitions=None if missing is None else tuple(missing),
    )


def _group_of(record: dict[str, Any]) -> ClusteringGroup:
    extra = record.get("extraMetadata")
    slices = tuple(_slice_of(each) for each in record["slices"] or ())
    if not slices:
        raise ValueError("a group without slices")
    return ClusteringGroup(
        slices=slices,
        metrics=dict(record.get("metrics") or {}),
        outputs=int(record.get("numOutputFileGroups") or 1),
        extra=None if extra is None else dict(extra),
    )


def _slice_of(record: dict[str, Any]) -> ClusteringSlice:
    return ClusteringSlice(
        partition=inside(record["partitionPath"] or ""),
        file_id=record["fileId"],
        base_file=_name(record.get("dataFilePath") or ""),
        log_files=tuple(map(_name, record.get("deltaFilePaths") or ())),
        bootstrap_file=record.get("bootstrapFilePath"),
    )


def _name(address: str) -> str:
    return inside(address.rpartition("/")[2]) if address else ""


def _group_record(group: ClusteringGroup, root: str) -> dict[str, Any]:
    return {
        "slices": [_slice_record(each, root) for each in group.slices],
        "metrics": {name: float(value) for name, value in group.metrics.items()},
        "numOutputFileGroups": group.outputs,
        "extraMetadata": None if group.extra is None else dict(group.extra),
        "version": CLUSTERING_PLAN_VERSION,
    }


def _slice_record(each: ClusteringSlice, root: str) -> dict[str, Any]:
    def address(name: str) -> str:
        return f"{root.rstrip('/')}/{join_path(each.partition, name)}" if name else ""

    return {
        "dataFilePath": address(each.base_file),
        "deltaFilePaths": [address(name) for name in each.log_files],
        "fileId": each.file_id,
        "partitionPath": each.partition,
        "bootstrapFilePath": each.bootstrap_file,
        "version": CLUSTERING_PLAN_VERSION,
    }


_CLEAN_VERSION: Final = 2
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
        "version": _CLEAN_VERSION,
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
    return read_as(_clean_plan_of, one_record(data), "a clean plan")


def _clean_plan_of(record: dict[str, Any]) -> CleanPlan:
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
        "version": _CLEAN_VERSION,
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


def encode_index_plan(plan: IndexPlan) -> bytes:
    """Return the content of the requested file of an indexing action."""
    return encode_container(
        schemas.compact("index_plan"), {"version": _BASE_FILE_COMPACTION_VERSION, **_infos(plan)}
    )


def encode_indexing(built: IndexPlan) -> bytes:
    """Return the content of the completed file of an indexing action."""
    record = {"version": _BASE_FILE_COMPACTION_VERSION, "operationType": None, **_infos(built)}
    return encode_container(schemas.compact("index_commit"), record)


def decode_indexing(data: bytes) -> IndexPlan:
    """Return the partitions of a plan, or of a completed indexing action.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(_index_plan_of, one_record(data), "an indexing action")


def _infos(plan: IndexPlan) -> dict[str, Any]:
    infos = [
        {
            "version": _BASE_FILE_COMPACTION_VERSION,
            "metadataPartitionPath": each.name,
            "indexUptoInstant": each.up_to,
            "extraMetadata": dict(each.extra),
        }
        for each in plan.partitions
    ]
    return {"indexPartitionInfos": infos}


def _index_plan_of(record: dict[str, Any]) -> IndexPlan:
    return IndexPlan(
        tuple(
            IndexedPartition(
                inside(each["metadataPartitionPath"]),
                str(each["indexUptoInstant"]),
                dict(each["extraMetadata"] or {}),
            )
            for each in record["indexPartitionInfos"]
        )
    )
