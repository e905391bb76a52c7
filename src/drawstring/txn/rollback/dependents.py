"""Which pending instants have been completed once: completed writes build on their files.

The file that says so was lost. To roll such a write back, as one that never took effect, would delete files
that the writes after it need.

A lost write that nothing builds on is told by its markers, and kept aside (`unmarked`). Apache Hudi refuses
more where dead writes are rolled back at once (EAGER): any write with commits after it and no heartbeat. Here
that would refuse dead writes, too: where a policy left them (NEVER), they lie beneath later commits without
one.
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
    """Return the first completed write with a file that builds on files of a pending instant, if any.

    Args:
        commits: completed writes, and what they say.
        pending: a write or a clustering. Compactions are left out: they can be run again, as long as
            `plan_inputs` finds what they read.
    """
    if pending.action not in WRITE_ACTIONS and pending.action is not Action.CLUSTERING:
        return None
    for instant, commit in commits:
        if instant.requested > pending.requested and any(_builds(stat, pending) for stat in commit.stats):
            return instant
    return None


def refuse_built_on(store: TimelineStore, timeline: Timeline, pending: Instant) -> None:
    """Refuse to delete the files of a pending instant that has been completed once.

    Reads what the writes that began after it say: a dead writer mostly has none.

    Raises:
        CorruptTableError: completed writes build on them.
    """
    later = (each for each in timeline.writes() if each.requested > pending.requested)
    after = builds_on(((each, store.commit_metadata(each)) for each in later), pending)
    if after is not None:
        raise CorruptTableError(
            f"{what_was_lost(pending, after)} Nothing of it was deleted.",
            instant=pending.requested,
        )


def what_was_lost(pending: Instant, after: Instant) -> str:
    """Say what happened, and what to do."""
    return (
        f"the {pending.action.completed_action} {pending.requested} had been completed, since the completed"
        f" {after.requested} builds on its files, but the file that says so is gone from the timeline: put it"
        " back from a backup, or restore the table to a write before it with"
        " hoodie.clean.failed.writes.policy=NEVER."
    )


def _builds(stat: WriteStat, pending: Instant) -> bool:
    """Tell whether a file builds on an instant's; writes log into the buckets of a pending resizing, too."""
    if pending.action in WRITE_ACTIONS:
        return stat.prev_commit == pending.requested
    names = [name for name in (stat.base_file, stat.prev_base_file) if name]
    bases = [BaseFile.parse(FileStatus(name, 0)) for name in names]
    return any(base is not None and base.instant == pending.requested for base in bases)
