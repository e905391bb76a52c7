"""Plans of compactions and log compactions, from the file slices of a locked table.

    slices with logs, in no other plan ──┬── compaction      a base file each, as the strategies choose
                                         ├── log compaction  a log file each, where there are many blocks
                                         └── hybrid          one or the other, for each file group

A hybrid plan is a compaction on the timeline. Hudi does not know its mark and makes base files of everything,
which is correct as well; in version 6 Hudi's readers would look for base files that never appear, so hybrid
plans are refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from drawstring.base.errors import UnsupportedError
from drawstring.config.keys.compaction import CompactionSettings
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.filegroups.write.log_compaction import LogBlockStats, check_rewritable, log_block_stats
from drawstring.model.files import FileSlice
from drawstring.model.plans import CompactionOperation, CompactionPlan
from drawstring.services.compaction.strategies import choose, partitions_to_plan
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.instants import day_of
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable

_MEBIBYTE = 1 << 20

ReadLogBlockStats = Callable[[Sequence[FileSlice]], list[LogBlockStats]]
"""Reads the numbers of log blocks and writes of file slices."""


def plan_compaction(slices: Iterable[FileSlice]) -> CompactionPlan:
    """Return one operation for each file slice with log files."""
    return CompactionPlan(
        tuple(
            CompactionOperation(
                partition=s.partition,
                file_id=s.file_id,
                base_instant=s.base_instant,
                base_file=s.base.status.name if s.base else None,
                log_files=tuple(log.status.name for log in s.logs),
                source=s.base.source if s.base else None,
                metrics=slice_metrics(s),
            )
            for s in slices
            if s.logs
        )
    )


def plan_log_compaction(
    slices: Iterable[FileSlice], settings: CompactionSettings, read_stats: ReadLogBlockStats
) -> CompactionPlan:
    """Return one operation for each file slice with enough log blocks."""
    candidates = [each for each in slices if each.logs]
    due = [
        candidate
        for candidate, stats in zip(candidates, read_stats(candidates), strict=True)
        if stats.blocks >= settings.log_blocks and stats.writes > 1 and not stats.is_partial
    ]
    operations = plan_compaction(due).operations
    return CompactionPlan(tuple(replace(each, logs_only=True) for each in operations))


def plan_hybrid_compaction(
    slices: Iterable[FileSlice], settings: CompactionSettings, read_stats: ReadLogBlockStats
) -> CompactionPlan:
    """Return a plan that gives each file slice a base file, a log file, or nothing, depending on its logs."""
    candidates = [each for each in slices if each.logs]
    full = [each for each in candidates if _needs_full_compaction(each, settings)]
    others = [each for each in candidates if not _needs_full_compaction(each, settings)]
    chosen = choose(plan_compaction(full).operations, settings)
    return CompactionPlan((*chosen, *plan_log_compaction(others, settings, read_stats).operations))


def compaction_plan(
    locked: LockedTable, timeline: Timeline, time: str, settings: CompactionSettings
) -> CompactionPlan:
    """Plan a compaction of a locked table.

    Args:
        locked: the locked table.
        timeline: of the table.
        time: the requested time that the compaction will have.
        settings: strategies and thresholds.

    Raises:
        InvalidError: a strategy does not fit the table's partitions.
        UnsupportedError: the table cannot have hybrid compactions.
    """
    check_compaction(locked.config, settings)
    slices = _free_slices(locked, timeline, settings, time)
    if settings.hybrid:
        return plan_hybrid_compaction(slices, settings, _log_block_stats(locked, timeline))
    return CompactionPlan(tuple(choose(plan_compaction(slices).operations, settings)))


def log_compaction_plan(
    locked: LockedTable, timeline: Timeline, time: str, settings: CompactionSettings
) -> CompactionPlan:
    """Plan a log compaction of a locked table; see `compaction_plan`.

    Raises:
        UnsupportedError: the table's merge mode has no log compaction.
    """
    check_rewritable(locked.config)
    slices = _free_slices(locked, timeline, settings, time)
    return plan_log_compaction(slices, settings, _log_block_stats(locked, timeline))


def _free_slices(
    locked: LockedTable, timeline: Timeline, settings: CompactionSettings, time: str
) -> list[FileSlice]:
    """Return the latest file slices that are in no pending plan."""
    lookup = locked.context.lookup(locked.config, timeline)
    taken = lookup.view().in_services()
    partitions = partitions_to_plan(lookup.partitions(), settings, day_of(time))
    return [s for each in partitions for s in lookup.slices(each) if (s.partition, s.file_id) not in taken]


def _needs_full_compaction(file_slice: FileSlice, settings: CompactionSettings) -> bool:
    if file_slice.base is None or len(file_slice.logs) >= settings.full_log_files:
        return True
    logs = sum(log.status.size_bytes for log in file_slice.logs)
    return logs >= settings.full_log_ratio * file_slice.base.status.size_bytes


def check_compaction(config: TableConfig, settings: CompactionSettings) -> None:
    """Refuse compaction settings that the table does not support.

    Raises:
        UnsupportedError: the table cannot have hybrid compactions.
    """
    if not settings.hybrid:
        return
    if not config.rules.has_log_only_plans:
        raise UnsupportedError(
            "Hybrid compaction (drawstring.compaction.hybrid) needs table version 8 or later: in version 6"
            " readers would miss the log files of such a plan. Leave the option out."
        )
    check_rewritable(config)


def _log_block_stats(locked: LockedTable, timeline: Timeline) -> ReadLogBlockStats:
    engine: Engine = locked.context.engine
    task = _ReadLogBlockStats(locked.context.storage.spec, locked.config, InstantRange.of(timeline))
    return lambda slices: engine.map(task, slices)


@dataclass(frozen=True, slots=True)
class _ReadLogBlockStats:
    """A task that reads the stats of the log blocks of a file slice."""

    storage: StorageSpec
    config: TableConfig
    instants: InstantRange

    def __call__(self, file_slice: FileSlice) -> LogBlockStats:
        return log_block_stats(open_spec(self.storage), self.config, file_slice, self.instants)


def slice_metrics(file_slice: FileSlice) -> dict[str, float]:
    """Return the sizes of an operation under Hudi's metric names."""
    logs = sum(log.status.size_bytes for log in file_slice.logs)
    base = file_slice.base.status.size_bytes if file_slice.base else 0
    read = round((logs + base) / _MEBIBYTE, 3)
    written = round((base or logs) / _MEBIBYTE, 3)
    return {
        "TOTAL_LOG_FILES": float(len(file_slice.logs)),
        "TOTAL_LOG_FILES_SIZE": float(logs),
        "TOTAL_IO_READ_MB": read,
        "TOTAL_IO_WRITE_MB": written,
        "TOTAL_IO_MB": round(read + written, 3),
    }
