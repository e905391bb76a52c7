"""Run change (CDC) queries: every change of the commits of a range, with before and after images.

    commits of the range ── that change data ──> file groups that each of them wrote or replaced
        ──> CDC log files, slice before, slice after ──> one task per commit and file group

For commits without CDC log files, the changes come from comparing the slices before and after
(`ChangeSlices` finds them). The comparison reads both slices as any query does, so changes and snapshots
agree by construction, whatever the merger is. A row with the time of the commit is an insert or an update,
and a key that is gone was deleted. A late delete is no change, since the slice after it still has the
record; Hudi reports it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.filegroups.cdc_reader import (
    CHANGE_SCHEMA,
    DELETE,
    INSERT,
    UPDATE,
    ChangeTask,
    LoggedColumns,
    LogHistory,
)
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.filegroups.view.missing_files import named_otherwise, resizing_of
from drawstring.filegroups.view.slicing import (
    GroupFiles,
    Visibility,
    group_files,
    slicer_of,
)
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, is_base_path
from drawstring.model.instant import Action, Instant, time_of
from drawstring.query.incremental import (
    CommitRange,
    ListedFiles,
    RangeSpec,
    check_commit_times,
    find_range,
    same_range,
)
from drawstring.query.partition_pruning import partitions_to_read
from drawstring.query.planner import query_of, task_of
from drawstring.query.replanning import Draft, Task, retry_on_change, slices_of
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.table_state import TableFacts
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SlicesBeforeAfter:
    """The slices of a file group before and after a write; None for a slice that does not exist."""

    before: FileSlice | None
    after: FileSlice | None


class ChangeSlices:
    """Finds the slices before and after commits.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._files = ListedFiles(facts.view.listing)
        self._earlier: dict[str, frozenset[str]] = {}
        self._groups: dict[str, Mapping[str, GroupFiles]] = {}

    def before(self, instant: Instant, partition: str, file_id: str) -> FileSlice:
        """Return the latest slice of a file group before a commit.

        Raises:
            InvalidError: files of it were cleaned away.
        """
        slices = self._slices(partition, file_id, before=time_of(instant))
        if not slices:
            raise _cleaned(instant)
        return self._whole(instant, slices[-1])

    def around_logs(
        self, instant: Instant, partition: str, file_id: str, stats: Sequence[WriteStat]
    ) -> SlicesBeforeAfter:
        """Return the slice of a commit's log files, without and with these log files.

        It is the slice that the log files belong to now. If a compaction completed after the write, its base
        file has the same records as the slice that the write saw.

        Raises:
            InvalidError: files of it were cleaned away.
        """
        paths = {self.listed(instant, partition, stat.path).path for stat in stats}
        for file_slice in self._slices(partition, file_id):
            if paths <= {log.status.path for log in file_slice.logs}:
                after = self._until(
                    self._whole(instant, file_slice), {*self.earlier(instant), instant.requested}
                )
                is_shared = self._facts.config.shares_log_files
                return SlicesBeforeAfter(after if is_shared else _without(after, paths), after)
        raise _cleaned(instant)

    def around_base(
        self, instant: Instant, partition: str, file_id: str, stat: WriteStat
    ) -> SlicesBeforeAfter:
        """Return the slice before a commit that wrote a base file, and the slice that the base file starts.

        Raises:
            InvalidError: files of them were cleaned away.
        """
        before = None
        if stat.prev_commit != "null":
            earlier = self.earlier(instant)
            matching = [
                file_slice
                for file_slice in self._slices(partition, file_id)
                if file_slice.base_instant == stat.prev_commit
            ]
            if not matching:
                raise _cleaned(instant)
            before = self._until(self._whole(instant, matching[0]), earlier)
        if not stat.path or (stat.num_writes == 0 and stat.path not in self._files.of(partition)):
            return SlicesBeforeAfter(before, None)
        sources = self._facts.store.sources
        base = sources.with_source(BaseFile.parse(self.listed(instant, partition, stat.path)))
        return SlicesBeforeAfter(before, FileSlice(partition, file_id, instant.requested, base))

    def earlier(self, instant: Instant) -> frozenset[str]:
        """Return the requested times of the writes that completed before a write."""
        if instant.requested not in self._earlier:
            time, writes = time_of(instant), self._facts.timeline.writes()
            earlier = frozenset(write.requested for write in writes if time_of(write) < time)
            self._earlier[instant.requested] = earlier
        return self._earlier[instant.requested]

    def _until(self, file_slice: FileSlice, instants: Set[str]) -> FileSlice:
        """Return a slice with only the log files of the given instants and of archived ones.

        A log file of table version 6 can hold blocks of several writes. There the reader filters the blocks.
        """
        if self._facts.config.shares_log_files:
            return file_slice
        archived = self._facts.timeline.is_archived
        logs = tuple(log for log in file_slice.logs if log.instant in instants or archived(log.instant))
        return replace(file_slice, logs=logs)

    def _slices(self, partition: str, file_id: str, before: str | None = None) -> list[FileSlice]:
        """Return all slices of a file group, replaced or not, that existed before a time; None for now."""
        if partition not in self._groups:
            self._facts.view.groups(partition)  # raises when a file of the latest slices is missing
            self._groups[partition] = group_files(self._files.of(partition).values())
        files = self._groups[partition].get(file_id)
        if files is None:
            return []
        completed_before = partial(_completed_before, self._facts.timeline, before)
        visible = Visibility(
            completed_before, archived_completion_of=self._facts.store.archived_completion_times.of
        )
        to_slices = slicer_of(self._facts.config.rules.log_file_assignment)
        slices = to_slices(partition, file_id, files, visible, self._facts.view.pending_compactions)
        return self._facts.store.sources.on(slices)

    def _whole(self, instant: Instant, file_slice: FileSlice) -> FileSlice:
        """Return a slice after checking that its base file, if it had one, still exists."""
        write = None if file_slice.base else self._facts.timeline.write_at(file_slice.base_instant)
        if write is None:
            return file_slice
        for stat in self._facts.store.commit_metadata(write).stats:
            is_same_group = (stat.partition, stat.file_id) == (file_slice.partition, file_slice.file_id)
            if is_same_group and (stat.base_file or is_base_path(stat.path)):
                raise _cleaned(instant)
        return file_slice

    def listed(self, instant: Instant, partition: str, path: str) -> FileStatus:
        """Return the status of a file that a commit wrote.

        Raises:
            InvalidError: the file was cleaned away.
        """
        status = self._files.find(partition, path)
        if status is None:
            raise _cleaned(instant)
        return status


def _completed_before(timeline: Timeline, time: str | None, requested: str) -> str | None:
    completed = timeline.completion_of(requested)
    return completed if completed is None or time is None or completed < time else None


def _without(file_slice: FileSlice, paths: Set[str]) -> FileSlice | None:
    logs = tuple(log for log in file_slice.logs if log.status.path not in paths)
    return replace(file_slice, logs=logs) if file_slice.base or logs else None


def _cleaned(instant: Instant) -> InvalidError:
    return InvalidError(
        f"Files with the changes of a commit were cleaned away. Start at {time_of(instant)} or later.",
        instant=instant.requested,
    )


_DATA_BEFORE_AFTER: Final = "DATA_BEFORE_AFTER"
_OP_KEY_ONLY: Final = "OP_KEY_ONLY"
_MODE_KEY: Final = "hoodie.table.cdc.supplemental.logging.mode"


def changes_scan(facts: TableFacts, spec: RangeSpec, *, threads: int | None = None) -> Scan:
    """Query the changes of a range of commits.

    Args:
        facts: the table.
        spec: the range, as the user gives it.
        threads: number of tasks that run at once; None to choose by the tasks and the machine.

    Returns:
        A lazy scan with the columns `op` (`i`, `u`, `d`), `ts_ms` (requested time of the commit),
        `before` and `after` (JSON).

    Raises:
        InvalidError: a time that cannot be read.
        UnavailableError: the query would skip a pending write.
        UnsupportedError: the table keeps no commit times.
    """
    check_commit_times(facts)
    spec = replace(spec, names_commits=True)
    facts, commit_range = retry_on_change(facts, lambda current: find_range(current, spec))
    return changes_of(facts, commit_range, threads=threads)


def changes_of(facts: TableFacts, commit_range: CommitRange, *, threads: int | None = None) -> Scan:
    """Query the changes of a known range; see `changes_scan`."""

    def draft(current: TableFacts) -> Draft[Task]:
        return changes_draft(current, commit_range if current is facts else same_range(current, commit_range))

    return scan_of_plan(CHANGE_SCHEMA, facts, draft, threads)


def changes_draft(facts: TableFacts, commit_range: CommitRange) -> Draft[Task]:
    """Return the plan that reads the changes of a range of a loaded table."""
    tasks = _tasks(facts, commit_range)
    return Draft(tasks, lambda deleted: any(deleted.reaches(file_slice) for file_slice in slices_of(tasks)))


def _tasks(facts: TableFacts, commit_range: CommitRange) -> list[ChangeTask]:
    if commit_range.reaches_archive:
        first = min(facts.timeline.writes(), key=time_of, default=None)
        raise InvalidError(
            "Commits of the range were archived, so their changes can no longer be read. "
            + (
                "Query a snapshot instead."
                if first is None
                else f"Start at {time_of(first)} with include_start, or later."
            )
        )
    planner = ChangePlanner(facts)
    tasks = [task for instant in sorted(commit_range.writes, key=time_of) for task in planner.tasks(instant)]
    return _with_histories(tasks)


class ChangePlanner:
    """Plans the tasks that read the changes of commits.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._slices = ChangeSlices(facts)
        self._query = query_of(facts, None, None, InstantRange.of(facts.timeline))
        self._mode = facts.config.properties.get(_MODE_KEY, _DATA_BEFORE_AFTER).upper()

    def tasks(self, instant: Instant) -> list[ChangeTask]:
        """Return the tasks of a commit, those that return deletes first.

        Within a commit a record can move from one file group to another. A consumer that applies the changes
        in order must not delete the record after it inserted it.

        Raises:
            InvalidError: files of the commit were cleaned away.
            CorruptTableError: a file is missing that no action deleted.
        """
        commit = self._facts.store.commit_metadata(instant)
        if not commit.changes_records:
            return []
        groups = self._groups(instant, commit)
        deleting = [
            self._replaced(instant, partition, file_id)
            for partition, file_ids in commit.replaced.items()
            for file_id in (file_ids if self._facts.scoped([partition]) else ())
        ]
        others = []
        for (partition, file_id), stats in groups.items():
            task = self._written(instant, partition, file_id, stats)
            if len(groups) > 1 and any(stat.num_deletes for stat in stats):
                deleting.append(replace(task, operations=(DELETE,)))
                task = replace(task, operations=(INSERT, UPDATE))
            others.append(task)
        return deleting + others

    def _groups(self, instant: Instant, commit: CommitMetadata) -> Mapping[tuple[str, str], list[WriteStat]]:
        """Return the write statistics by file group, without the second copies of dual writes.

        During the resizing of a consistent hash ring, a write goes to the old buckets and also to the new
        ones, in files that carry the instant of the resizing. The files of the old buckets give the changes.
        """
        groups: dict[tuple[str, str], list[WriteStat]] = defaultdict(list)
        for stat in commit.stats:
            if self._facts.scoped([stat.partition]):
                groups[stat.partition, stat.file_id].append(stat)
        copies = [
            group
            for group, stats in groups.items()
            if all(self._is_copy(instant, stat, groups) for stat in stats)
        ]
        return {group: stats for group, stats in groups.items() if group not in copies}

    def _is_copy(self, instant: Instant, stat: WriteStat, groups: Container[tuple[str, str]]) -> bool:
        log = named_otherwise(stat.path, instant.requested)
        if log is None or resizing_of(instant, stat):
            return log is not None
        resizing = self._facts.timeline.find(log.instant)
        if resizing is None or resizing.action.completed_action is not Action.REPLACE_COMMIT:
            return False
        if not resizing.is_completed:
            return True
        replaced = self._facts.store.commit_metadata(resizing).replaced.get(stat.partition, ())
        return any((stat.partition, file_id) in groups for file_id in replaced)

    def _written(
        self, instant: Instant, partition: str, file_id: str, stats: Sequence[WriteStat]
    ) -> ChangeTask:
        change_logs = tuple(
            self._change_log(instant, stat, path, size)
            for stat in stats
            for path, size in stat.cdc_files.items()
        )
        wording = self._wording(instant) if change_logs else None
        task = ChangeTask(self._facts.storage.spec, instant.requested, None, None, change_logs, wording)
        if change_logs and self._mode == _DATA_BEFORE_AFTER:
            return task
        is_logged = all(LogFile.parse(FileStatus(stat.path, 0)) for stat in stats)
        if is_logged:
            around = self._slices.around_logs(instant, partition, file_id, stats)
        else:
            around = self._slices.around_base(instant, partition, file_id, stats[-1])
        log_slice = (partition, file_id, around.after.base_instant) if is_logged and around.after else None
        has_before_images = bool(change_logs) and self._mode != _OP_KEY_ONLY
        return replace(
            task,
            before=None if has_before_images else self._reading(instant, around.before, is_after=False),
            after=self._reading(instant, around.after, is_after=True),
            slice_of_logs=log_slice,
        )

    def _wording(self, instant: Instant) -> LoggedColumns | None:
        """Return how the columns of now are called in CDC logs of a commit."""
        renames = self._facts.config.renames(instant.requested)
        return None if renames is None else LoggedColumns(renames, self._facts.schema)

    def _change_log(self, instant: Instant, stat: WriteStat, path: str, size_bytes: int) -> LogFile:
        status = self._slices.listed(instant, stat.partition, path)
        status = replace(status, size_bytes=max(size_bytes, status.size_bytes))
        named = LogFile.parse(status)
        return named or LogFile(status, stat.file_id, instant.requested, 1, "", True)

    def _replaced(self, instant: Instant, partition: str, file_id: str) -> ChangeTask:
        last_slice = self._slices.before(instant, partition, file_id)
        task = self._reading(instant, last_slice, is_after=False)
        return ChangeTask(self._facts.storage.spec, instant.requested, task, None)

    def _reading(self, instant: Instant, file_slice: FileSlice | None, *, is_after: bool) -> ReadTask | None:
        if file_slice is None or not (file_slice.base or file_slice.logs):
            return None
        facts = self._facts
        visible = {*self._slices.earlier(instant), *((instant.requested,) if is_after else ())}
        instants = InstantRange.among(frozenset(visible), facts.timeline)
        partition = partitions_to_read([file_slice.partition], facts.config, self._query.schema, None)[0]
        return task_of(replace(self._query, instants=instants), partition, file_slice)


def _with_histories(tasks: Sequence[ChangeTask]) -> list[ChangeTask]:
    """Give tasks of writes to the log files of one slice a shared history, so that these are read once."""
    by_slice: dict[tuple[str, str, str], list[ChangeTask]] = defaultdict(list)
    for task in tasks:
        if task.slice_of_logs is not None and task.after is not None:
            by_slice[task.slice_of_logs].append(task)
    histories = {
        slice_key: LogHistory(
            max((task.after for task in group if task.after), key=_visible_count),
            frozenset(task.instant for task in group),
            len(group),
        )
        for slice_key, group in by_slice.items()
    }
    return [
        replace(task, history=histories[task.slice_of_logs]) if task.slice_of_logs in histories else task
        for task in tasks
    ]


def _visible_count(task: ReadTask) -> int:
    return len(task.instants.committed)
