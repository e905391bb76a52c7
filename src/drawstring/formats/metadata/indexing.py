"""Plans and metadata of indexing actions: `<instant>.indexing.requested` and the completed file; Avro."""

from __future__ import annotations

from typing import Any, Final

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.records import inside, one_record, read_as
from drawstring.model.index_plan import IndexedPartition, IndexPlan

_VERSION: Final = 1


def encode_index_plan(plan: IndexPlan) -> bytes:
    """Return the content of the requested file of an indexing action."""
    return encode_container(schemas.compact("index_plan"), {"version": _VERSION, **_infos(plan)})


def encode_indexing(built: IndexPlan) -> bytes:
    """Return the content of the completed file of an indexing action."""
    record = {"version": _VERSION, "operationType": None, **_infos(built)}
    return encode_container(schemas.compact("index_commit"), record)


def decode_indexing(data: bytes) -> IndexPlan:
    """Return the partitions of a plan, or of a completed indexing action.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(_plan_of, one_record(data), "an indexing action")


def _infos(plan: IndexPlan) -> dict[str, Any]:
    infos = [
        {
            "version": _VERSION,
            "metadataPartitionPath": each.name,
            "indexUptoInstant": each.up_to,
            "extraMetadata": dict(each.extra),
        }
        for each in plan.partitions
    ]
    return {"indexPartitionInfos": infos}


def _plan_of(record: dict[str, Any]) -> IndexPlan:
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
