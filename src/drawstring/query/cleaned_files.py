"""Files that cleans deleted, by file group, and the check whether a query needs them.

A clean deletes whole file slices of a file group, the oldest first. A slice is therefore intact unless a file
as new as its base file was deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from drawstring.base.errors import CorruptTableError, MissingFileError
from drawstring.formats.metadata.clean import decode_clean, decode_clean_plan
from drawstring.model.clean import CleanMetadata, CleanPlan
from drawstring.model.files import FileSlice, FileStatus, LogFile, join_path, parse_data_file
from drawstring.model.instant import Action, Instant
from drawstring.query.facts import TableFacts
from drawstring.timeline.change_detection import DELETING
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Clean:
    """A completed or pending clean and the files that it deletes.

    Attributes:
        instant: instant of the clean.
        policy: name of its policy.
        earliest: requested time of the earliest instant whose files it retains; empty under the policy
            KEEP_LATEST_FILE_VERSIONS.
        last_completed: requested time of the newest write when the clean was planned.
        names: names of the deleted files, by partition.
    """

    instant: Instant
    policy: str
    earliest: str
    last_completed: str
    names: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DeletedFiles:
    """Deleted data files.

    Attributes:
        groups: requested times in the names of the deleted files, by file group (partition, file id).
    """

    groups: Mapping[Group, tuple[str, ...]]

    @staticmethod
    def by(cleans: Iterable[Clean]) -> DeletedFiles:
        """Return the files that cleans deleted, without CDC log files, which belong to no slice."""
        groups: dict[Group, list[str]] = defaultdict(list)
        for clean in cleans:
            for partition, names in clean.names.items():
                for name in names:
                    file = parse_data_file(FileStatus(join_path(partition, name), 0))
                    if file is not None and not (isinstance(file, LogFile) and file.is_cdc):
                        groups[partition, file.file_id].append(file.instant)
        return DeletedFiles({group: tuple(instants) for group, instants in groups.items()})

    def reaches(self, file_slice: FileSlice) -> bool:
        """Return whether files of a slice, or of a later slice of its file group, were deleted."""
        instants = self.groups.get((file_slice.partition, file_slice.file_id), ())
        return any(instant >= file_slice.base_instant for instant in instants)


def cleans_of(
    store: TimelineStore, timeline: Timeline, after: str = "", besides: Container[Instant] = ()
) -> Iterator[Clean]:
    """Yield the completed and pending cleans of a timeline that delete files, the newest first.

    Args:
        store: reads the metadata of the cleans.
        timeline: timeline that holds the cleans.
        after: yield only cleans requested after this time.
        besides: instants to skip.
    """
    for instant in reversed(timeline.instants):
        if instant.action is Action.CLEAN and instant.requested > after and instant not in besides:
            clean = _completed(store, instant) if instant.is_completed else _pending(store, instant)
            if clean is not None and clean.names:
                yield clean


def _completed(store: TimelineStore, instant: Instant) -> Clean | None:
    data = store.read(instant)
    if not data:
        return None  # a crashed writer of another engine left an empty file
    metadata: CleanMetadata = decode_clean(data)
    names = {
        path: partition.deleted
        for path, partition in metadata.partitions.items()
        if partition.deleted or partition.is_gone
    }
    return Clean(instant, metadata.policy, metadata.earliest, metadata.last_completed, names)


def _pending(store: TimelineStore, instant: Instant) -> Clean | None:
    try:
        plan: CleanPlan = decode_clean_plan(store.read_requested(instant))
    except MissingFileError:
        raise
    except CorruptTableError:
        return None  # an incomplete plan deletes nothing
    names = {
        partition: tuple(path.rpartition("/")[2] for path in paths) for partition, paths in plan.files.items()
    }
    earliest = plan.earliest.requested if plan.earliest else ""
    return Clean(instant, plan.policy, earliest, plan.last_completed, names)


def deleted_since(facts: TableFacts, now: Timeline) -> DeletedFiles | None:
    """Return the files that cleans may have deleted since a table was loaded.

    Args:
        facts: the table as it was loaded.
        now: a timeline that was loaded later.

    Returns:
        The deleted files; None when they are unknown because instants were archived or rolled back.
    """
    then = facts.timeline
    missing = [write.requested for write in then.writes() if now.write_at(write.requested) is None]
    newest = then.latest_write()
    if (newest is not None and newest.requested in missing) or not all(map(now.is_archived, missing)):
        return None
    present = {(instant.requested, instant.action) for instant in now.instants}
    if any((instant.requested, instant.action) not in present for instant in then.pending_of(*DELETING)):
        return None
    earlier_cleans = set(then.completed_of(Action.CLEAN))
    return DeletedFiles.by(cleans_of(facts.store, now, besides=earlier_cleans))


def is_needed(facts: TableFacts, deleted: DeletedFiles, as_of: str | None = None) -> bool:
    """Return whether file slices that a snapshot query reads have lost files to a clean.

    Args:
        facts: the table as the query sees it.
        deleted: the deleted files.
        as_of: latest requested time that the query sees; None for no bound.
    """
    timeline = facts.timeline
    slices: dict[str, dict[str, FileSlice]] = {}
    for (partition, file_id), instants in deleted.groups.items():
        if not any(timeline.has_completed(time) and (as_of is None or time <= as_of) for time in instants):
            continue
        if partition not in slices:
            visible = facts.view.slices(partition, as_of)
            slices[partition] = {file_slice.file_id: file_slice for file_slice in visible}
        read = slices[partition].get(file_id)
        if read is None:
            if _is_lost(facts, (partition, file_id), as_of):
                return True
        elif _reaches(facts, deleted, read, as_of):
            return True
    return False


def _reaches(facts: TableFacts, deleted: DeletedFiles, read: FileSlice, as_of: str | None) -> bool:
    """Return whether visible files of a slice, or of a later slice of its file group, were deleted."""
    return any(
        time >= read.base_instant and facts.timeline.has_completed(time) and (as_of is None or time <= as_of)
        for time in deleted.groups[read.partition, read.file_id]
    )


def _is_lost(facts: TableFacts, group: Group, as_of: str | None) -> bool:
    """Return whether the query should see a file group that has deleted files and no visible slice.

    It should not when the group was replaced before. A group without any file was certainly replaced; if the
    replacing write is archived, it precedes every instant of the active timeline.
    """
    replaced_at = facts.view.replaced_groups().get(group)
    if replaced_at is not None:
        return as_of is not None and replaced_at > as_of
    if as_of is None or facts.timeline.is_archived(as_of):
        return True
    return any(group[1] in status.name for status in facts.view.listing.files(group[0]))
