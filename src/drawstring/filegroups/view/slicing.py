"""From the files of a file group to its slices (specification: File Layout Hierarchy). Pure.

    layout 1   a log file's name holds the base instant of its slice:
               base(10)  log(10).1  log(10).2 | base(20)  log(20).1

    layout 2   a log file's name holds the delta commit that wrote it; it belongs to the newest base
               file requested before that delta commit completed:
               base(10)  log(12)  log(15, completed 22) | base(20, requested 20) ...
               log(15) belongs to base(20): the compaction at 20 did not see it

While a compaction is pending, writers of layout 1 already name their log files by its instant; until it
completes, these log files belong to the previous slice. So do log files of layout 2 in a table that was
downgraded, because no base file has their instant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile
from drawstring.model.table_version import LogFileAssignment


@dataclass(frozen=True, slots=True)
class Visibility:
    """The instants whose files are visible.

    Attributes:
        completion_of: returns the completion time for a requested time; None for an invisible instant.
        as_of: the latest visible requested time; None for no bound.
        archived_completion_of: see `ArchivedCompletionTimes.of`; None to take the requested time.
    """

    completion_of: Callable[[str], str | None]
    as_of: str | None = None
    archived_completion_of: Callable[[str, str], str] | None = None

    def sees(self, requested: str) -> bool:
        """Return whether the files of an instant are visible."""
        return self.reaches(requested) and self.completion_of(requested) is not None

    def reaches(self, requested: str) -> bool:
        """Return whether an instant is not after `as_of`."""
        return self.as_of is None or requested <= self.as_of


@dataclass(slots=True)
class GroupFiles:
    """The files of one file group as listed."""

    bases: list[BaseFile]
    logs: list[LogFile]


def group_files(statuses: Iterable[FileStatus], *, change_logs: bool = False) -> dict[str, GroupFiles]:
    """Group data files by file id; skip other files.

    Args:
        statuses: listed files.
        change_logs: whether to include CDC files among the log files.
    """
    groups: dict[str, GroupFiles] = defaultdict(lambda: GroupFiles([], []))
    for status in statuses:
        if base := BaseFile.parse(status):
            groups[base.file_id].bases.append(base)
        elif (log := LogFile.parse(status)) and (change_logs or not log.is_cdc):
            groups[log.file_id].logs.append(log)
    return groups


Compactions: TypeAlias = Callable[[], Mapping[tuple[str, str], str]]
"""Returns the requested time of the pending compaction by file group (partition path, file id)."""

Slicer: TypeAlias = Callable[[str, str, GroupFiles, Visibility, Compactions], list[FileSlice]]
"""Builds slices, oldest first, from partition path, file id, files, visibility and pending compactions."""


def slicer_of(assignment: LogFileAssignment) -> Slicer:
    """Return the function that builds the slices of a file group; it serves all groups of a table."""
    return _SLICERS[assignment]


def goes_by_completion(assignment: LogFileAssignment) -> bool:
    """Return whether log files belong to slices by the completion of their writes."""
    return _SLICERS[assignment] is _by_completion


def slices_by_name(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, pending_compaction: str | None
) -> list[FileSlice]:
    """Return the slices of a file group of layout 1, oldest first.

    Args:
        partition: partition path.
        file_id: the file group.
        files: its files.
        visible: the visible instants.
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
        visible: the visible instants.
    """
    bases = _visible_bases(files, visible)
    logs: dict[str, list[LogFile]] = {instant: [] for instant in bases}
    for log in sorted(files.logs, key=lambda log: log.order):
        if not visible.sees(log.instant):
            continue
        completed = _completion_of(log, bases, visible)
        slice_instant = max((instant for instant in logs if instant <= completed), default=log.instant)
        logs.setdefault(slice_instant, []).append(log)
    return [
        FileSlice(partition, file_id, instant, bases.get(instant), tuple(logs[instant]))
        for instant in sorted(logs)
    ]


def _completion_of(log: LogFile, bases: Iterable[str], visible: Visibility) -> str:
    """Return when the write of a log file completed; `bases` are the requested times of base files."""
    completed = visible.completion_of(log.instant) or log.instant
    if completed != log.instant or visible.archived_completion_of is None:
        return completed
    later = min((instant for instant in bases if instant > log.instant), default=None)
    return completed if later is None else visible.archived_completion_of(log.instant, later)


def _by_name(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, compactions: Compactions
) -> list[FileSlice]:
    pending = compactions().get((partition, file_id)) if files.logs else None
    return slices_by_name(partition, file_id, files, visible, pending)


def _by_completion(
    partition: str, file_id: str, files: GroupFiles, visible: Visibility, _compactions: Compactions
) -> list[FileSlice]:
    return slices_by_completion(partition, file_id, files, visible)


_SLICERS: Final[Mapping[LogFileAssignment, Slicer]] = {
    LogFileAssignment.BY_LOG_NAME: _by_name,
    LogFileAssignment.BY_COMPLETION: _by_completion,
}


def _visible_bases(files: GroupFiles, visible: Visibility) -> Mapping[str, BaseFile]:
    bases = files.bases  # most file groups have one
    ordered = bases if len(bases) < 2 else sorted(bases, key=lambda base: (base.instant, base.write_token))
    return {base.instant: base for base in ordered if visible.sees(base.instant)}


def _ordered(logs: Iterable[LogFile]) -> tuple[LogFile, ...]:
    return tuple(sorted(logs, key=lambda log: log.order))
