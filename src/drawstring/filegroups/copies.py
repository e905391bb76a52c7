"""Log files that a write put into buckets which a resizing is going to make: copies of what the old ones got.

    .<new file id>_<resizing>.log.<version>_<token>     in all layouts, with blocks of the write

They are named by the resizing, so they count once it completed. If it is given up they go with it, though
the commit still names them. Log files of layout 1 are named by a base file's instant; a copy has no base file
under it yet, which its statistics tell.
"""

from __future__ import annotations

from drawstring.model.commit import WriteStat
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import Instant
from drawstring.timeline.timeline import Timeline


def named_otherwise(path: str, requested: str) -> LogFile | None:
    """Return the log file of a path if it bears the time of another instant than the write's."""
    log = LogFile.parse(FileStatus(path, 0))
    return log if log is not None and log.instant != requested else None


def may_be_gone(timeline: Timeline, instant: Instant, stat: WriteStat) -> bool:
    """Tell whether readers can do without a file of a write: a copy, and its resizing did not complete.

    Args:
        timeline: of the table.
        instant: the write.
        stat: the file.
    """
    log = named_otherwise(stat.path, instant.requested)
    return log is not None and not stat.base_file and timeline.write_at(log.instant) is None


def is_given_up(timeline: Timeline, instant: Instant, stat: WriteStat) -> bool:
    """Tell whether a file that a write made is a copy whose resizing is neither done nor to be done."""
    log = named_otherwise(stat.path, instant.requested)
    return may_be_gone(timeline, instant, stat) and log is not None and timeline.find(log.instant) is None
