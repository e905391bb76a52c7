"""Batches that follow a table: the changes of commits after a position that the caller stores.

    position ── the next commits, up to the limits ──> batch, new position ── the next ...

A position (`positions`) identifies the commits that were returned. In version 6 it holds requested times, so
a pending write delays all later writes; otherwise it would be skipped. A batch is one range of commits: a
caller that stores its position together with the result of the batch processes each commit exactly once.

When commits after a position were archived, or their files cleaned away, their changes cannot be returned.
`OnCleaned` selects what happens then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.expressions.predicate import Where
from drawstring.filegroups.read.cdc import CHANGE_SCHEMA, ChangeTask
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.model.instant import Action, time_of
from drawstring.query.cleaned_files import is_needed
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.batch_ends import Limits, LostFileGroups, ends, loss_of, only
from drawstring.query.incremental.cdc_query import changes_draft
from drawstring.query.incremental.commit_ranges import CommitRange, archived_writes
from drawstring.query.incremental.incremental_query import range_draft, range_query
from drawstring.query.incremental.positions import Position, commits_between, position_of
from drawstring.query.policies import OnCleaned
from drawstring.query.replanning import Draft, Task, retry_on_change
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.snapshot import Query, query_of, same_columns, snapshot_tasks
from drawstring.schema.meta import COMMIT_TIME
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import EARLIEST


@dataclass(frozen=True, slots=True)
class FollowSpec:
    """Contents of the batches.

    Attributes:
        columns: columns of the rows, in order; None for all, including meta columns.
        where: SQL text or an Arrow expression; None for all rows.
        changes: return every change with before and after images, rather than the latest rows.
        limits: upper bounds of a batch.
        on_cleaned: what happens when commits were archived or cleaned away.
    """

    columns: Sequence[str] | None = None
    where: Where = None
    changes: bool = False
    limits: Limits = field(default_factory=Limits)
    on_cleaned: OnCleaned = OnCleaned.FAIL


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of some commits.

    Attributes:
        rows: lazy scan of the rows; its files are planned already.
        position: position after the batch, as text; store it and pass it as `start` to continue.
    """

    rows: Scan
    position: str


def follow(
    load: Callable[[], TableFacts],
    clock: Clock,
    spec: FollowSpec,
    start: Any = None,
    poll_seconds: float | None = None,
) -> Iterator[Batch]:
    """Return an iterator of batches.

    Args:
        load: loads the table.
        clock: sleeps between polls.
        spec: contents of the batches.
        start: see `position_of`.
        poll_seconds: seconds between polls when there are no new commits; None to end then.

    Raises:
        InvalidError: an argument is invalid; during iteration: commits after the position were archived or
            cleaned away.
    """
    facts = load()
    _check(facts, spec, poll_seconds)
    return _batches(load, clock, spec, position_of(facts, start), poll_seconds)


def _check(facts: TableFacts, spec: FollowSpec, poll_seconds: Any) -> None:
    """Check the arguments before the first batch."""
    query_of(facts, spec.columns, spec.where, InstantRange.of(facts.timeline))
    limits: dict[str, Any] = {"max_commits": spec.limits.commits, "max_bytes": spec.limits.bytes}
    for name, limit in limits.items():
        if limit is not None and not (isinstance(limit, int) and limit >= 1):
            raise InvalidError(f"{name} is {limit!r}. Pass an integer from 1, or None for no bound.")
    if poll_seconds is not None and not (isinstance(poll_seconds, int | float) and poll_seconds >= 0):
        raise InvalidError(
            f"poll_seconds is {poll_seconds!r}. Pass a number from 0, or None to end when there are no new"
            " commits."
        )


def _batches(
    load: Callable[[], TableFacts],
    clock: Clock,
    spec: FollowSpec,
    position: Position,
    poll_seconds: float | None,
) -> Iterator[Batch]:
    before: TableFacts | None = None
    while True:
        facts = load()
        if before is not None:
            facts.store.recall(before.store)
        before = facts
        end, scan = next_batch(facts, position, spec)
        if scan is not None:
            yield Batch(scan, end.text())
            position = end
        elif poll_seconds is None:
            return
        else:
            clock.sleep(poll_seconds)


def next_position(
    facts: TableFacts, position: Position, spec: FollowSpec, until: Position | None = None
) -> Position:
    """Return the position after the next batch, the same position if there are no new commits.

    If files of a commit were deleted and a later commit supersedes them, the batch extends to that commit.

    Args:
        facts: the table.
        position: end of the last batch.
        spec: contents of the batches.
        until: the batch contains no commits after this position; None for no bound.
    """
    end = _next_time(facts, position, spec, commits_between(facts, position, until))
    return position if end is None else position.moved(facts, end)


def _next_time(
    facts: TableFacts, position: Position, spec: FollowSpec, commit_range: CommitRange
) -> str | None:
    is_snapshot = position.is_earliest or spec.on_cleaned is OnCleaned.SNAPSHOT
    may_lack_files = commit_range.reaches_archive or (position.is_earliest and _has_cleans(facts))
    if may_lack_files and is_snapshot and loss_of(facts, commit_range, changes=spec.changes) is not None:
        # The whole table in one batch: otherwise the second batch of a new follower would be a lost commit.
        return _last_change(facts, commit_range)
    first = None
    lost = LostFileGroups(facts)
    for end, writes in ends(facts, commit_range, spec.limits):
        first = first or end
        if spec.changes:
            if loss_of(facts, _until(commit_range, end), changes=spec.changes) is None:
                return end
            break
        if not lost.after(writes):
            return end
    return (_last_change(facts, commit_range) or first) if is_snapshot else first


def _has_cleans(facts: TableFacts) -> bool:
    return any(instant.action is Action.CLEAN for instant in facts.timeline.instants)


def _last_change(facts: TableFacts, commit_range: CommitRange) -> str | None:
    """Return the time of the last commit that changes records."""
    newest_first = sorted(commit_range.writes, key=time_of, reverse=True)
    changing = (write for write in newest_first if facts.store.commit_metadata(write).changes_records)
    return next(map(time_of, changing), None)


def next_batch(facts: TableFacts, position: Position, spec: FollowSpec) -> tuple[Position, Scan | None]:
    """Plan the batch after a position; return its end and its scan, None if there are no new commits."""

    def batch(current: TableFacts) -> tuple[Position, Scan | None]:
        end = next_position(current, position, spec)
        return end, None if end == position else batch_scan(current, position, end, spec)

    return retry_on_change(facts, batch)[1]


def batch_scan(facts: TableFacts, start: Position, end: Position, spec: FollowSpec) -> Scan:
    """Plan the batch between two positions.

    Raises:
        InvalidError: commits of the range were archived or cleaned away, and `spec.on_cleaned` is FAIL.
    """
    facts, first = retry_on_change(facts, lambda current: _batch(current, start, end, spec))

    def draft(current: TableFacts) -> Draft[Task]:
        batch = first if current is facts else _batch(current, start, end, spec)
        if batch.query is not None and first.query is not None and batch is not first:
            return replace(batch, query=same_columns(first.query, batch.query)).draft()
        return batch.draft()

    schema = CHANGE_SCHEMA if spec.changes or first.query is None else first.query.output
    scan = scan_of_plan(schema, facts, draft)
    scan.tasks()  # plan now, so that the batch is fixed
    return scan


@dataclass(frozen=True, slots=True)
class _BatchPlan:
    """The plan of a batch for one load of the table.

    Attributes:
        facts: the loaded table.
        commit_range: commits of the batch; None for the whole table.
        query: query for the rows; None for the changes of commits.
        changes: whether the batch contains every change.
        later: requested times of the commits after the batch, whose rows belong to the next batch.
    """

    facts: TableFacts
    commit_range: CommitRange | None
    query: Query | None
    changes: bool
    later: tuple[str, ...] = ()

    def draft(self) -> Draft[Task]:
        """Return the unconfirmed plan."""
        if self.query is None:
            assert self.commit_range is not None
            return changes_draft(self.facts, self.commit_range)
        if self.commit_range is not None:
            return range_draft(self.query, self.commit_range)
        return Draft(self._whole(self.query), partial(is_needed, self.facts))

    def _whole(self, query: Query) -> list[Task]:
        """Return the tasks that read the whole table; as changes, all rows are inserts."""
        if self.later:
            is_earlier = ~pc.field(COMMIT_TIME).isin(pa.array(self.later, pa.string()))
            query = replace(query, where=is_earlier if query.where is None else query.where & is_earlier)
        tasks = snapshot_tasks(query)
        if not self.changes:
            return list(tasks)
        newest = max((write.requested for write in self.facts.timeline.writes()), default=EARLIEST)
        return [ChangeTask(task.storage, newest, None, task) for task in tasks]


def _batch(facts: TableFacts, start: Position, end: Position, spec: FollowSpec) -> _BatchPlan:
    commit_range = replace(commits_between(facts, start, end), skips_superseded=True)
    loss = loss_of(facts, commit_range, changes=spec.changes)
    if loss is None:
        return _range_batch(facts, commit_range, spec)
    if start.is_earliest or spec.on_cleaned is OnCleaned.SNAPSHOT:
        columns, where = (None, None) if spec.changes else (spec.columns, spec.where)
        query = query_of(facts, columns, where, InstantRange.of(facts.timeline))
        return _BatchPlan(facts, None, query, spec.changes, _after(facts, end))
    if spec.on_cleaned is OnCleaned.FAIL:
        raise InvalidError(
            f"Commits after {start.time} and up to {loss.until} were archived or their files cleaned away."
            f" Follow from {loss.until}, or set on_cleaned to snapshot or earliest to continue"
            " automatically.",
            table=facts.storage.spec.uri,
        )
    return _range_batch(facts, only(commit_range, loss.left), spec)


def _after(facts: TableFacts, end: Position) -> tuple[str, ...]:
    """Return the requested times of the commits after a position that change records."""
    commit_range = commits_between(facts, end)
    archived = archived_writes(facts, commit_range)
    metadata_of = open_archive(facts.storage, facts.config).commit_metadata
    return (
        *(
            write.requested
            for write in commit_range.writes
            if facts.store.commit_metadata(write).changes_records
        ),
        *(write.requested for write in archived if metadata_of(write).changes_records),
    )


def _range_batch(facts: TableFacts, commit_range: CommitRange, spec: FollowSpec) -> _BatchPlan:
    query = None if spec.changes else range_query(facts, commit_range, spec.columns, spec.where)
    return _BatchPlan(facts, commit_range, query, spec.changes)


def _until(commit_range: CommitRange, end: str) -> CommitRange:
    return only(commit_range, tuple(write for write in commit_range.writes if time_of(write) <= end))
