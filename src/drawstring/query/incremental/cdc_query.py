"""Change queries: every change of the commits of a range, with images of the records before and after.

    commits of the range ── that change data ──> file groups that each of them wrote or replaced
        ──> change log, slice before, slice after ──> one task a commit and file group

Tables whose writers keep no change logs are answered too, by comparing slices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.filegroups.read.cdc import CHANGE_SCHEMA, DELETE, INSERT, UPDATE, ChangeTask
from drawstring.filegroups.read.log_history import LogHistory
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.dual_write_files import named_otherwise, resizing_of
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import FileSlice, FileStatus, LogFile
from drawstring.model.instant import Action, Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.change_slices import ChangeSlices
from drawstring.query.incremental.commit_ranges import CommitRange, RangeSpec, find_range, same_range
from drawstring.query.incremental.incremental_query import check_commit_times
from drawstring.query.partition_pruning import partitions_to_read
from drawstring.query.replanning import Draft, Task, settled, slices_of
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.snapshot import query_of, task_of

_DATA_BEFORE_AFTER: Final = "DATA_BEFORE_AFTER"
_OP_KEY_ONLY: Final = "OP_KEY_ONLY"
_MODE_KEY: Final = "hoodie.table.cdc.supplemental.logging.mode"


def changes_scan(facts: TableFacts, asked: RangeSpec, *, threads: int | None = None) -> Scan:
    """Query the changes of a range of commits.

    Args:
        facts: the table.
        asked: the range.
        threads: tasks that run at once; None for as many as the machine is good for.

    Returns:
        A lazy scan with the columns `op` (`i`, `u`, `d`), `ts_ms` (requested time of the commit),
        `before` and `after` (JSON).

    Raises:
        InvalidError: a time that cannot be read.
        UnavailableError: a pending write would be missed.
        UnsupportedError: the table keeps no commit times.
    """
    check_commit_times(facts)
    spec = replace(asked, names_commits=True)
    facts, found = settled(facts, lambda look: find_range(look, spec))
    return changes_of(facts, found, threads=threads)


def changes_of(facts: TableFacts, found: CommitRange, *, threads: int | None = None) -> Scan:
    """Query the changes of a range that is known already; see `changes_scan`."""

    def draft(look: TableFacts) -> Draft[Task]:
        return changes_draft(look, found if look is facts else same_range(look, found))

    return scan_of_plan(CHANGE_SCHEMA, facts, draft, threads)


def changes_draft(facts: TableFacts, found: CommitRange) -> Draft[Task]:
    """Return the tasks that tell the changes of a range on one look at the table."""
    tasks = _tasks(facts, found)
    return Draft(tasks, lambda deleted: any(deleted.reaches(each) for each in slices_of(tasks)))


def _tasks(facts: TableFacts, found: CommitRange) -> list[ChangeTask]:
    if found.reaches_archive:
        first = min(facts.timeline.writes(), key=time_of, default=None)
        raise InvalidError(
            "commits of the range were archived, and what they changed is not known any more: "
            + (
                "take a snapshot"
                if first is None
                else f"start at {time_of(first)} with include_start, or later"
            )
        )
    planner = ChangePlanner(facts)
    tasks = [task for instant in sorted(found.writes, key=time_of) for task in planner.tasks(instant)]
    return _with_histories(tasks)


class ChangePlanner:
    """Makes the tasks of commits.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._slices = ChangeSlices(facts)
        self._query = query_of(facts, None, None, InstantRange.of(facts.timeline))
        self._mode = facts.config.properties.get(_MODE_KEY, _DATA_BEFORE_AFTER).upper()

    def tasks(self, instant: Instant) -> list[ChangeTask]:
        """Return the tasks of a commit, those that delete first.

        A record can move from one file group to another within a commit, and who applies changes in their
        order must not delete it after it was inserted.

        Raises:
            InvalidError: its files were cleaned away.
            CorruptTableError: a file is gone that has to be there.
        """
        commit = self._facts.store.commit_metadata(instant)
        if not commit.changes_records:
            return []
        groups = self._groups(instant, commit)
        found = [
            self._replaced(instant, partition, file_id)
            for partition, file_ids in commit.replaced.items()
            for file_id in file_ids
        ]
        both = []
        for (partition, file_id), stats in groups.items():
            task = self._written(instant, partition, file_id, stats)
            if len(groups) > 1 and any(stat.num_deletes for stat in stats):
                found.append(replace(task, operations=(DELETE,)))
                task = replace(task, operations=(INSERT, UPDATE))
            both.append(task)
        return found + both

    def _groups(self, instant: Instant, commit: CommitMetadata) -> Mapping[tuple[str, str], list[WriteStat]]:
        """Return the statistics by file group, without those of rows that are written twice.

        During a resizing of buckets writes go to the old buckets and, into files named by the resizing,
        to the new ones as well. The old ones tell the change.
        """
        groups: dict[tuple[str, str], list[WriteStat]] = defaultdict(list)
        for stat in commit.stats:
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
        task = ChangeTask(self._facts.storage.spec, instant.requested, None, None, change_logs)
        if change_logs and self._mode == _DATA_BEFORE_AFTER:
            return task
        is_logged = all(LogFile.parse(FileStatus(stat.path, 0)) for stat in stats)
        if is_logged:
            around = self._slices.around_logs(instant, partition, file_id, stats)
        else:
            around = self._slices.around_base(instant, partition, file_id, stats[-1])
        touched = (partition, file_id, around.after.base_instant) if is_logged and around.after else None
        is_told = bool(change_logs) and self._mode != _OP_KEY_ONLY
        return replace(
            task,
            before=None if is_told else self._reading(instant, around.before, is_after=False),
            after=self._reading(instant, around.after, is_after=True),
            slice_of_logs=touched,
        )

    def _change_log(self, instant: Instant, stat: WriteStat, path: str, size_bytes: int) -> LogFile:
        status = self._slices.listed(instant, stat.partition, path)
        told = replace(status, size_bytes=max(size_bytes, status.size_bytes))
        return LogFile(told, stat.file_id, instant.requested, 1, "", True)

    def _replaced(self, instant: Instant, partition: str, file_id: str) -> ChangeTask:
        newest = self._slices.before(instant, partition, file_id)
        task = self._reading(instant, newest, is_after=False)
        return ChangeTask(self._facts.storage.spec, instant.requested, task, None)

    def _reading(self, instant: Instant, piece: FileSlice | None, *, is_after: bool) -> ReadTask | None:
        if piece is None or not (piece.base or piece.logs):
            return None
        facts = self._facts
        seen = {*self._slices.earlier(instant), *((instant.requested,) if is_after else ())}
        instants = InstantRange.among(frozenset(seen), facts.timeline)
        partition = partitions_to_read([piece.partition], facts.config, self._query.schema, None)[0]
        return task_of(replace(self._query, instants=instants), partition, piece)


def _with_histories(tasks: Sequence[ChangeTask]) -> list[ChangeTask]:
    """Let the tasks of writes to the log files of one slice read these once."""
    by_slice: dict[tuple[str, str, str], list[ChangeTask]] = defaultdict(list)
    for task in tasks:
        if task.slice_of_logs is not None and task.after is not None:
            by_slice[task.slice_of_logs].append(task)
    histories = {
        piece: LogHistory(
            max((each.after for each in group if each.after), key=_seen),
            frozenset(each.instant for each in group),
            len(group),
        )
        for piece, group in by_slice.items()
    }
    return [
        replace(task, history=histories[task.slice_of_logs]) if task.slice_of_logs in histories else task
        for task in tasks
    ]


def _seen(task: ReadTask) -> int:
    return len(task.instants.committed)
