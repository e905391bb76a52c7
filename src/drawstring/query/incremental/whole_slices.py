"""Whole file slices of the log files that a range of commits wrote, as of the end of the range.

Partial log blocks contain some of the columns and do not make whole rows. An incremental query that reads
such a block reads the records that it changes from the whole slice (`filegroups.read.slice_reader`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.slicing import GroupFiles, Visibility, group_files, slices_by_completion
from drawstring.merge.record_mergers import takes_partial_blocks
from drawstring.model.files import BaseFile, FileSlice, FileStatus, join_path
from drawstring.model.instant import time_of
from drawstring.query.incremental.commit_ranges import CommitRange
from drawstring.query.incremental.listed_files import ListedFiles
from drawstring.query.snapshot import Query


class WholeSlices:
    """Finds the whole slices of the log files that a range wrote.

    Args:
        query: the incremental query.
        commit_range: its commits.
    """

    def __init__(self, query: Query, commit_range: CommitRange) -> None:
        self._query = query
        facts = query.facts
        self._timeline = facts.timeline
        end = commit_range.end or max(map(time_of, commit_range.writes))
        before = [write.requested for write in facts.timeline.writes() if time_of(write) <= end]
        among = InstantRange.among(frozenset(before), facts.timeline)
        self._instants = replace(among, has_pending_write=query.instants.has_pending_write)
        self._files = ListedFiles(facts.view.listing)
        self._groups: dict[str, Mapping[str, GroupFiles]] = {}

    def attach(self, task: ReadTask) -> ReadTask:
        """Attach the task that reads the whole slice, if log blocks may be partial.

        Args:
            task: reads the files that the range wrote to a file group.
        """
        if not task.file_slice.logs or not takes_partial_blocks(task.config):
            return task
        whole = self._whole(task.file_slice)
        if whole is None:
            return task
        return replace(task, whole_slice=replace(task, file_slice=whole, instants=self._instants))

    def _whole(self, written: FileSlice) -> FileSlice | None:
        """Return the slice that the log files belong to now, without log files written after the range.

        If a compaction completed after the write, its base file has the same records as the slice that the
        write saw.
        """
        files = self._group(written.partition, written.file_id)
        times = self._query.facts.store.archived_completion_times
        visible = Visibility(self._timeline.completion_of, archived_completion_of=times.of)
        paths = {log.status.path for log in written.logs}
        for candidate in reversed(slices_by_completion(written.partition, written.file_id, files, visible)):
            if paths.isdisjoint(log.status.path for log in candidate.logs):
                continue
            admits = self._instants.admits
            logs = tuple(log for log in candidate.logs if log.status.path in paths or admits(log.instant))
            base = candidate.base or self._base_named_by_commit(written)
            return self._query.facts.store.sources.on([replace(candidate, base=base, logs=logs)])[0]
        return None

    def _base_named_by_commit(self, written: FileSlice) -> BaseFile | None:
        """Return the unlisted base file that the commit metadata names for a log file; reading it fails."""
        last = written.logs[-1]
        instant = self._timeline.write_at(last.instant)
        stats = self._query.facts.store.commit_metadata(instant).stats if instant else ()
        names = (stat.base_file for stat in stats if stat.path == last.status.path and stat.base_file)
        name = next(names, None)
        return None if name is None else BaseFile.parse(FileStatus(join_path(written.partition, name), 0))

    def _group(self, partition: str, file_id: str) -> GroupFiles:
        if partition not in self._groups:
            self._groups[partition] = group_files(self._files.of(partition).values())
        return self._groups[partition][file_id]
