"""Clustering plans: `<T>.clustering.requested`, in version 6 `<T>.replacecommit.requested`.

A plan is a HoodieRequestedReplaceMetadata with a HoodieClusteringPlan, Avro in both layouts. Files have full
addresses, as Hudi expects; readers use only the last part, since tables may be moved.
"""

from __future__ import annotations

from typing import Any, Final

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.records import inside, one_record, read_as
from drawstring.model.clustering import ClusteringGroup, ClusteringPlan, ClusteringSlice
from drawstring.model.commit import WriteOperation
from drawstring.model.files import join_path

PLAN_VERSION: Final = 1


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
                "version": PLAN_VERSION,
            },
            "extraMetadata": dict(plan.extra),
            "version": PLAN_VERSION,
            "preserveHoodieMetadata": plan.keeps_commit_times,
            "missingSchedulePartitions": None if missing is None else list(missing),
        },
        "extraMetadata": {},
        "version": PLAN_VERSION,
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
        "version": PLAN_VERSION,
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
        "version": PLAN_VERSION,
    }
