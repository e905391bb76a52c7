"""The file slices around a commit: what a file group was before it, and what it was after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from drawstring.base.errors import InvalidError
from drawstring.filegroups.view.slicing import (
    GroupFiles,
    Visibility,
    group_files,
    slicer_of,
)
from drawstring.model.commit import WriteStat
from drawstring.model.files import BASE_EXTENSIONS, BaseFile, FileSlice, FileStatus
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.listed_files import ListedFiles
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Around:
    """A file group around a write: None for a slice that is not there."""

    before: FileSlice | None
    after: FileSlice | None


class ChangeSlices:
    """Finds the slices around commits.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._files = ListedFiles(facts.view.listing)
        self._seen: dict[str, frozenset[str]] = {}
        self._groups: dict[str, Mapping[str, GroupFiles]] = {}

    def before(self, instant: Instant, partition: str, file_id: str) -> FileSlice:
        """Return the slice that a commit found.

        Raises:
            InvalidError: it was cleaned away.
        """
        slices = self._slices(partition, file_id, before=time_of(instant))
        if not slices:
            raise _cleaned(instant)
        return self._whole(instant, slices[-1])

    def around_logs(
        self, instant: Instant, partition: str, file_id: str, stats: Sequence[WriteStat]
    ) -> Around:
        """Return the slice that log files of a commit went on, without and with them.

        The slice is the one that they belong to today: a compaction that completed after the write has
        the same records as what the write saw.

        Raises:
            InvalidError: files of it were cleaned away.
        """
        paths = {self.listed(instant, partition, stat.path).path for stat in stats}
        for piece in self._slices(partition, file_id):
            if paths <= {log.status.path for log in piece.logs}:
                after = self._until(self._whole(instant, piece), {*self.earlier(instant), instant.requested})
                is_named = self._facts.config.shares_log_files
                return Around(after if is_named else _without(after, paths), after)
        raise _cleaned(instant)

    def around_base(self, instant: Instant, partition: str, file_id: str, stat: WriteStat) -> Around:
        """Return the slice that a base file of a commit replaced, and the one that it began.

        Raises:
            InvalidError: files of them were cleaned away.
        """
        before = None
        if stat.prev_commit != "null":
            earlier = self.earlier(instant)
            known = [
                piece for piece in self._slices(partition, file_id) if piece.base_instant == stat.prev_commit
            ]
            if not known:
                raise _cleaned(instant)
            before = self._until(self._whole(instant, known[0]), earlier)
        if not stat.path or (stat.num_writes == 0 and stat.path not in self._files.of(partition)):
            return Around(before, None)
        sources = self._facts.store.sources
        base = sources.told(BaseFile.parse(self.listed(instant, partition, stat.path)))
        return Around(before, FileSlice(partition, file_id, instant.requested, base))

    def earlier(self, instant: Instant) -> frozenset[str]:
        """Return the requested times of the writes that took effect before one."""
        if instant.requested not in self._seen:
            time, writes = time_of(instant), self._facts.timeline.writes()
            earlier = frozenset(write.requested for write in writes if time_of(write) < time)
            self._seen[instant.requested] = earlier
        return self._seen[instant.requested]

    def _until(self, piece: FileSlice, instants: Set[str]) -> FileSlice:
        """Return a slice without the log files of other writes than some.

        A log file of version 6 can hold blocks of several writes; what counts is told to whoever reads them.
        """
        if self._facts.config.shares_log_files:
            return piece
        archived = self._facts.timeline.is_archived
        logs = tuple(log for log in piece.logs if log.instant in instants or archived(log.instant))
        return replace(piece, logs=logs)

    def _slices(self, partition: str, file_id: str, before: str | None = None) -> list[FileSlice]:
        """Return the slices of a file group, replaced or not, as they are or were before a time."""
        if partition not in self._groups:
            self._facts.view.groups(partition)  # what a snapshot would miss is missing here, too
            self._groups[partition] = group_files(self._files.of(partition).values())
        files = self._groups[partition].get(file_id)
        if files is None:
            return []
        visible = Visibility(partial(_completed_before, self._facts.timeline, before))
        to_slices = slicer_of(self._facts.config.rules.slicing)
        slices = to_slices(partition, file_id, files, visible, self._facts.view.pending_compactions)
        return self._facts.store.sources.on(slices)

    def _whole(self, instant: Instant, piece: FileSlice) -> FileSlice:
        """Check that a slice that began with a base file still has it."""
        begun = None if piece.base else self._facts.timeline.write_at(piece.base_instant)
        if begun is None:
            return piece
        for stat in self._facts.store.commit_metadata(begun).stats:
            is_its = (stat.partition, stat.file_id) == (piece.partition, piece.file_id)
            if is_its and (stat.base_file or stat.path.endswith(BASE_EXTENSIONS)):
                raise _cleaned(instant)
        return piece

    def listed(self, instant: Instant, partition: str, path: str) -> FileStatus:
        """Return a file of a commit.

        Raises:
            InvalidError: it was cleaned away.
        """
        status = self._files.find(partition, path)
        if status is None:
            raise _cleaned(instant)
        return status


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
