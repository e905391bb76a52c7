"""The plan of a clean: the files that may be deleted (pure; specification: Cleaning).

    commits, hours   the earliest instant retained, E: the n-th newest write, or the first one of the last
                     hours, but not after the first pending instant
                       slices:   s1 < s2 < E <= s3      s1 is deleted: a reader as of E needs s2
                       replaced file groups are deleted as a whole once the replacing commit lies before E
    versions         the newest n slices of a file group stay; replaced file groups are deleted as a whole

At most a number of commits are covered at a time, if the settings say so: E is as many writes after the E of
the clean before. Partitions that the settings leave out keep all files; the plan notes the first write that
replaced file groups there, since its metadata is needed until they are deleted (`uncleaned_from`).

What readers hold stays: E is not after the first write that they need, and with `versions` the file versions
that they need are not deleted. Files of savepoints stay. Inputs of a pending compaction or clustering stay: E
is not after it, and with `versions` its file groups are skipped.

Between two cleans, files become old only in partitions where a write of [previous E, E) replaced something,
and the metadata of most writes lists these partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from drawstring.config.keys.clean import Cleaning
from drawstring.model.clean import CleanMetadata, CleanPolicy
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import PARTITION_METADATA, BaseFile, FileGroup, FileSlice, FileStatus
from drawstring.model.instant import FILE_ACTIONS, Action, Instant, time_of
from drawstring.model.savepoint import Savepoint
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CleanFacts:
    """The facts about a table that a clean is planned from.

    Attributes:
        timeline: the active timeline.
        last: the last completed clean on it.
        look: what a plan of this process found to be clean since, as a clean; None for nothing.
        saved: savepoints by requested time.
        is_whole: whether nothing was archived.
        commit_of: reads the commit metadata of a write.
    """

    timeline: Timeline
    last: CleanMetadata | None
    saved: Mapping[str, Savepoint]
    is_whole: bool
    commit_of: Callable[[Instant], CommitMetadata]
    look: CleanMetadata | None = None

    @property
    def since(self) -> CleanMetadata | None:
        """The clean that the next one begins after."""
        return self.look or self.last


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays in a partition.

    Attributes:
        earliest: requested time of the earliest instant retained; None under the policy by versions.
        needed: requested time of the first write that readers need, under the policy by versions; None for
            none.
        versions: number of the newest slices of a file group that stay, under the policy by versions.
        saved: names of files in savepoints.
        replaced: replacement times of the replaced file groups of the partition, by file id.
        planned: ids of file groups that a pending table service may be reading.
    """

    earliest: str | None
    needed: str | None = None
    versions: int = 0
    saved: Collection[str] = field(default_factory=frozenset)
    replaced: Mapping[str, str] = field(default_factory=dict)
    planned: Collection[str] = field(default_factory=frozenset)


def is_due(facts: CleanFacts, cleaning: Cleaning) -> bool:
    """Return whether enough commits were made since the last clean."""
    last_completed = facts.last.last_completed if facts.last else ""
    return (
        sum(write.requested > last_completed for write in facts.timeline.writes())
        >= cleaning.due_after_commits
    )


def earliest_retained(
    timeline: Timeline, cleaning: Cleaning, cutoff: str, needed: str | None = None
) -> Instant | None:
    """Return the earliest instant whose files stay, None if there is none or versions are counted.

    Args:
        timeline: the active timeline.
        cleaning: the policy.
        cutoff: instant time of the number of hours ago that are retained.
        needed: requested time of the first write that readers need.
    """
    writes = timeline.writes()
    # A pending instant may come to need files of the time before it.
    pending = next(iter(timeline.pending_of(*FILE_ACTIONS)), None)
    if cleaning.policy == CleanPolicy.COMMITS:
        older = len(writes) - cleaning.commits_retained
        earliest = writes[older] if older > 0 else None
    elif cleaning.policy == CleanPolicy.HOURS:
        earliest = next((write for write in writes if write.requested >= cutoff), None)
    else:
        return None
    if earliest is None:
        return None
    held_write = timeline.write_at(needed) if needed is not None else None
    bounds = (each for each in (earliest, pending, held_write) if each is not None)
    return min(bounds, key=lambda each: each.requested)


def capped(facts: CleanFacts, cleaning: Cleaning, earliest: Instant | None) -> Instant | None:
    """Return the earliest instant retained by a clean that covers no more commits than it may.

    Args:
        facts: the table.
        cleaning: the policy.
        earliest: the earliest instant that the policy retains.
    """
    since = facts.since
    if earliest is None or cleaning.commits_max is None or since is None or not since.earliest:
        return earliest
    covered = writes_between(facts, earliest)
    return covered[cleaning.commits_max] if len(covered) > cleaning.commits_max else earliest


def uncleaned_from(
    replaced: Mapping[tuple[str, str], str], cleaning: Cleaning, earliest: Instant | None
) -> str | None:
    """Return the first write that replaced file groups of partitions which a clean leaves out, None for none.

    Args:
        replaced: replacement times by partition and file id.
        cleaning: the partitions that the clean looks at.
        earliest: the earliest instant retained; None under the policy by versions.
    """
    times = (time for (partition, _), time in replaced.items() if not cleaning.covers(partition))
    return min((time for time in times if earliest is None or time < earliest.requested), default=None)


def changed_partitions(facts: CleanFacts, cleaning: Cleaning, earliest: Instant | None) -> set[str] | None:
    """Return the partitions where files may have become old since the last clean; None for all."""
    last = facts.since
    saved_then = set(last.savepoints if last else ())
    if not cleaning.incremental or cleaning.has_filter or saved_then - set(facts.saved):
        return None
    if last is not None and last.is_filtered:
        return None
    if facts.last is not None and facts.last.uncleaned_from is not None:
        return None
    by_versions = earliest is None
    if last is not None and by_versions != (not last.earliest):
        return None
    if last is not None and by_versions and _kept_more(last, cleaning):
        return None
    if last is None and not facts.is_whole:
        return None
    if last is not None and not by_versions and facts.timeline.is_archived(last.earliest):
        return None
    return {
        partition
        for write in writes_between(facts, earliest)
        for partition in _outdating(facts.commit_of(write))
    }


def _kept_more(last: CleanMetadata, cleaning: Cleaning) -> bool:
    """Return whether the last clean may have kept file versions that are old now."""
    return last.versions_retained is None or last.versions_retained > cleaning.versions_retained


def writes_between(facts: CleanFacts, earliest: Instant | None) -> list[Instant]:
    """Return the writes that may have made files old since the last clean.

    Args:
        facts: the table.
        earliest: the earliest instant retained now; None under the policy by versions.
    """
    last, writes = facts.since, facts.timeline.writes()
    if earliest is None:
        since = last.started if last else ""
        return [write for write in writes if time_of(write) >= since]
    since = last.earliest if last else ""
    return [write for write in writes if since <= write.requested < earliest.requested]


def holds_archiving_up(facts: CleanFacts, earliest: Instant | None) -> bool:
    """Return whether writes stay on the timeline until a clean comes, even one that deletes nothing.

    Archiving keeps writes that replaced file groups until these are cleaned, and goes by the last clean.

    Args:
        facts: the table.
        earliest: the earliest instant retained now; None under the policy by versions.
    """
    last, timeline = facts.last, facts.timeline
    if earliest is None and timeline.pending():
        return False  # replaced file groups may have stayed for the sake of a pending service
    if last is not None and {*last.savepoints} - {*facts.saved}:
        return True
    since, until = (last.earliest or last.started) if last else "", earliest.requested if earliest else None
    replacing = (each.requested for each in timeline.writes() if each.action is Action.REPLACE_COMMIT)
    return any(since <= each and (until is None or each < until) for each in replacing)


def _outdating(commit: CommitMetadata) -> set[str]:
    """Return the partitions where a write replaced file groups, or gave one a newer base file."""
    partitions = {
        stat.partition
        for stat in commit.stats
        if not _is_new_group(stat.prev_commit) and BaseFile.parse(FileStatus(stat.path, 0))
    }
    return partitions | set(commit.replaced)


def _is_new_group(prev_commit: str) -> bool:
    return prev_commit in ("", "null")


def files_to_delete(groups: Iterable[FileGroup], retention: Retention) -> list[str]:
    """Return the paths of the files of a partition that may be deleted, sorted.

    Args:
        groups: its file groups with all slices and change logs, including replaced ones.
        retention: what stays.
    """
    paths_to_delete: list[str] = []
    for group in groups:
        for old in _old_slices(group, retention):
            paths = _paths(old)
            if not any(path.rpartition("/")[2] in retention.saved for path in paths):
                paths_to_delete += paths
    return sorted(paths_to_delete)


def _old_slices(group: FileGroup, retention: Retention) -> Sequence[FileSlice]:
    if retention.earliest is None and group.file_id in retention.planned:
        return ()
    replaced_at = retention.replaced.get(group.file_id)
    if retention.earliest is not None:
        return _before(retention.earliest, group, replaced_at)
    old = group.slices if replaced_at is not None else group.slices[: -retention.versions]
    if retention.needed is None:
        return old
    unneeded = _before(retention.needed, group, replaced_at)
    return [each for each in old if each in unneeded]


def _before(earliest: str, group: FileGroup, replaced_at: str | None) -> Sequence[FileSlice]:
    """Return the slices that no reader as of an instant, or a later one, needs."""
    if replaced_at is not None and replaced_at < earliest:
        return group.slices
    return [each for each in group.slices if each.base_instant < earliest][:-1]


def is_empty_after(listed: Iterable[FileStatus], doomed: Collection[str]) -> bool:
    """Return whether a partition has no other files than its own metadata once some are deleted.

    Hadoop's checksum files (`.<name>.crc`) do not count.
    """
    return all(
        status.path in doomed or status.name.startswith(PARTITION_METADATA) or status.name.endswith(".crc")
        for status in listed
    )


def _paths(file_slice: FileSlice) -> list[str]:
    base = [file_slice.base.status.path] if file_slice.base else []
    return base + [log.status.path for log in file_slice.logs]
