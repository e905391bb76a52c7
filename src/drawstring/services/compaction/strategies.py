"""Compaction strategies and triggers, by Hudi's rules (pure functions).

    partitions ── partitions_to_plan ──> slices with log files ── choose ──> the plan's operations

Strategies are applied one after another, each to the result of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, TypeAlias

from drawstring.base.errors import InvalidError
from drawstring.config.keys.compaction import CompactionSettings, Strategy, Trigger
from drawstring.model.instant import Action
from drawstring.model.plans import CompactionOperation
from drawstring.timeline.instants import seconds_between
from drawstring.timeline.timeline import Timeline

Operations: TypeAlias = Sequence[CompactionOperation]

_DAY: Final = re.compile(r"(\d{1,4})/(\d{1,2})/(\d{1,2})")
_HIVE_NAMES: Final = re.compile(r"(^|/)[^/=]*=")


def partitions_to_plan(partitions: Sequence[str], settings: CompactionSettings, today: date) -> list[str]:
    """Return the partitions whose file groups a plan may include, before any of them is listed.

    Args:
        partitions: all partition paths.
        settings: the strategies.
        today: the current day in the table's time zone.

    Raises:
        InvalidError: the strategy is day-based, and a partition path is not a day.
    """
    selected = list(partitions)
    for strategy in settings.strategies:
        if strategy is Strategy.PARTITION_REGEX:
            selected = [partition for partition in selected if re.search(settings.partition_regex, partition)]
        elif strategy is Strategy.DAY_BASED:
            selected = sorted(selected, key=_day, reverse=True)[: settings.partitions]
        elif strategy is Strategy.BOUNDED_PARTITIONS:
            selected = [partition for partition in selected if _is_recent(partition, settings, today)]
        elif strategy is Strategy.UNBOUNDED_PARTITIONS:
            selected = [partition for partition in selected if not _is_recent(partition, settings, today)]
    return selected


def choose(operations: Iterable[CompactionOperation], settings: CompactionSettings) -> Operations:
    """Return the operations that the strategies choose, in the order in which they run.

    Args:
        operations: one for each file slice with log files in the partitions to plan.
        settings: the strategies and their limits.
    """
    chosen: Operations = tuple(operations)
    for strategy in settings.strategies:
        chosen = _CHOOSERS.get(strategy, _all_of)(chosen, settings)
    return tuple(chosen)


def is_due(timeline: Timeline, settings: CompactionSettings, now: str) -> bool:
    """Return whether a compaction is due by its triggers.

    Args:
        timeline: of the table.
        settings: the triggers.
        now: the instant time at which it would be requested.
    """
    delta_commits = deltas_since_compaction(timeline)
    if not delta_commits:
        return False
    is_enough = len(delta_commits) >= settings.commits
    if settings.trigger is Trigger.COMMITS:
        return is_enough
    if settings.trigger is Trigger.COMMITS_SINCE_REQUEST:
        return len(deltas_since_compaction(timeline, requested=True)) >= settings.commits
    last = _last_compaction(timeline, requested=False)
    is_late = seconds_between(last or delta_commits[0], now) >= settings.seconds
    if settings.trigger is Trigger.SECONDS:
        return is_late
    return is_enough and is_late if settings.trigger is Trigger.COMMITS_AND_SECONDS else is_enough or is_late


def is_to_be_planned(timeline: Timeline, settings: CompactionSettings, now: str) -> bool:
    """Return whether a compaction is due and not planned yet.

    With default options a pending compaction counts as the last one: otherwise every write next to it would
    plan another one. With explicit options Hudi's triggers apply unchanged.

    Args:
        timeline: of the table.
        settings: the triggers.
        now: the instant time at which it would be requested.
    """
    if not is_due(timeline, settings, now):
        return False
    if not (settings.by_default and settings.trigger is Trigger.COMMITS):
        return True
    return len(deltas_since_compaction(timeline, requested=True)) >= settings.commits


def deltas_since_compaction(timeline: Timeline, *, requested: bool = False) -> list[str]:
    """Return the requested times of the delta commits after the last compaction.

    Args:
        timeline: of the table.
        requested: whether a pending compaction counts as the last one.
    """
    last = _last_compaction(timeline, requested=requested)
    return [
        instant.requested
        for instant in timeline.writes()
        if instant.action is Action.DELTA_COMMIT and (last is None or instant.requested > last)
    ]


def _last_compaction(timeline: Timeline, *, requested: bool) -> str | None:
    pending = timeline.pending_of(Action.COMPACTION) if requested else ()
    done = (instant for instant in timeline.writes() if instant.action is Action.COMMIT)
    return max((instant.requested for instant in (*done, *pending)), default=None)


def _by_log_size(operations: Operations, settings: CompactionSettings) -> Operations:
    large = (each for each in operations if _log_bytes(each) >= settings.log_bytes_min)
    return _bounded(sorted(large, key=_log_bytes, reverse=True), settings)


def _by_log_number(operations: Operations, settings: CompactionSettings) -> Operations:
    many = (each for each in operations if len(each.log_files) >= settings.log_files_min)
    return _bounded(sorted(many, key=lambda each: len(each.log_files), reverse=True), settings)


def _bounded(operations: Operations, settings: CompactionSettings) -> Operations:
    """Take operations until their I/O reaches the limit; the last one may exceed it."""
    remaining_mib = settings.target_io_mib
    chosen = []
    for operation in operations:
        if remaining_mib <= 0:
            break
        remaining_mib -= int(operation.metrics["TOTAL_IO_MB"])
        chosen.append(operation)
    return chosen


def _newest_day_first(operations: Operations, _: CompactionSettings) -> Operations:
    return sorted(operations, key=lambda each: _day(each.partition), reverse=True)


def _all_of(operations: Operations, _: CompactionSettings) -> Operations:
    return operations


_CHOOSERS: Final[Mapping[Strategy, Callable[[Operations, CompactionSettings], Operations]]] = {
    Strategy.LOG_FILE_SIZE: _by_log_size,
    Strategy.LOG_FILE_NUMBER: _by_log_number,
    Strategy.BOUNDED_IO: _bounded,
    Strategy.DAY_BASED: _newest_day_first,
    Strategy.BOUNDED_PARTITIONS: _newest_day_first,
}


def _log_bytes(operation: CompactionOperation) -> float:
    return operation.metrics["TOTAL_LOG_FILES_SIZE"]


def _is_recent(partition: str, settings: CompactionSettings, today: date) -> bool:
    return _day(partition) >= today - timedelta(days=settings.partitions)


def _day(partition: str) -> date:
    """Return the day of a partition path such as `2024/01/31` or `year=2024/month=01/day=31`."""
    match = _DAY.match(_HIVE_NAMES.sub(r"\1", partition))
    try:
        if match:
            return date(*map(int, match.groups()))
    except ValueError:
        pass
    raise InvalidError(
        f"The partition {partition!r} is not a day of the form yyyy/MM/dd, which this"
        " hoodie.compaction.strategy requires. Choose another strategy."
    )
