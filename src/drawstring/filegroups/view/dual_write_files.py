"""Log files that a write put into buckets which a resizing is going to make: copies of what the old ones got.

    .<new file id>_<resizing>.log.<version>_<token>     in all layouts, with blocks of the write

They are named by the resizing, so they count once it completed. If it is given up they go with it, though
the commit still names them. Log files of layout 1 bear the time of a slice, too; there the statistics have it
as the commit before, while those of a copy have the write itself.

Once a resizing is archived nobody knows any more which old buckets it replaced. They were cleaned away
before, and a write that came after it may still be on the timeline and name its files there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from drawstring.model.commit import WriteStat
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import Instant
from drawstring.timeline.timeline import Timeline


def named_otherwise(path: str, requested: str) -> LogFile | None:
    """Return the log file of a path if it bears the time of another instant than the write's."""
    log = LogFile.parse(FileStatus(path, 0))
    return log if log is not None and log.instant != requested else None


def resizing_of(instant: Instant, stat: WriteStat) -> str | None:
    """Return the time of the resizing that a file of a write is a copy for; None for other files."""
    if stat.prev_commit != instant.requested:  # told without parsing a name, of nearly all files
        return None
    log = named_otherwise(stat.path, instant.requested)
    return log.instant if log is not None else None


def may_be_gone(timeline: Timeline, instant: Instant, stat: WriteStat) -> bool:
    """Tell whether readers can do without a file of a write: a copy, its resizing not known to be done."""
    resizing = resizing_of(instant, stat)
    return resizing is not None and timeline.write_at(resizing) is None


def needed(
    timeline: Timeline, instant: Instant, stats: Collection[WriteStat], paths: Collection[str]
) -> Iterator[WriteStat]:
    """Yield the files of a write that have to be there, unless another write put something in their place.

    Args:
        timeline: of the table.
        instant: the write.
        stats: its files.
        paths: what is listed.
    """
    resizings = {resizing for stat in stats if (resizing := resizing_of(instant, stat))}
    was_resized = any(timeline.is_archived(each) for each in resizings)
    for stat in stats:
        is_needed = bool(stat.path) and not may_be_gone(timeline, instant, stat)
        if is_needed and not (was_resized and _is_without_files(stat, paths)):
            yield stat


def _is_without_files(stat: WriteStat, paths: Collection[str]) -> bool:
    """Tell whether nothing is left of a file group."""
    return stat.path not in paths and not any(stat.file_id in path for path in paths)
