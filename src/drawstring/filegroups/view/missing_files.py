"""Detection of missing data files, and the exemptions from it.

A partition is read as it is listed, so a deleted file would go unnoticed: its rows would be missing, or old
rows would reappear. The metadata of the newest writes, a bounded number of them, reveals it:

    newest write first    a file that it wrote must exist, unless the file group was replaced or a
                          later write, already checked, gave the group a new base file
    a slice of logs only  the write that began it records whether it had a base file
    a partition           in which one of these writes has live files must be listed

Files that another tool registered in the table without rewriting them.

    commit      2024/part-0.parquet_20240105180000000_hudiext
    storage     2024/part-0.parquet

Such files have neither a Hudi file name nor meta columns. Apache Hudi finds them through its metadata table
only, so a table that has them must keep it.

Log files of a dual write: while a bucket resizing is pending, a write puts copies of its records for the old
buckets into the new ones.

    .<new file id>_<resizing>.log.<version>_<token>     in all layouts, with blocks of the write

They carry the instant of the resizing, so they become visible when it completes. A rollback of the resizing
deletes them, although the commit still names them. Log files of layout 1 also carry the instant of a slice;
there the statistics have that instant as `prevCommit`, while those of a copy have the write itself.

After a resizing is archived, the buckets that it replaced are no longer known. They were cleaned before that,
and a write that completed after the resizing may still be on the timeline and name its files in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from threading import Lock
from typing import Final, Protocol

from drawstring.base.errors import REPAIR, MissingFileError, UnsupportedError
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import (
    PARTITION_METADATA,
    FileSlice,
    FileStatus,
    LogFile,
    is_base_path,
    join_path,
)
from drawstring.model.instant import Instant, is_build, time_of
from drawstring.timeline.timeline import Timeline

_SUFFIX: Final = "_hudiext"


def refuse_external_file(path: str, instant: str | None = None) -> None:
    """Check that a file was not registered by another tool.

    Args:
        path: path in the commit metadata.
        instant: requested time of that commit.

    Raises:
        UnsupportedError: another tool registered the file.
    """
    if path.endswith(_SUFFIX):
        raise UnsupportedError(
            "The commit names a data file that another tool (Apache XTable, for example) registered in the"
            " table without rewriting it. This release does not read such files: read the table with Apache"
            " Hudi, or the files with the tool that wrote them.",
            instant=instant,
            path=path,
        )


def refuse_external_files(stats: Iterable[WriteStat], instant: str) -> None:
    """Check that a commit names no files that another tool registered; see `refuse_external_file`."""
    for stat in stats:
        refuse_external_file(stat.path, instant)


def named_otherwise(path: str, requested: str) -> LogFile | None:
    """Return the log file of a path if its name carries another instant than that of the write."""
    log = LogFile.parse(FileStatus(path, 0))
    return log if log is not None and log.instant != requested else None


def resizing_of(instant: Instant, stat: WriteStat) -> str | None:
    """Return the requested time of the resizing that a dual-write copy belongs to; None for other files."""
    if stat.prev_commit != instant.requested:  # avoids parsing the names of nearly all files
        return None
    log = named_otherwise(stat.path, instant.requested)
    return log.instant if log is not None else None


def may_be_gone(timeline: Timeline, instant: Instant, stat: WriteStat) -> bool:
    """Return whether a file of a write may be missing: a dual-write copy whose resizing is not completed."""
    resizing = resizing_of(instant, stat)
    return resizing is not None and timeline.write_at(resizing) is None


def needed(
    timeline: Timeline, instant: Instant, stats: Collection[WriteStat], paths: Collection[str]
) -> Iterator[WriteStat]:
    """Yield the files of a write that must exist, unless another write replaced them.

    Args:
        timeline: of the table.
        instant: the write.
        stats: statistics of its files.
        paths: the listed files.
    """
    resizings = {resizing for stat in stats if (resizing := resizing_of(instant, stat))}
    was_resized = any(timeline.is_archived(each) for each in resizings)
    for stat in stats:
        is_needed = bool(stat.path) and not may_be_gone(timeline, instant, stat)
        if is_needed and not (was_resized and _is_without_files(stat, paths)):
            yield stat


def _is_without_files(stat: WriteStat, paths: Collection[str]) -> bool:
    """Return whether all files of a file group are missing."""
    return stat.path not in paths and not any(stat.file_id in path for path in paths)


WRITES_CHECKED: Final = 20
"""Number of newest completed writes whose files are checked."""


class CommitReader(Protocol):
    """Reads commit metadata."""

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a completed write."""
        ...


class MissingFileCheck:
    """The files that must exist according to commit metadata.

    Args:
        timeline: the completed writes.
        reader: reads their metadata.
    """

    def __init__(self, timeline: Timeline, reader: CommitReader) -> None:
        self._timeline = timeline
        self._reader = reader
        by_time = sorted(timeline.writes(), key=time_of, reverse=True)
        self._newest = by_time[:WRITES_CHECKED]
        self._stats: dict[str, Mapping[str, list[WriteStat]]] = {}
        self._lock = Lock()  # several threads check partitions, and one of them reads a commit

    def check(
        self,
        partition: str,
        listed: Iterable[FileStatus],
        slices: Iterable[FileSlice],
        *,
        replaced: Collection[str] = (),
        as_of: str | None = None,
    ) -> None:
        """Check a partition against the commit metadata.

        Args:
            partition: partition path.
            listed: its files.
            slices: the latest slice of each of its file groups.
            replaced: ids of its file groups that were replaced.
            as_of: the latest requested time that the query reads; None for all.

        Raises:
            CorruptTableError: a file is missing.
        """
        paths = {status.path for status in listed}
        if self._newest and (as_of is None or self._newest[0].requested <= as_of):
            for instant, stat in self._needed(partition, paths, replaced):
                _check(stat.path, paths, instant)
        for file_slice in slices:
            begun = None if file_slice.base else self._timeline.write_at(file_slice.base_instant)
            if begun is not None:
                for stat in self._stats_of(begun, partition):
                    if stat.file_id == file_slice.file_id:
                        _check(_base_of(stat), paths, begun)

    def check_partitions(
        self,
        listed: Collection[str],
        files: Callable[[str], Iterable[FileStatus]],
        replaced: Iterable[tuple[str, str]],
    ) -> None:
        """Check the listed partitions against those that the newest writes name.

        Args:
            listed: partition paths.
            files: lists a partition.
            replaced: replaced file groups (partition path, file id).

        Raises:
            CorruptTableError: a file is missing.
        """
        for partition, paths, live in self._unlisted(listed, files, replaced):
            for instant, stat in live:
                _check(stat.path, paths, instant)
            if live:
                raise _without_metadata(partition)

    def lost_partitions(
        self,
        listed: Collection[str],
        files: Callable[[str], Iterable[FileStatus]],
        replaced: Iterable[tuple[str, str]],
    ) -> list[str]:
        """Return the partitions that the newest writes name and whose files are all missing.

        Args:
            listed: partition paths.
            files: lists a partition.
            replaced: replaced file groups (partition path, file id).

        Raises:
            CorruptTableError: a partition has files, maybe old versions, but is not listed.
        """
        lost = []
        for partition, paths, live in self._unlisted(listed, files, replaced):
            if any(stat.file_id in path for _, stat in live for path in paths):
                raise _without_metadata(partition)
            if live:
                lost.append(partition)
        return lost

    def named(self, partition: str, paths: set[str]) -> set[str]:
        """Return the ids of the file groups that the newest writes name, maybe including replaced ones.

        Args:
            partition: partition path.
            paths: its files.
        """
        return {stat.file_id for _, stat in self._needed(partition, paths, ())}

    def _unlisted(
        self,
        listed: Collection[str],
        files: Callable[[str], Iterable[FileStatus]],
        replaced: Iterable[tuple[str, str]],
    ) -> Iterator[tuple[str, set[str], list[tuple[Instant, WriteStat]]]]:
        """Yield the unlisted partitions that the newest writes name, their files, and the required files."""
        named = {partition for instant in self._newest for partition in self._stats_by_partition(instant)}
        for partition in sorted(named.difference(listed)):
            paths = {status.path for status in files(partition)}
            superseded = [file_id for place, file_id in replaced if place == partition]
            yield partition, paths, list(self._needed(partition, paths, superseded))

    def _needed(
        self, partition: str, paths: set[str], replaced: Iterable[str]
    ) -> Iterator[tuple[Instant, WriteStat]]:
        """Yield the files of the newest writes that must exist, with their writes.

        Args:
            partition: partition path.
            paths: its files.
            replaced: ids of its file groups that were replaced.
        """
        superseded = set(replaced)
        for instant in self._newest:
            stats = self._stats_of(instant, partition)
            for stat in needed(self._timeline, instant, stats, paths):
                if stat.file_id not in superseded:
                    yield instant, stat
            begins = is_build(instant.requested)
            superseded.update(stat.file_id for stat in stats if begins or is_base_path(stat.path))

    def _stats_of(self, instant: Instant, partition: str) -> list[WriteStat]:
        return self._stats_by_partition(instant).get(partition, [])

    def _stats_by_partition(self, instant: Instant) -> Mapping[str, list[WriteStat]]:
        with self._lock:
            if instant.requested not in self._stats:
                by_partition: dict[str, list[WriteStat]] = defaultdict(list)
                for stat in self._reader.commit_metadata(instant).stats:
                    refuse_external_file(stat.path, instant.requested)
                    by_partition[stat.partition].append(stat)
                self._stats[instant.requested] = by_partition
            return self._stats[instant.requested]


def _base_of(stat: WriteStat) -> str:
    """Return the path of the base file in the statistics of a write; empty for none."""
    if is_base_path(stat.path):
        return stat.path
    return join_path(stat.partition, stat.base_file) if stat.base_file else ""


def _without_metadata(partition: str) -> MissingFileError:
    return MissingFileError(
        "The metadata file of a partition is missing, so readers would skip its rows."
        " Restore it from a backup, or copy that of another partition there.",
        path=join_path(partition, PARTITION_METADATA),
    )


def _check(path: str, paths: set[str], instant: Instant) -> None:
    if path and path not in paths:
        raise MissingFileError(
            f"A data file of a committed write is missing: {REPAIR}.",
            instant=instant.requested,
            path=path,
        )
