"""Plan queries so that they stay valid while the table is cleaned, archived or restored.

    load the timeline ── plan: list files, read commit metadata ── load the timeline again
         ^                     │                                          │
         └── a file of the plan is missing, or a file that it needs was deleted in between

A plan that the second load confirms carries a digest of that timeline in its tasks. A reader that misses a
file compares the digest to learn whether the file was deleted since (`timeline.change_detection`). If it
was, the query is planned again, as long as it has not returned any row.

Deleted files (`deleted_since`, `is_needed`): a clean deletes whole file slices of a file group, the oldest
first. A slice is therefore intact unless a file as new as its base file was deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import pyarrow.compute as pc

from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError, CorruptTableError, FilesCleanedError, MissingFileError
from drawstring.base.lazy import lazy_map
from drawstring.filegroups.cdc_reader import ChangeTask
from drawstring.filegroups.read_task import ReadTask
from drawstring.formats.metadata.plans import decode_clean, decode_clean_plan
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path, parse_data_file
from drawstring.model.instant import Action, Instant
from drawstring.model.plans import CleanMetadata, CleanPlan
from drawstring.model.result import SLICES, Explanation, Narrowing, Step
from drawstring.query.table_state import TableFacts, load_facts
from drawstring.timeline.change_detection import ATTEMPTS_MAX, DELETING, digest, files_cleaned
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

if TYPE_CHECKING:
    from drawstring.query.data_skipping import DataSkipping

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
        elif _has_deleted_files(facts, deleted, read, as_of):
            return True
    return False


def _has_deleted_files(facts: TableFacts, deleted: DeletedFiles, read: FileSlice, as_of: str | None) -> bool:
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


Task: TypeAlias = ReadTask | ChangeTask
"""A unit of work of a scan."""

Skips: TypeAlias = Callable[[pc.Expression, str | None], "DataSkipping | None"]
"""Returns what rules out file slices for a further condition, whose SQL is known or None."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft(Generic[T]):
    """The plan of a query, made from one load of the table and not yet confirmed.

    Attributes:
        tasks: tasks that read the result.
        lacks: returns whether the given deletions may have removed a file of the result before the plan
            listed it.
        narrowing: how the plan came to its tasks; None if nothing could be left out.
        skips: rules out more file slices for a condition that comes later; None if nothing can.
    """

    tasks: Sequence[T]
    lacks: Callable[[DeletedFiles], bool]
    narrowing: Narrowing | None = None
    skips: Skips | None = None


class Replanning:
    """Plans a query, and plans it again from a fresh load of the table when needed.

    Args:
        facts: the table as it was first loaded.
        plan: makes the plan for a loaded table.
    """

    def __init__(self, facts: TableFacts, plan: Callable[[TableFacts], Draft[Task]]) -> None:
        self._facts = facts
        self._plan = plan
        self._narrowing: Narrowing | None = None
        self._skips: Skips | None = None

    def explained(self, tasks: Sequence[Task]) -> Explanation:
        """Return what the tasks of the last plan read, and what that plan left out."""
        return explanation(self._facts, tasks, self._narrowing)

    def skipping(self, where: pc.Expression, sql: str | None) -> DataSkipping | None:
        """Return what rules out tasks of the last plan for a further condition; None if nothing does."""
        return None if self._skips is None else self._skips(where, sql)

    def tasks(self) -> Sequence[Task]:
        """Return the tasks of the query; load the table again if files were deleted meanwhile.

        Raises:
            CorruptTableError: a file is lost.
            FilesCleanedError: the table changed during every attempt.
            DrawstringError: errors of the plan.
        """
        self._facts, draft, now = planned(self._facts, self._plan)
        self._narrowing, self._skips = draft.narrowing, draft.skips
        timeline_digest = digest(now)
        with_digest = partial(replace, timeline_digest=timeline_digest)
        return (
            [*map(with_digest, draft.tasks)]
            if isinstance(draft.tasks, list)
            else lazy_map(with_digest, draft.tasks)
        )

    def again(self) -> Sequence[Task]:
        """Load the table again and return the tasks; see `tasks`."""
        self._facts = reload_facts(self._facts)
        return self.tasks()


def planned(
    facts: TableFacts, plan: Callable[[TableFacts], Draft[T]]
) -> tuple[TableFacts, Draft[T], Timeline]:
    """Make a plan and confirm it; load the table again if files were deleted meanwhile.

    Args:
        facts: the table as it was first loaded.
        plan: makes the plan for a loaded table.

    Returns:
        The table that the plan was made for, the plan, and the timeline that confirmed it.

    Raises:
        CorruptTableError: a file is lost.
        FilesCleanedError: the table changed during every attempt.
    """

    def drafted(current: TableFacts) -> tuple[Draft[T], Timeline | None]:
        draft = plan(current)
        try:
            now = current.store.load()
        except ConflictError:
            return draft, None
        if now == current.timeline:
            return draft, now
        deleted = deleted_since(current, now)
        return draft, None if deleted is None or (deleted.groups and draft.lacks(deleted)) else now

    for _ in range(ATTEMPTS_MAX):
        facts, (draft, now) = retry_on_change(facts, drafted)
        if now is not None:
            return facts, draft, now
        facts = reload_facts(facts)
    raise FilesCleanedError(
        "Files were deleted during every attempt to plan this query. Try again, or retain more commits with"
        " hoodie.clean.commits.retained.",
        table=facts.storage.spec.uri,
    )


def retry_on_change(facts: TableFacts, use: Callable[[TableFacts], T]) -> tuple[TableFacts, T]:
    """Call a function with the table; load the table again if a file is missing that may have been deleted.

    Args:
        facts: the table as it was first loaded.
        use: function without side effects; may be called several times.

    Returns:
        The table that the last call received, and its result.

    Raises:
        MissingFileError: the file is still missing, and the table did not change.
        FilesCleanedError: the table changed during every attempt.
    """
    missing: MissingFileError | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            return facts, use(facts)
        except MissingFileError as error:
            reloaded = reload_facts(facts)
            is_unchanged = reloaded.timeline == facts.timeline
            is_same = missing is not None and missing.path == error.path and is_unchanged
            if is_same and not reloaded.timeline.pending_of(Action.RESTORE):
                raise
            missing, facts = error, reloaded
    assert missing is not None
    raise files_cleaned(missing).at(table=facts.storage.spec.uri) from missing


def reload_facts(facts: TableFacts) -> TableFacts:
    """Load a table again."""
    reloaded = load_facts(facts.storage, SystemClock(), facts.uses_metadata, facts.skips_data, facts.scope)
    reloaded = replace(reloaded, merges_by_position=facts.merges_by_position)
    reloaded.store.recall(facts.store)
    return reloaded


def explanation(facts: TableFacts, tasks: Sequence[Task], narrowing: Narrowing | None) -> Explanation:
    """Return what tasks read.

    Args:
        facts: the table.
        tasks: the tasks of a query.
        narrowing: how the plan came to them; None if nothing could be left out.
    """
    files = {file.status.path: file for each in slices_of(tasks) for file in (each.base, *each.logs) if file}
    size_bytes = sum(file.status.size_bytes for file in files.values())
    if narrowing is None:
        narrowing = Narrowing(facts.listing, (Step(SLICES, "listed", 0, len(tasks)),), size_bytes)
    base_files = sum(isinstance(file, BaseFile) for file in files.values())
    return Explanation(
        facts.storage.spec.uri,
        narrowing.listing,
        narrowing.where,
        narrowing.steps,
        len(tasks),
        base_files,
        len(files) - base_files,
        size_bytes,
        max(0, narrowing.bytes_listed - size_bytes),
    )


def slices_of(tasks: Sequence[Task]) -> Iterator[FileSlice]:
    """Yield the file slices that tasks read."""
    for task in tasks:
        if isinstance(task, ReadTask):
            yield task.file_slice
            if task.whole_slice is not None:
                yield task.whole_slice.file_slice
        else:
            yield from (read.file_slice for read in (task.before, task.after) if read is not None)
