"""From the files of a file group to its slices (specification: File Layout Hierarchy). Pure.

    layout 1   a log file's name holds the base instant of its slice:
               base(10)  log(10).1  log(10).2 | base(20)  log(20).1

    layout 2   a log file's name holds the delta commit that wrote it; it belongs to the newest base
               file requested before that delta commit completed:
               base(10)  log(12)  log(15, completed 22) | base(20, requested 20) ...
               log(15) belongs to base(20): the compaction at 20 did not see it

A compaction that is pending makes writers of layout 1 name their log files by it at once; until it
completes these logs go on top of the slice before. So do log files of layout 2 in a table that was
downgraded: no base file has their instant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile
from drawstring.model.table_version import Slicing


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which instants count.

    Attributes:
        completion_of: completion time by requested time, None for an instant that does not count.
        as_of: the latest requested time that counts; None for no bound.
    """

    completion_of: Callable[[str], str | None]
    as_of: str | None = None

    def sees(self, requested: str) -> bool:
        """Tell whether files of an instant count."""
        return self.reaches(requested) and self.completion_of(requested) is not None

    def reaches(self, requested: str) -> bool:
        """Tell whether an instant is not after the bound."""
        return self.as_of is None or requested <= self.as_of


@dataclass(slots=True)
class GroupFiles:
    """The files of one file group as listed."""

    bases: list[BaseFile]
    logs: list[LogFile]


def group_files(statuses: Iterable[FileStatus], *, change_logs: bool = False) -> dict[str, GroupFiles]:
    """Sort data files by file id; what is no data file is left out.

    Args:
        statuses: files as listed.
        change_logs: whether the CDC files are among the log files.
    """
    groups: dict[str, GroupFiles] = defaultdict(lambda: GroupFiles([], []))
    for status in statuses:
        if base := BaseFile.parse(status):
            groups[base.file_id].bases.append(base)
        elif (log := LogFile.parse(status)) and (change_logs or not log.is_cdc):
            groups[log.file_id].logs.append(log)
    return groups


Compactions: TypeAlias = Callable[[], Mapping[tuple[str, str], str]]
"""Gives the file groups, as partition and file id, in a pending compaction, and its requested time."""

Slicer: TypeAlias = Callable[[str, str, GroupFiles, Visibility, Compactions], list[FileSlice]]
"""Makes slices, oldest first, of partition path, file id, files, what counts, and pending compactions."""


def slicer_of(slicing: Slicing) -> Slicer:
    """Return what makes slices of the files of a file group; ask once for all groups."""
    return _SLICERS[slicing]


def slices_by_name(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, pending_compaction: str | None
) -> list[FileSlice]:
    """Return the slices of a file group of layout 1, oldest first.

    Args:
        partition: partition path.
        file_id: the file group.
        files: its files.
        visible: which instants count.
        pending_compaction: requested time of the pending compaction that the group is part of.
    """
    bases = _visible_bases(files, visible)
    logs: dict[str, list[LogFile]] = defaultdict(list)
    for log in files.logs:
        is_planned = log.instant == pending_compaction and visible.reaches(log.instant)
        if is_planned or visible.sees(log.instant):
            logs[log.instant].append(log)
    slices: list[FileSlice] = []
    for instant in sorted({*bases, *logs}):
        piece = FileSlice(partition, file_id, instant, bases.get(instant), _ordered(logs[instant]))
        if piece.base is None and slices:
            before = slices.pop()
            piece = FileSlice(
                partition, file_id, before.base_instant, before.base, _ordered((*before.logs, *piece.logs))
            )
        slices.append(piece)
    return slices


def slices_by_completion(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility
) -> list[FileSlice]:
    """Return the slices of a file group of layout 2, oldest first.

    Args:
        partition: partition path.
        file_id: the file group.
        files: its files.
        visible: which instants count.
    """
    bases = _visible_bases(files, visible)
    logs: dict[str, list[LogFile]] = {instant: [] for instant in bases}
    for log in sorted(files.logs, key=lambda log: log.order):
        if not visible.sees(log.instant):
            continue
        completed = visible.completion_of(log.instant) or log.instant
        slice_instant = max((instant for instant in logs if instant <= completed), default=log.instant)
        logs.setdefault(slice_instant, []).append(log)
    return [
        FileSlice(partition, file_id, instant, bases.get(instant), tuple(logs[instant]))
        for instant in sorted(logs)
    ]


def _by_name(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, compactions: Compactions
) -> list[FileSlice]:
    pending = compactions().get((partition, file_id)) if files.logs else None
    return slices_by_name(partition, file_id, files, visible, pending)


def _by_completion(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, _compactions: Compactions
) -> list[FileSlice]:
    return slices_by_completion(partition, file_id, files, visible)


_SLICERS: Final[Mapping[Slicing, Slicer]] = {
    Slicing.BY_LOG_NAME: _by_name,
    Slicing.BY_COMPLETION: _by_completion,
}


def _visible_bases(files: GroupFiles, visible: Visibility) -> Mapping[str, BaseFile]:
    ordered = sorted(files.bases, key=lambda base: (base.instant, base.write_token))
    return {base.instant: base for base in ordered if visible.sees(base.instant)}


def _ordered(logs: Iterable[LogFile]) -> tuple[LogFile, ...]:
    return tuple(sorted(logs, key=lambda log: log.order))
