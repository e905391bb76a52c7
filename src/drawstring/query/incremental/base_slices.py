"""What lies beneath the log files that a range of commits wrote: their slices as the range left them.

Log blocks with some of the columns alone do not make whole rows, so whoever meets them among the files of a
range reads the records that they touch in the whole slice (`filegroups.read.slice_reader`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.slicing import GroupFiles, Visibility, group_files, slices_by_completion
from drawstring.merge.choose import takes_partial_blocks
from drawstring.model.files import BaseFile, FileSlice, FileStatus, join_path
from drawstring.model.instant import time_of
from drawstring.query.incremental.commit_ranges import CommitRange
from drawstring.query.incremental.listed_files import ListedFiles
from drawstring.query.snapshot import Query


class Beneath:
    """Finds the slices that the log files of a range are part of.

    Args:
        query: what is asked.
        asked: the range.
    """

    def __init__(self, query: Query, asked: CommitRange) -> None:
        self._query = query
        facts = query.facts
        self._timeline = facts.timeline
        end = asked.end or max(map(time_of, asked.writes))
        before = [write.requested for write in facts.timeline.writes() if time_of(write) <= end]
        among = InstantRange.among(frozenset(before), facts.timeline)
        self._instants = replace(among, is_written=query.instants.is_written)
        self._files = ListedFiles(facts.view.listing)
        self._groups: dict[str, Mapping[str, GroupFiles]] = {}

    def under(self, task: ReadTask) -> ReadTask:
        """Return a task with the one that reads the whole slice, where blocks may be partial.

        Args:
            task: reads the files of the range in a file group.
        """
        if not task.file_slice.logs or not takes_partial_blocks(task.config):
            return task
        whole = self._whole(task.file_slice)
        if whole is None:
            return task
        return replace(task, beneath=replace(task, file_slice=whole, instants=self._instants))

    def _whole(self, written: FileSlice) -> FileSlice | None:
        """Return the slice that log files belong to today, without what came after the range.

        A compaction that completed after a write has the same records as what the write saw.
        """
        files = self._group(written.partition, written.file_id)
        visible = Visibility(self._timeline.completion_of)
        paths = {log.status.path for log in written.logs}
        for piece in reversed(slices_by_completion(written.partition, written.file_id, files, visible)):
            if paths.isdisjoint(log.status.path for log in piece.logs):
                continue
            admits = self._instants.admits
            logs = tuple(log for log in piece.logs if log.status.path in paths or admits(log.instant))
            base = piece.base or self._stated_base(written)
            return self._query.facts.store.sources.on([replace(piece, base=base, logs=logs)])[0]
        return None

    def _stated_base(self, written: FileSlice) -> BaseFile | None:
        """Return the base file that a write found under its log file, though it is not listed: it is lost."""
        last = written.logs[-1]
        instant = self._timeline.write_at(last.instant)
        stats = self._query.facts.store.commit_metadata(instant).stats if instant else ()
        found = (each.base_file for each in stats if each.path == last.status.path and each.base_file)
        named = next(found, None)
        return None if named is None else BaseFile.parse(FileStatus(join_path(written.partition, named), 0))

    def _group(self, partition: str, file_id: str) -> GroupFiles:
        if partition not in self._groups:
            self._groups[partition] = group_files(self._files.of(partition).values())
        return self._groups[partition][file_id]
