"""What cleans have deleted, by file group, and whether a query needs it.

A clean deletes the older slices of a file group, whole ones, oldest first. So a slice is there as it was
unless something as new as its base file was deleted.
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
    """A clean that deleted files, or is about to.

    Attributes:
        instant: of the clean.
        policy: name of its policy.
        earliest: requested time of the first instant whose files it kept; empty where versions are counted.
        last_completed: requested time of the newest write when it was planned.
        names: names of the files, by partition.
    """

    instant: Instant
    policy: str
    earliest: str
    last_completed: str
    names: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Deleted:
    """Data files that were deleted.

    Attributes:
        groups: requested times in the names of the files, by partition and file id.
    """

    groups: Mapping[Group, tuple[str, ...]]

    @staticmethod
    def by(cleans: Iterable[Clean]) -> Deleted:
        """Return what some cleans deleted; change logs, which no slice has, are left out."""
        groups: dict[Group, list[str]] = defaultdict(list)
        for clean in cleans:
            for partition, names in clean.names.items():
                for name in names:
                    file = parse_data_file(FileStatus(join_path(partition, name), 0))
                    if file is not None and not (isinstance(file, LogFile) and file.is_cdc):
                        groups[partition, file.file_id].append(file.instant)
        return Deleted({group: tuple(instants) for group, instants in groups.items()})

    def reaches(self, file_slice: FileSlice) -> bool:
        """Tell whether files of a slice, or of a later one of its file group, were deleted."""
        instants = self.groups.get((file_slice.partition, file_slice.file_id), ())
        return any(each >= file_slice.base_instant for each in instants)


def cleans_of(
    store: TimelineStore, timeline: Timeline, after: str = "", besides: Container[Instant] = ()
) -> Iterator[Clean]:
    """Yield the cleans on a timeline that deleted files or are about to, the newest first.

    Args:
        store: reads what they say.
        timeline: where they stand.
        after: requested time after which they were requested.
        besides: instants that are not read.
    """
    for instant in reversed(timeline.instants):
        if instant.action is Action.CLEAN and instant.requested > after and instant not in besides:
            found = _completed(store, instant) if instant.is_completed else _pending(store, instant)
            if found is not None and found.names:
                yield found


def _completed(store: TimelineStore, instant: Instant) -> Clean | None:
    data = store.read(instant)
    if not data:
        return None  # what a crashed writer of another engine left
    done: CleanMetadata = decode_clean(data)
    names = {place: each.deleted for place, each in done.partitions.items() if each.deleted or each.is_gone}
    return Clean(instant, done.policy, done.earliest, done.last_completed, names)


def _pending(store: TimelineStore, instant: Instant) -> Clean | None:
    try:
        plan: CleanPlan = decode_clean_plan(store.read_requested(instant))
    except MissingFileError:
        raise
    except CorruptTableError:
        return None  # it was never whole, and deletes nothing
    names = {place: tuple(path.rpartition("/")[2] for path in paths) for place, paths in plan.files.items()}
    earliest = plan.earliest.requested if plan.earliest else ""
    return Clean(instant, plan.policy, earliest, plan.last_completed, names)


def deleted_since(facts: TableFacts, now: Timeline) -> Deleted | None:
    """Return what cleans may have deleted since a look at a table.

    Args:
        facts: the look.
        now: the timeline after it.

    Returns:
        What was deleted; None where that is not known, since instants were archived or taken back.
    """
    then = facts.timeline
    gone = [each.requested for each in then.writes() if now.write_at(each.requested) is None]
    newest = then.latest_write()
    if (newest is not None and newest.requested in gone) or not all(map(now.is_archived, gone)):
        return None
    here = {(each.requested, each.action) for each in now.instants}
    if any((each.requested, each.action) not in here for each in then.pending_of(*DELETING)):
        return None
    done = set(then.completed_of(Action.CLEAN))
    return Deleted.by(cleans_of(facts.store, now, besides=done))


def is_needed(facts: TableFacts, deleted: Deleted, as_of: str | None = None) -> bool:
    """Tell whether slices that a snapshot query reads were deleted, or some of their files.

    Args:
        facts: the table as the query sees it.
        deleted: what was deleted.
        as_of: the latest requested time that counts; None for all.
    """
    timeline = facts.timeline
    places: dict[str, dict[str, FileSlice]] = {}
    for (partition, file_id), instants in deleted.groups.items():
        if not any(timeline.has_completed(each) and (as_of is None or each <= as_of) for each in instants):
            continue
        if partition not in places:
            places[partition] = {each.file_id: each for each in facts.view.slices(partition, as_of)}
        read = places[partition].get(file_id)
        if read is None:
            if _is_lost(facts, (partition, file_id), as_of):
                return True
        elif _reaches(facts, deleted, read, as_of):
            return True
    return False


def _reaches(facts: TableFacts, deleted: Deleted, read: FileSlice, as_of: str | None) -> bool:
    """Tell whether files that count, of a slice or of a later one, were deleted."""
    return any(
        each >= read.base_instant and facts.timeline.has_completed(each) and (as_of is None or each <= as_of)
        for each in deleted.groups[read.partition, read.file_id]
    )


def _is_lost(facts: TableFacts, group: Group, as_of: str | None) -> bool:
    """Tell whether a file group that files were deleted of has to show, though it has no slice.

    One that was replaced before does not. A group without any file was replaced in any case; where the write
    that did it is archived, it came before all times from the start of the timeline on.
    """
    replaced_at = facts.view.replaced_groups().get(group)
    if replaced_at is not None:
        return as_of is not None and replaced_at > as_of
    if as_of is None or facts.timeline.is_archived(as_of):
        return True
    return any(group[1] in status.name for status in facts.view.listing.files(group[0]))
