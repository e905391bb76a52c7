"""The file slices of a file group before and after a commit."""

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
from drawstring.model.files import BaseFile, FileSlice, FileStatus, is_base_path
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.listed_files import ListedFiles
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
