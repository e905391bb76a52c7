"""What a clean may delete (specification: Cleaning). Pure.

    commits, hours   the earliest instant retained, E: the n-th newest write, or the first one of the last
                     hours, but none after the first pending instant
                       slices:   s1 < s2 < E <= s3      s1 goes: a reader as of E needs s2
                       replaced file groups go whole once the replacing commit lies before E
    versions         the newest n slices of a file group stay; replaced file groups go whole

What readers hold stays: E is not after the first write that they need, and versions of files that they need
do not go. Whatever a savepoint names stays. What a pending compaction or clustering reads is safe: E is not
after it, and where versions are counted its file groups are left alone.

From one clean to the next only that can become old which a write of [E then, E now) put something newer
in the place of, and most writes say in their metadata where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from drawstring.config.keys.clean import Cleaning
from drawstring.model.clean import CleanMetadata, CleanPolicy
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import PARTITION_METADATA, BaseFile, FileGroup, FileSlice, FileStatus
from drawstring.model.instant import FILE_ACTIONS, Instant, time_of
from drawstring.model.savepoint import Savepoint
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CleanFacts:
    """What planning a clean knows of the table.

    Attributes:
        timeline: the active timeline.
        last: the last completed clean on it.
        saved: savepoints by requested time.
        is_whole: whether nothing was archived.
        commit_of: reads what a write says about itself.
    """

    timeline: Timeline
    last: CleanMetadata | None
    saved: Mapping[str, Savepoint]
    is_whole: bool
    commit_of: Callable[[Instant], CommitMetadata]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What stays in a partition.

    Attributes:
        earliest: requested time of the first instant retained; None where versions are counted.
        needed: the same for readers, where versions are counted; None without any.
        versions: newest slices of a file group that stay where they are counted.
        saved: names of files that savepoints hold.
        replaced: when file groups of the partition were replaced, by file id.
        planned: file groups that a pending service may be reading, by file id.
    """

    earliest: str | None
    needed: str | None = None
    versions: int = 0
    saved: Collection[str] = field(default_factory=frozenset)
    replaced: Mapping[str, str] = field(default_factory=dict)
    planned: Collection[str] = field(default_factory=frozenset)


def is_due(facts: CleanFacts, cleaning: Cleaning) -> bool:
    """Tell whether enough was written since the last clean."""
    since = facts.last.last_completed if facts.last else ""
    return sum(write.requested > since for write in facts.timeline.writes()) >= cleaning.due_after_commits


def earliest_retained(
    timeline: Timeline, cleaning: Cleaning, cutoff: str, needed: str | None = None
) -> Instant | None:
    """Return the first instant whose files stay, None where there is none or versions are counted.

    Args:
        timeline: the active timeline.
        cleaning: the policy.
        cutoff: instant time of as many hours ago as are to be kept.
        needed: requested time of the first write that readers need.
    """
    writes = timeline.writes()
    # What is pending may come to need files of the time before it.
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
    held = timeline.write_at(needed) if needed is not None else None
    bounds = (each for each in (earliest, pending, held) if each is not None)
    return min(bounds, key=lambda each: each.requested)


def changed_partitions(facts: CleanFacts, cleaning: Cleaning, earliest: Instant | None) -> set[str] | None:
    """Return the partitions that something may have become old in since the last clean; None for all."""
    last = facts.last
    saved_then = set(last.savepoints if last else ())
    if not cleaning.incremental or saved_then - set(facts.saved):
        return None
    by_versions = earliest is None
    if last is not None and by_versions != (not last.earliest):
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


def writes_between(facts: CleanFacts, earliest: Instant | None) -> list[Instant]:
    """Return the writes that may have made something old since the last clean.

    Args:
        facts: the table.
        earliest: the first instant retained now; None where versions are counted.
    """
    last, writes = facts.last, facts.timeline.writes()
    if earliest is None:
        since = last.started if last else ""
        return [write for write in writes if time_of(write) >= since]
    since = last.earliest if last else ""
    return [write for write in writes if since <= write.requested < earliest.requested]


def _outdating(commit: CommitMetadata) -> set[str]:
    """Return the partitions where a write replaced file groups or gave one a newer base file."""
    newer = {
        stat.partition
        for stat in commit.stats
        if not _is_new_group(stat.prev_commit) and BaseFile.parse(FileStatus(stat.path, 0))
    }
    return newer | set(commit.replaced)


def _is_new_group(prev_commit: str) -> bool:
    return prev_commit in ("", "null")


def files_to_delete(groups: Iterable[FileGroup], keeping: Keeping) -> list[str]:
    """Return the paths of the files of a partition that may go, sorted.

    Args:
        groups: its file groups with all slices and change logs, replaced ones included.
        keeping: what stays.
    """
    doomed: list[str] = []
    for group in groups:
        for old in _old_slices(group, keeping):
            paths = _paths(old)
            if not any(path.rpartition("/")[2] in keeping.saved for path in paths):
                doomed += paths
    return sorted(doomed)


def _old_slices(group: FileGroup, keeping: Keeping) -> Sequence[FileSlice]:
    if keeping.earliest is None and group.file_id in keeping.planned:
        return ()
    replaced_at = keeping.replaced.get(group.file_id)
    if keeping.earliest is not None:
        return _before(keeping.earliest, group, replaced_at)
    old = group.slices if replaced_at is not None else group.slices[: -keeping.versions]
    if keeping.needed is None:
        return old
    unneeded = _before(keeping.needed, group, replaced_at)
    return [each for each in old if each in unneeded]


def _before(earliest: str, group: FileGroup, replaced_at: str | None) -> Sequence[FileSlice]:
    """Return the slices that nobody needs who reads from an instant on."""
    if replaced_at is not None and replaced_at < earliest:
        return group.slices
    return [each for each in group.slices if each.base_instant < earliest][:-1]


def is_empty_after(listed: Iterable[FileStatus], doomed: Collection[str]) -> bool:
    """Tell whether nothing but the partition's own metadata is left once files are deleted.

    Hadoop's checksum files (`.<name>.crc`) do not count.
    """
    return all(
        status.path in doomed or status.name.startswith(PARTITION_METADATA) or status.name.endswith(".crc")
        for status in listed
    )


def _paths(file_slice: FileSlice) -> list[str]:
    base = [file_slice.base.status.path] if file_slice.base else []
    return base + [log.status.path for log in file_slice.logs]
