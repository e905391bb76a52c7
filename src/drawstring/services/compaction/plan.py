"""Plans of compactions and log compactions, from the file slices of a locked table.

    slices with logs, in no other plan ──┬── compaction      a base file each, as the strategies choose
                                         ├── log compaction  a log file each, where there are many blocks
                                         └── hybrid          one, the other or none for each group (`tiers`)

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
from drawstring.filegroups.write.log_compaction import LogRun, check_rewritable, log_runs
from drawstring.model.files import FileSlice
from drawstring.model.plans import CompactionOperation, CompactionPlan, slice_metrics
from drawstring.services.compaction.strategies import choose, partitions_to_plan
from drawstring.services.compaction.tiers import runs_to_merge
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.instants import day_of
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable

ReadLogRuns = Callable[[Sequence[FileSlice]], list[list[LogRun]]]
"""Reads what the log files of file slices hold, see `log_runs`."""


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
    slices: Iterable[FileSlice], settings: CompactionSettings, read_runs: ReadLogRuns
) -> CompactionPlan:
    """Return one operation for each file slice with enough log blocks."""
    candidates = [each for each in slices if each.logs]
    due = [
        candidate
        for candidate, runs in zip(candidates, read_runs(candidates), strict=True)
        if sum(run.blocks for run in runs) >= settings.log_blocks
        and len(runs) > 1
        and not any(run.is_partial for run in runs)
    ]
    return CompactionPlan(tuple(map(_of_logs, due)))


def plan_hybrid_compaction(
    slices: Iterable[FileSlice], settings: CompactionSettings, read_runs: ReadLogRuns
) -> CompactionPlan:
    """Return a plan that gives each file slice a base file, a log file, or nothing, depending on its logs.

    | bounded | a file slice gets |
    |---|---|
    | what a reader merges | one log file of its newest runs, from a number of runs on (`runs_to_merge`) |
    | what compactions write | a base file only once its runs are a good part of the size of the base file |
    | space | a base file once all its log files are larger than the base file, or very many |
    """
    candidates = [each for each in slices if each.logs]
    full, others = [], []
    for each in candidates:
        if _has_too_many_files(each, settings):
            full.append(each)
        elif _may_be_due(each, settings):
            others.append(each)
    logs_only: list[CompactionOperation] = []
    for file_slice, runs in zip(others, read_runs(others), strict=True):
        count = runs_to_merge([run.size_bytes for run in runs], settings.log_blocks)
        newest = runs[len(runs) - count :]
        if _is_large(file_slice, sum(run.size_bytes for run in runs), settings.full_log_ratio) or any(
            run.is_partial for run in newest
        ):
            full.append(file_slice)
        elif newest:
            logs_only.append(_of_logs(_of_runs(file_slice, newest) if count < len(runs) else file_slice))
    return CompactionPlan((*choose(plan_compaction(full).operations, settings), *logs_only))


def _of_runs(file_slice: FileSlice, runs: Sequence[LogRun]) -> FileSlice:
    names = {name for run in runs for name in run.files}
    return replace(file_slice, logs=tuple(log for log in file_slice.logs if log.status.name in names))


def _of_logs(file_slice: FileSlice) -> CompactionOperation:
    (operation,) = plan_compaction([file_slice]).operations
    return replace(operation, logs_only=True)


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
        return plan_hybrid_compaction(slices, settings, _read_log_runs(locked, timeline))
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
    return plan_log_compaction(slices, settings, _read_log_runs(locked, timeline))


def _free_slices(
    locked: LockedTable, timeline: Timeline, settings: CompactionSettings, time: str
) -> list[FileSlice]:
    """Return the latest file slices that are in no pending plan."""
    lookup = locked.context.lookup(locked.config, timeline)
    taken = lookup.view().in_services()
    partitions = partitions_to_plan(lookup.partitions(), settings, day_of(time))
    return [s for each in partitions for s in lookup.slices(each) if (s.partition, s.file_id) not in taken]


def _has_too_many_files(file_slice: FileSlice, settings: CompactionSettings) -> bool:
    if file_slice.base is None or len(file_slice.logs) >= settings.full_log_files:
        return True
    return _is_large(file_slice, _log_bytes(file_slice), settings.full_space_ratio)


def _may_be_due(file_slice: FileSlice, settings: CompactionSettings) -> bool:
    """Return whether a file slice may need anything, from the names and sizes of its files."""
    is_large = _is_large(file_slice, _log_bytes(file_slice), settings.full_log_ratio)
    return is_large or len({log.instant for log in file_slice.logs}) >= settings.log_blocks


def _is_large(file_slice: FileSlice, log_bytes: int, ratio: float) -> bool:
    return file_slice.base is None or log_bytes >= ratio * file_slice.base.status.size_bytes


def _log_bytes(file_slice: FileSlice) -> int:
    return sum(log.status.size_bytes for log in file_slice.logs)


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


def _read_log_runs(locked: LockedTable, timeline: Timeline) -> ReadLogRuns:
    engine: Engine = locked.context.engine
    task = _LogRuns(locked.context.storage.spec, locked.config, InstantRange.of(timeline))
    return lambda slices: engine.map(task, slices)


@dataclass(frozen=True, slots=True)
class _LogRuns:
    """A task that reads the runs of a file slice."""

    storage: StorageSpec
    config: TableConfig
    instants: InstantRange

    def __call__(self, file_slice: FileSlice) -> list[LogRun]:
        return log_runs(open_spec(self.storage), self.config, file_slice, self.instants)
