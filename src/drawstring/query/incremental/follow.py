"""Following a table: batch after batch of what its commits wrote, from a position that can be stored.

    position ── the next commits, up to the limits ──> batch, new position ── the next ...

A position (`positions`) says which commits were handed out. In version 6, where these are known by requested
times, a pending write holds later ones up, or they would hide it. A batch is one range of commits, so a
caller that stores its position together with what it made of the batch sees each commit exactly once.

When commits after a position were archived, or files of them cleaned away, their changes cannot be handed
out any more; the caller has chosen what happens then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
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
from drawstring.query.incremental.batch_ends import Gone, Limits, ends, loss_of, only
from drawstring.query.incremental.cdc_query import changes_draft
from drawstring.query.incremental.commit_ranges import CommitRange, archived_writes
from drawstring.query.incremental.incremental_query import range_draft, range_query
from drawstring.query.incremental.positions import Position, commits_between, position_of
from drawstring.query.replanning import Draft, Task, settled
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.snapshot import Query, query_of, same_columns, snapshot_tasks
from drawstring.schema.meta import COMMIT_TIME
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import EARLIEST


class OnCleaned(StrEnum):
    """What happens when commits after a position are gone."""

    FAIL = "fail"
    SNAPSHOT = "snapshot"
    EARLIEST = "earliest"


@dataclass(frozen=True, slots=True)
class FollowSpec:
    """What batches hold.

    Attributes:
        columns: columns in the order wanted; None for all, meta columns included.
        where: SQL text or an Arrow expression; None for all rows.
        changes: hand out every change with its images, rather than the rows as they are now.
        limits: how much goes into a batch.
        on_cleaned: what happens when commits are gone.
    """

    columns: Sequence[str] | None = None
    where: Where = None
    changes: bool = False
    limits: Limits = field(default_factory=Limits)
    on_cleaned: OnCleaned = OnCleaned.FAIL


@dataclass(frozen=True, slots=True)
class Batch:
    """What some commits wrote.

    Attributes:
        rows: the rows, lazily read; their files are known already.
        position: where to go on after them; text to store, for `start`.
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
    """Return batches for as long as they are taken.

    Args:
        load: looks at the table.
        clock: sleeps between looks.
        spec: what batches hold.
        start: see `position_of`.
        poll_seconds: time between looks when nothing is new; None to end then.

    Raises:
        InvalidError: something that was asked for is not there or makes no sense; while batches are taken:
            commits after the position are gone.
    """
    facts = load()
    _check(facts, spec, poll_seconds)
    return _batches(load, clock, spec, position_of(facts, start), poll_seconds)


def _check(facts: TableFacts, spec: FollowSpec, poll_seconds: Any) -> None:
    """Refuse what is wrong before there is anything to wait for."""
    query_of(facts, spec.columns, spec.where, InstantRange.of(facts.timeline))
    limits: dict[str, Any] = {"max_commits": spec.limits.commits, "max_bytes": spec.limits.bytes}
    for name, most in limits.items():
        if most is not None and not (isinstance(most, int) and most >= 1):
            raise InvalidError(f"{name} is a whole number from 1, not {most!r}; None for no bound")
    if poll_seconds is not None and not (isinstance(poll_seconds, int | float) and poll_seconds >= 0):
        raise InvalidError(
            f"poll_seconds is a number from 0, not {poll_seconds!r}; None to end when nothing is new"
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
    """Return the position after the next batch, the same one when nothing is new.

    Where files of a commit gave way to those of a later one and are gone, the batch goes on to that one.

    Args:
        facts: the table.
        position: where the last batch ended.
        spec: the limits, and what happens when commits are gone.
        until: commits after this position are left for later; None for none.
    """
    end = _next_time(facts, position, spec, commits_between(facts, position, until))
    return position if end is None else position.moved(facts, end)


def _next_time(facts: TableFacts, position: Position, spec: FollowSpec, found: CommitRange) -> str | None:
    is_snapshot = position.is_earliest or spec.on_cleaned is OnCleaned.SNAPSHOT
    is_doubtful = found.reaches_archive or (position.is_earliest and _is_cleaned(facts))
    if is_doubtful and is_snapshot and loss_of(facts, found, changes=spec.changes) is not None:
        # All of it in one batch, or the second batch of a new follower would be a commit that is gone.
        return _last_change(facts, found)
    first = None
    gone = Gone(facts)
    for end, writes in ends(facts, found, spec.limits):
        first = first or end
        if spec.changes:
            if loss_of(facts, _until(found, end), changes=spec.changes) is None:
                return end
            break
        if not gone.after(writes):
            return end
    return (_last_change(facts, found) or first) if is_snapshot else first


def _is_cleaned(facts: TableFacts) -> bool:
    return any(instant.action is Action.CLEAN for instant in facts.timeline.instants)


def _last_change(facts: TableFacts, found: CommitRange) -> str | None:
    """Return the time of the last commit that changes something."""
    newest_first = sorted(found.writes, key=time_of, reverse=True)
    changing = (write for write in newest_first if facts.store.commit_metadata(write).changes_records)
    return next(map(time_of, changing), None)


def next_batch(facts: TableFacts, position: Position, spec: FollowSpec) -> tuple[Position, Scan | None]:
    """Plan the batch after a position; return where it ends, and None for no batch when nothing is new."""

    def batch(look: TableFacts) -> tuple[Position, Scan | None]:
        end = next_position(look, position, spec)
        return end, None if end == position else batch_scan(look, position, end, spec)

    return settled(facts, batch)[1]


def batch_scan(facts: TableFacts, start: Position, end: Position, spec: FollowSpec) -> Scan:
    """Plan the batch of a range of positions.

    Raises:
        InvalidError: commits of the range are gone, and that is to fail.
    """
    facts, first = settled(facts, lambda look: _batch(look, start, end, spec))

    def draft(look: TableFacts) -> Draft[Task]:
        batch = first if look is facts else _batch(look, start, end, spec)
        if batch.query is not None and first.query is not None and batch is not first:
            return replace(batch, query=same_columns(first.query, batch.query)).draft()
        return batch.draft()

    schema = CHANGE_SCHEMA if spec.changes or first.query is None else first.query.output
    scan = scan_of_plan(schema, facts, draft)
    scan.tasks()  # so that it does not change any more
    return scan


@dataclass(frozen=True, slots=True)
class _BatchPlan:
    """How a batch is read on one look at the table.

    Attributes:
        facts: the look.
        found: the commits; None for the whole table.
        query: what is read; None for changes of commits.
        changes: whether every change is wanted.
        later: requested times of the commits after the batch, whose rows are left to the next one.
    """

    facts: TableFacts
    found: CommitRange | None
    query: Query | None
    changes: bool
    later: tuple[str, ...] = ()

    def draft(self) -> Draft[Task]:
        """Return the tasks."""
        if self.query is None:
            assert self.found is not None
            return changes_draft(self.facts, self.found)
        if self.found is not None:
            return range_draft(self.query, self.found)
        return Draft(self._whole(self.query), partial(is_needed, self.facts))

    def _whole(self, query: Query) -> list[Task]:
        """Return the tasks that read the table as it is; as changes, all of it is inserts."""
        if self.later:
            old = ~pc.field(COMMIT_TIME).isin(pa.array(self.later, pa.string()))
            query = replace(query, where=old if query.where is None else query.where & old)
        found = snapshot_tasks(query)
        if not self.changes:
            return list(found)
        last = max((write.requested for write in self.facts.timeline.writes()), default=EARLIEST)
        return [ChangeTask(task.storage, last, None, task) for task in found]


def _batch(facts: TableFacts, start: Position, end: Position, spec: FollowSpec) -> _BatchPlan:
    found = replace(commits_between(facts, start, end), skips_superseded=True)
    loss = loss_of(facts, found, changes=spec.changes)
    if loss is None:
        return _range_batch(facts, found, spec)
    if start.is_earliest or spec.on_cleaned is OnCleaned.SNAPSHOT:
        columns, where = (None, None) if spec.changes else (spec.columns, spec.where)
        query = query_of(facts, columns, where, InstantRange.of(facts.timeline))
        return _BatchPlan(facts, None, query, spec.changes, _after(facts, end))
    if spec.on_cleaned is OnCleaned.FAIL:
        raise InvalidError(
            f"commits after {start.time} and up to {loss.until} were archived or their files cleaned away:"
            f" follow from {loss.until}, or choose on_cleaned snapshot or earliest to go on by itself",
            table=facts.storage.spec.uri,
        )
    return _range_batch(facts, only(found, loss.left), spec)


def _after(facts: TableFacts, end: Position) -> tuple[str, ...]:
    """Return the requested times of the commits after a position that change something."""
    found = commits_between(facts, end)
    archived = archived_writes(facts, found)
    metadata_of = open_archive(facts.storage, facts.config).commit_metadata
    return (
        *(each.requested for each in found.writes if facts.store.commit_metadata(each).changes_records),
        *(each.requested for each in archived if metadata_of(each).changes_records),
    )


def _range_batch(facts: TableFacts, found: CommitRange, spec: FollowSpec) -> _BatchPlan:
    query = None if spec.changes else range_query(facts, found, spec.columns, spec.where)
    return _BatchPlan(facts, found, query, spec.changes)


def _until(found: CommitRange, end: str) -> CommitRange:
    return only(found, tuple(write for write in found.writes if time_of(write) <= end))
