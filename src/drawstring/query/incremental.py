"""Incremental queries: the records that the commits of a range wrote.

    range (start, end] ──> completed writes in it ──> the files that they wrote
        ──> slices of these files alone, merged ──> records whose commit time is one of theirs

The range is in completion times (versions 8 and 9) or requested times (version 6). When the commits
reach back before the active timeline, or files that they wrote were cleaned away, the records come
from the whole table, by their commit times: later changes hide earlier ones then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial

import pyarrow.compute as pc

from drawstring.base.errors import UnsupportedError
from drawstring.filegroups.listing import FixedListing
from drawstring.filegroups.tasks import InstantRange, ReadTask
from drawstring.filegroups.view import FileGroupView
from drawstring.model.files import FileStatus
from drawstring.model.instant import Instant
from drawstring.query.facts import TableFacts
from drawstring.query.predicate import Where
from drawstring.query.pruning import partitions_to_read
from drawstring.query.scan import Scan
from drawstring.query.snapshot import Query, query_of, snapshot_tasks, task_of
from drawstring.schema.meta import COMMIT_TIME
from drawstring.timeline.instants import EARLIEST, as_instant_time

Time = str | datetime | date


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of times, start exclusive, end inclusive, and the completed writes in it."""

    start: str
    end: str | None
    writes: tuple[Instant, ...]

    @property
    def commit_times(self) -> tuple[str, ...]:
        """Requested times of the writes."""
        return tuple(instant.requested for instant in self.writes)


def incremental_scan(
    facts: TableFacts,
    *,
    start: Time,
    end: Time | None = None,
    columns: Sequence[str] | None = None,
    where: Where = None,
    threads: int | None = None,
) -> Scan:
    """Query what changed in a range of commits.

    Args:
        facts: the table.
        start: the range begins after this time; `earliest` for all commits.
        end: the range ends with this time; None for no end.
        columns: columns in the order wanted; None for all, meta columns included.
        where: SQL text or an Arrow expression; None for all rows.
        threads: tasks that run at once; None for as many as the machine is good for.

    Returns:
        A lazy scan: the records written in the range, each as the last commit of the range left it;
        deleted records are not in it.

    Raises:
        InvalidError: an unknown column, a bad condition, or a time that cannot be read.
        UnsupportedError: the table keeps no commit times, or the range needs the archived timeline.
    """
    if not facts.config.populate_meta_fields:
        raise UnsupportedError("the table has no meta columns, hence no commit times to query incrementally")
    asked = _range(facts, start, end)
    latest = max(asked.commit_times, default=None)
    is_written = bool(facts.timeline.pending_writes())
    instants = InstantRange(frozenset(asked.commit_times), None, latest, is_written)
    query = query_of(facts, columns, where, instants)
    return Scan(query.output, partial(_tasks, query, asked), threads, facts.storage.spec.uri)


def _range(facts: TableFacts, start: Time, end: Time | None) -> _Range:
    zone = facts.config.timezone
    begin = as_instant_time(start, zone)
    stop = None if end is None else as_instant_time(end, zone)
    writes = [
        instant
        for instant in facts.timeline.writes()
        if begin < _time_of(instant) and (stop is None or _time_of(instant) <= stop)
    ]
    return _Range(begin, stop, tuple(writes))


def _time_of(instant: Instant) -> str:
    """Return the time that ranges are in: completion time, requested time in version 6."""
    return instant.completed or instant.requested


def _tasks(query: Query, asked: _Range) -> list[ReadTask]:
    if _reaches_archive(query.facts, asked):
        return _tasks_with_archived(query, asked)
    if not asked.writes:
        return []
    files = _files_written(query.facts, asked)
    if files is None:
        return _with_commit_times(_whole_table(query), asked.commit_times)
    facts = query.facts
    view = FileGroupView(facts.timeline, facts.config, FixedListing(files), facts.store)
    partitions = partitions_to_read(view.partitions(), facts.config, query.schema, query.where)
    found = [
        task_of(query, partition, file_slice)
        for partition in partitions
        for file_slice in view.slices(partition.path, query.instants.as_of)
    ]
    return _with_commit_times(found, asked.commit_times)


def _files_written(facts: TableFacts, asked: _Range) -> list[FileStatus] | None:
    """Return the data files that the writes of a range made; None when one of them is gone."""
    found: dict[str, FileStatus] = {}
    for instant in asked.writes:
        for stat in facts.store.commit_metadata(instant).stats:
            listed = {status.path: status for status in facts.view.listing.files(stat.partition)}
            if stat.path not in listed:
                return None
            found[stat.path] = listed[stat.path]
    return list(found.values())


def _with_commit_times(tasks: list[ReadTask], commit_times: tuple[str, ...]) -> list[ReadTask]:
    return [replace(task, commit_times=commit_times) for task in tasks]


def _whole_table(query: Query) -> list[ReadTask]:
    return snapshot_tasks(replace(query, instants=InstantRange.of(query.facts.timeline)))


def _reaches_archive(facts: TableFacts, asked: _Range) -> bool:
    """Tell whether the range begins before the active timeline and something was archived."""
    first = facts.timeline.start
    if first is not None and asked.start >= first:
        return False
    return any(
        status.name.endswith(".parquet") or ".archive." in status.name
        for status in facts.storage.list_files(facts.config.history_folder)
    )


def _tasks_with_archived(query: Query, asked: _Range) -> list[ReadTask]:
    """Read the whole table for the records of archived commits and of those in the range."""
    facts = query.facts
    first = facts.timeline.start
    by_completion = facts.config.layout > 1
    is_cut = asked.start != EARLIEST or (first is not None and asked.end is not None and asked.end < first)
    if first is None or (by_completion and is_cut):
        raise UnsupportedError(
            "the range reaches into the archived timeline, which is not read yet: start at"
            f" {'earliest' if first is None else first} or later, or take a snapshot"
        )
    time = pc.field(COMMIT_TIME)
    archived = (time < first) & (time > asked.start)
    if asked.end is not None and not by_completion:
        archived = archived & (time <= asked.end)
    condition = archived | time.isin(list(asked.commit_times))
    where = condition if query.where is None else query.where & condition
    return _whole_table(replace(query, where=where))
