"""Completed writes that build on files of a pending instant, which shows that it had been completed.

If the completed file of a write is lost, the write looks pending. Rolling it back, as if it had never taken
effect, would delete files that later writes need.

A lost write without later writes on its files is recognised by its missing markers, and copies of its files
are kept (`lost_commits`). Apache Hudi refuses more under the policy EAGER: the rollback of any write with
later commits and without a heartbeat. Here that would also refuse failed writes: the policy NEVER leaves them
before later commits, without a heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.base.errors import CorruptTableError
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import BaseFile, FileStatus
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline


def builds_on(commits: Iterable[tuple[Instant, CommitMetadata]], pending: Instant) -> Instant | None:
    """Return the first completed write that builds on files of a pending instant, None without any.

    Args:
        commits: completed writes with their commit metadata.
        pending: a write or a clustering. The result is None for compactions: they can be run again as long
            as their inputs exist (`plan_inputs`).
    """
    if pending.action not in WRITE_ACTIONS and pending.action is not Action.CLUSTERING:
        return None
    for instant, commit in commits:
        if instant.requested > pending.requested and any(_builds_on(stat, pending) for stat in commit.stats):
            return instant
    return None


def refuse_built_on(store: TimelineStore, timeline: Timeline, pending: Instant) -> None:
    """Refuse to delete the files of a pending instant that had been completed.

    Reads the commit metadata of all later writes: mostly there are none after a failed write.

    Raises:
        CorruptTableError: completed writes build on the files.
    """
    later_writes = (each for each in timeline.writes() if each.requested > pending.requested)
    dependent = builds_on(((each, store.commit_metadata(each)) for each in later_writes), pending)
    if dependent is not None:
        raise CorruptTableError(
            f"{describe_loss(pending, dependent)} Nothing of it was deleted.",
            instant=pending.requested,
        )


def describe_loss(pending: Instant, after: Instant) -> str:
    """Say what happened and what to do, for an error message."""
    return (
        f"The {pending.action.completed_action} {pending.requested} had been completed, since the completed"
        f" {after.requested} builds on its files, but its completed file is gone from the timeline. Put it"
        " back from a backup, or restore the table to a write before it with"
        " hoodie.clean.failed.writes.policy=NEVER."
    )


def _builds_on(stat: WriteStat, pending: Instant) -> bool:
    """Return whether a file builds on files of an instant, as log files in new buckets do on a resizing."""
    if pending.action in WRITE_ACTIONS:
        return stat.prev_commit == pending.requested
    names = [name for name in (stat.base_file, stat.prev_base_file) if name]
    bases = [BaseFile.parse(FileStatus(name, 0)) for name in names]
    return any(base is not None and base.instant == pending.requested for base in bases)
