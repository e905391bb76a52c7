"""Base-file compaction plans (HoodieBaseFileCompactionPlan), stored within clustering plans.

On the timeline a base-file compaction is a clustering without sorting, so that all readers and writers of the
table understand it. This record, Avro in base64 in the plan's extra metadata, marks it as a base-file
compaction.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drawstring.formats import schemas
from drawstring.formats.avro.container import encode_container
from drawstring.formats.metadata.records import one_record, read_as
from drawstring.model.clustering import ClusteringGroup, ClusteringPlan
from drawstring.model.files import join_path

PLAN_KEY: Final = "drawstring.base_file_compaction_plan"
CANCELLED_BY_WRITES: Final = {"drawstring.gives_way": "true"}
"""Extra metadata of automatic plans: a write to one of their file groups rolls them back."""

_VERSION: Final = 1


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
    record = {"operations": operations, "extraMetadata": {}, "version": _VERSION}
    data = encode_container(schemas.compact("base_file_compaction_plan"), record)
    return {PLAN_KEY: base64.b64encode(data).decode()}


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
    if PLAN_KEY not in plan.extra:
        return None
    return read_as(_operations_of, {PLAN_KEY: plan.extra[PLAN_KEY]}, "a base-file compaction plan")


def is_cancelled_by_writes(plan: ClusteringPlan) -> bool:
    """Return whether writes to the file groups of a pending clustering are allowed and roll it back."""
    return CANCELLED_BY_WRITES.items() <= plan.extra.items()


def _operations_of(extra: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    record = one_record(base64.b64decode(extra[PLAN_KEY], validate=True))
    return [(each["partitionPath"], tuple(each["baseFilePaths"])) for each in record["operations"] or ()]
