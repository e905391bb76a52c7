"""Writes in the way of a clustering: they wrote to its file groups after it was planned, or do so now."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from drawstring.config.keys.failed_writes import FailedWrites
from drawstring.filegroups.write.markers import Markers
from drawstring.model.clustering import ClusteringGroup, ClusteringPlan
from drawstring.model.commit import CommitMetadata
from drawstring.model.hashing import is_resizing, nodes_of
from drawstring.model.instant import Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import alive_elsewhere
from drawstring.txn.reach import Groups, shown
from drawstring.txn.transaction import LockedTable

_SHOWN: Final = 3


def in_the_way(
    locked: LockedTable,
    timeline: Timeline,
    clustering: Instant,
    plan: ClusteringPlan,
    gives_way_to: FailedWrites | None,
) -> str:
    """Return which writes are in the way of a clustering and in which file groups; empty if none is.

    Args:
        locked: the table.
        timeline: its timeline.
        clustering: the instant of the clustering.
        plan: its plan.
        gives_way_to: tells the live writers, to which the clustering gives way; None if it does not.
    """
    writes = _writes_since(locked, timeline, clustering.requested, plan)
    if not writes and gives_way_to is not None:
        running = _in_progress(locked, timeline, gives_way_to)
        writes = {each: groups & plan.inputs for each, groups in running.items() if groups & plan.inputs}
    if not writes:
        return ""
    ordered = sorted(writes, key=lambda each: each.requested)
    names = [f"the {each.action} {each.requested} in {shown(writes[each])}" for each in ordered]
    more = f"; and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more


def groups_in_progress(locked: LockedTable, timeline: Timeline, failed: FailedWrites) -> Groups:
    """Return the file groups that live writers have begun files for, by their markers."""
    return frozenset().union(*_in_progress(locked, timeline, failed).values())


def _in_progress(locked: LockedTable, timeline: Timeline, failed: FailedWrites) -> dict[Instant, Groups]:
    storage = locked.context.storage
    alive = alive_elsewhere(storage, locked.context.clock, timeline.pending_writes(), failed)
    return {each: Markers(storage, each.requested).groups() for each in alive}


def _writes_since(
    locked: LockedTable, timeline: Timeline, time: str, plan: ClusteringPlan
) -> dict[Instant, Groups]:
    """Return the writes after a time that outdate a plan, with the file groups of it that they touched."""
    later = [each for each in timeline.writes() if max(each.requested, each.completed or "") > time]
    writes = {each: locked.store.commit_metadata(each) for each in later}
    if is_resizing(plan):
        paths = _paths(locked.context.storage, plan) if writes else frozenset()
        return {
            each: metadata.touched & plan.inputs
            for each, metadata in writes.items()
            if not _is_written_twice(metadata, plan.groups, paths)
        }
    touched = {each: metadata.touched & plan.inputs for each, metadata in writes.items()}
    return {each: groups for each, groups in touched.items() if groups}


def _paths(storage: Storage, plan: ClusteringPlan) -> frozenset[str]:
    """Return the files of a plan's partitions; those of writes to new buckets must still exist.

    A process that unscheduled the resizing may have died before it was off the timeline.
    """
    partitions = {group.partition for group in plan.groups}
    return frozenset(status.path for each in partitions for status in storage.list_files(each))


def _is_written_twice(
    metadata: CommitMetadata, groups: Iterable[ClusteringGroup], paths: Container[str]
) -> bool:
    """Return whether a write to old buckets also wrote its rows to the new ones (dual write)."""
    return all(_is_copied(metadata, group, paths) for group in groups)


def _is_copied(metadata: CommitMetadata, group: ClusteringGroup, paths: Container[str]) -> bool:
    old = {(each.partition, each.file_id) for each in group.slices}
    new = {(group.partition, node.file_id) for node in nodes_of(group) if node.prefix is not None}
    copies = [stat.path for stat in metadata.stats if (stat.partition, stat.file_id) in new]
    return all(path in paths for path in copies) and bool(copies or not metadata.touched & old)
