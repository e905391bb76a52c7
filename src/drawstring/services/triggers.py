"""When a table service is due after a commit. Pure: the timeline in hand tells, no file is read.

A service that is due by these takes the table lock and decides on what it finds there.
"""

from __future__ import annotations

from typing import Final

from drawstring.config.keys.failed_writes import FailedWritesPolicy
from drawstring.model.clean import CleanPolicy
from drawstring.model.instant import Action
from drawstring.services.compaction.strategies import is_due, is_to_be_planned
from drawstring.timeline.instants import instant_time
from drawstring.write.committed import Committed

_HOUR_MS: Final = 3_600_000


def clean_is_due(written: Committed) -> bool:
    """Tell whether a clean could find anything (`hoodie.clean.automatic`)."""
    cleaning, timeline = written.options.cleaning, written.timeline
    if not cleaning.automatic:
        return False
    if cleaning.policy == CleanPolicy.VERSIONS or timeline.pending_of(Action.CLEAN):
        return True
    if timeline.pending_writes() and written.options.failed_writes.policy == FailedWritesPolicy.LAZY:
        return True  # cleaning rolls back what dead writers left
    writes = timeline.writes()
    if cleaning.policy == CleanPolicy.COMMITS:
        return len(writes) > cleaning.commits_retained
    return bool(writes) and writes[0].requested < _now(written, -cleaning.hours_retained * _HOUR_MS)


def archive_is_due(written: Committed) -> bool:
    """Tell whether the active timeline is longer than it may be (`hoodie.archive.automatic`)."""
    archiving = written.options.archiving
    return archiving.automatic and len(written.timeline.writes()) > archiving.commits_max


def log_compaction_is_due(written: Committed) -> bool:
    """Tell whether slices with many log blocks are looked for (`hoodie.log.compaction.inline`)."""
    return written.config.is_merge_on_read and written.options.compaction.log_inline


def compaction_is_due(written: Committed) -> bool:
    """Tell whether a compaction is to be planned, or pending ones are to be run."""
    requested = written.options.compaction
    if not (requested.inline or requested.background or requested.schedule_inline):
        return False
    if not written.config.is_merge_on_read:
        return False
    if requested.inline and not requested.by_default:
        return True  # pending compactions are run in any case
    # A write of base files only, one of very many perhaps, need not look through the table for log files.
    if requested.by_default and all(stat.log_version is None for stat in written.stats):
        return False
    now = _now(written)
    return is_to_be_planned(written.timeline, requested, now) or (
        requested.inline and is_due(written.timeline, requested, now)
    )


def clustering_is_due(written: Committed) -> bool:
    """Tell whether the commits since the last clustering are counted: the options ask for clustering."""
    requested = written.options.clustering
    return requested.inline or requested.background or requested.schedule_inline


def merge_of_small_files_is_due(written: Committed) -> bool:
    """Tell whether an append looks for small files; a clustering that the options ask for merges them too."""
    return (
        written.merges_files and written.options.appending.merges_appended and not clustering_is_due(written)
    )


def expiry_is_due(written: Committed) -> bool:
    """Tell whether partitions expire after writes (`hoodie.partition.ttl.inline`)."""
    return written.options.ttl.inline


def _now(written: Committed, plus_ms: int = 0) -> str:
    return instant_time(written.state.clock.now_ms() + plus_ms, written.config.timezone)
