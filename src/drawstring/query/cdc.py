"""Change queries: every change of the commits of a range, with images of the records before and after.

    commits of the range ── that change data ──> file groups that each of them wrote or replaced
        ──> change log, slice before, slice after ──> one task a commit and file group

Tables whose writers keep no change logs are answered too, by comparing slices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.filegroups.cdc import CHANGE_SCHEMA, ChangeTask
from drawstring.filegroups.slicing import (
    GroupFiles,
    Visibility,
    group_files,
    slices_by_completion,
    slices_by_name,
)
from drawstring.filegroups.tasks import InstantRange, ReadTask
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile
from drawstring.model.instant import Instant
from drawstring.query.facts import TableFacts
from drawstring.query.incremental import check_commit_times
from drawstring.query.pruning import partitions_to_read
from drawstring.query.ranges import CommitRange, RangeSpec, find_range, time_of
from drawstring.query.scan import Scan
from drawstring.query.snapshot import query_of, task_of
from drawstring.timeline.timeline import Timeline

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
    return changes_of(facts, find_range(facts, asked), threads=threads)


def changes_of(facts: TableFacts, found: CommitRange, *, threads: int | None = None) -> Scan:
    """Query the changes of a range that is known already; see `changes_scan`."""
    return Scan(CHANGE_SCHEMA, partial(_tasks, facts, found), threads, facts.storage.spec.uri)


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
    return [task for instant in sorted(found.writes, key=time_of) for task in planner.tasks(instant)]


class ChangePlanner:
    """Makes the tasks of commits.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._query = query_of(facts, None, None, InstantRange.of(facts.timeline))
        self._files: dict[str, Mapping[str, FileStatus]] = {}
        self._seen: dict[str, frozenset[str]] = {}
        self._groups: dict[str, Mapping[str, GroupFiles]] = {}
        mode = facts.config.properties.get(_MODE_KEY, _DATA_BEFORE_AFTER)
        self._mode = mode.upper()

    def tasks(self, instant: Instant) -> Iterator[ChangeTask]:
        """Yield the tasks of a commit.

        Raises:
            InvalidError: its files were cleaned away.
        """
        commit = self._facts.store.commit_metadata(instant)
        if not commit.changes_records:
            return
        for (partition, file_id), stats in _by_group(commit).items():
            yield self._written(instant, partition, file_id, stats)
        for partition, file_ids in commit.replaced.items():
            for file_id in file_ids:
                yield self._replaced(instant, partition, file_id)

    def _written(
        self, instant: Instant, partition: str, file_id: str, stats: Sequence[WriteStat]
    ) -> ChangeTask:
        change_logs = tuple(
            LogFile(self._listed(instant, partition, path), file_id, instant.requested, 1, "", True)
            for stat in stats
            for path in stat.cdc_files
        )
        if change_logs and self._mode == _DATA_BEFORE_AFTER:
            return ChangeTask(self._facts.storage.spec, instant.requested, None, None, change_logs)
        before: FileSlice | None
        after: FileSlice | None
        if all(LogFile.parse(FileStatus(stat.path, 0)) for stat in stats):
            before, after = self._around_logs(instant, partition, file_id, stats)
        else:
            before, after = self._around_base(instant, partition, file_id, stats[-1])
        if change_logs and self._mode != _OP_KEY_ONLY:
            before = None
        return ChangeTask(
            self._facts.storage.spec,
            instant.requested,
            self._reading(instant, before, is_after=False),
            self._reading(instant, after, is_after=True),
            change_logs,
        )

    def _replaced(self, instant: Instant, partition: str, file_id: str) -> ChangeTask:
        slices = self._slices(partition, file_id, before=time_of(instant))
        if not slices:
            raise _cleaned(instant)
        task = self._reading(instant, slices[-1], is_after=False)
        return ChangeTask(self._facts.storage.spec, instant.requested, task, None)

    def _around_logs(
        self, instant: Instant, partition: str, file_id: str, stats: Sequence[WriteStat]
    ) -> tuple[FileSlice | None, FileSlice]:
        """Return the slice that log files went on, without and with them.

        The slice is the one that they belong to today: a compaction that completed after the write has
        the same records as what the write saw.
        """
        paths = {self._listed(instant, partition, stat.path).path for stat in stats}
        for piece in self._slices(partition, file_id):
            if paths <= {log.status.path for log in piece.logs}:
                after = self._until(piece, {*self._earlier(instant), instant.requested})
                return (after if self._facts.config.layout == 1 else _without(after, paths)), after
        raise _cleaned(instant)

    def _around_base(
        self, instant: Instant, partition: str, file_id: str, stat: WriteStat
    ) -> tuple[FileSlice | None, FileSlice | None]:
        """Return the slice that a base file replaced, and the one that it began."""
        before = None
        if stat.prev_commit != "null":
            earlier = self._earlier(instant)
            known = [
                piece for piece in self._slices(partition, file_id) if piece.base_instant == stat.prev_commit
            ]
            if not known:
                raise _cleaned(instant)
            before = self._until(known[0], earlier)
        if not stat.path or (stat.num_writes == 0 and stat.path not in self._listing(partition)):
            return before, None
        base = BaseFile.parse(self._listed(instant, partition, stat.path))
        return before, FileSlice(partition, file_id, instant.requested, base)

    def _reading(self, instant: Instant, piece: FileSlice | None, *, is_after: bool) -> ReadTask | None:
        if piece is None or not (piece.base or piece.logs):
            return None
        facts = self._facts
        seen = {*self._earlier(instant), *((instant.requested,) if is_after else ())}
        instants = InstantRange(
            frozenset(seen), facts.timeline.start, None, bool(facts.timeline.pending_writes())
        )
        partition = partitions_to_read([piece.partition], facts.config, self._query.schema, None)[0]
        return task_of(replace(self._query, instants=instants), partition, piece)

    def _earlier(self, instant: Instant) -> frozenset[str]:
        """Return the requested times of the writes that took effect before one."""
        if instant.requested not in self._seen:
            time, writes = time_of(instant), self._facts.timeline.writes()
            earlier = frozenset(write.requested for write in writes if time_of(write) < time)
            self._seen[instant.requested] = earlier
        return self._seen[instant.requested]

    def _until(self, piece: FileSlice, instants: Set[str]) -> FileSlice:
        """Return a slice without the log files of other writes than some.

        In layout 1 a log file can hold blocks of several writes; what counts is told to whoever reads them.
        """
        if self._facts.config.layout == 1:
            return piece
        archived = self._facts.timeline.is_archived
        logs = tuple(log for log in piece.logs if log.instant in instants or archived(log.instant))
        return replace(piece, logs=logs)

    def _slices(self, partition: str, file_id: str, before: str | None = None) -> list[FileSlice]:
        """Return the slices of a file group, replaced or not, as they are or were before a time."""
        if partition not in self._groups:
            self._groups[partition] = group_files(self._listing(partition).values())
        files = self._groups[partition].get(file_id)
        if files is None:
            return []
        visible = Visibility(partial(_completed_before, self._facts.timeline, before))
        if self._facts.config.layout == 1:
            pending = self._facts.view.pending_compactions().get((partition, file_id))
            return slices_by_name(partition, file_id, files, visible, pending)
        return slices_by_completion(partition, file_id, files, visible)

    def _listed(self, instant: Instant, partition: str, path: str) -> FileStatus:
        status = self._listing(partition).get(path)
        if status is None:
            raise _cleaned(instant)
        return status

    def _listing(self, partition: str) -> Mapping[str, FileStatus]:
        if partition not in self._files:
            found = self._facts.view.listing.files(partition)
            self._files[partition] = {status.path: status for status in found}
        return self._files[partition]


def _by_group(commit: CommitMetadata) -> Mapping[tuple[str, str], list[WriteStat]]:
    groups: dict[tuple[str, str], list[WriteStat]] = defaultdict(list)
    for stat in commit.stats:
        groups[stat.partition, stat.file_id].append(stat)
    return groups


def _completed_before(timeline: Timeline, time: str | None, requested: str) -> str | None:
    completed = timeline.completion_of(requested)
    return completed if completed is None or time is None or completed < time else None


def _without(piece: FileSlice, paths: Set[str]) -> FileSlice | None:
    logs = tuple(log for log in piece.logs if log.status.path not in paths)
    return replace(piece, logs=logs) if piece.base or logs else None


def _cleaned(instant: Instant) -> InvalidError:
    return InvalidError(
        f"files that tell what a commit changed were cleaned away: start at {time_of(instant)} or later",
        instant=instant.requested,
    )
