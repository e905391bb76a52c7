"""Follow a table in batches: the changes of commits after a position that the caller stores.

    position ── the next commits, up to the limits ──> batch, new position ── the next ...

A `Position` identifies the commits that were returned. A batch is one range of commits: a caller that
stores its position together with the result of the batch processes each commit exactly once. In version 6 a
position holds requested times, so a pending write delays all writes after it; otherwise it would be
skipped.

When commits after a position were archived, or their files cleaned away, their changes cannot be returned.
`OnCleaned` selects what happens then; `loss_of` finds the lost commits.

The text of a position:

    {"version": 1, "time": T}                    commits completed up to T; in version 6: requested up to T
    {"version": 1, "time": T, "requested": R}    these, and commits requested up to R

When a table changes its version, the order of its commits changes too. Versions 8 and 9 store the
completion time of a commit of version 6, which is after its requested time: R marks that it was returned
already. A position that was stored without R is recognized by the requested time that it contains. After a
downgrade, version 6 orders by requested times the commits that versions 8 and 9 ordered by completion
times: a commit that was requested after T was not returned.

Holds: a hold protects the files that a reader needs from cleaning and archiving.

    check that all files after the position exist ── write the hold ── check again

A clean that starts between the checks reads the holds again after it wrote its plan to the timeline. So
either the clean sees the hold, or the second check sees the plan of the clean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.config.table_config import TableConfig
from drawstring.expressions.predicate import Where
from drawstring.filegroups.cdc_reader import CHANGE_SCHEMA, ChangeTask
from drawstring.filegroups.read_task import InstantRange
from drawstring.model.instant import Action, Hold, Instant, time_of
from drawstring.query.cdc import ChangePlanner, changes_draft
from drawstring.query.incremental import (
    CommitRange,
    ListedFiles,
    RangeSpec,
    archived_writes,
    check_commit_times,
    find_range,
    range_draft,
    range_query,
    superseded_groups,
)
from drawstring.query.planner import Query, query_of, same_columns, snapshot_tasks
from drawstring.query.policies import Holes, OnCleaned
from drawstring.query.replanning import Draft, Task, cleans_of, is_needed, retry_on_change
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.table_state import TableFacts
from drawstring.schema.fields import COMMIT_TIME
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.change_detection import retry_on_archiving
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import EARLIEST, Timeline, as_instant_time
from drawstring.txn.holds import Holds
from drawstring.txn.table_context import TableContext


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of a batch, which contains at least one commit in any case.

    Attributes:
        commits: maximum number of commits; None for no bound.
        bytes: maximum number of bytes that the commits wrote; None for no bound.
    """

    commits: int | None = None
    bytes: int | None = None


def batch_ends(
    facts: TableFacts, commit_range: CommitRange, limits: Limits
) -> Iterator[tuple[str, Sequence[Instant]]]:
    """Yield the possible ends of a batch: the one that the limits give, then every later commit.

    Commits with the same time stay in one batch, and a commit without changes does not end a batch. Commit
    metadata is read only as far as the caller iterates.

    Args:
        facts: the table.
        commit_range: commits after the last batch.
        limits: bounds of the batch.

    Yields:
        The time of the end, and the writes since the previous end.
    """
    end: str | None = None
    writes_since: list[Instant] = []
    unassigned: list[Instant] = []
    commits = size = 0
    for time, same_time in groupby(sorted(commit_range.writes, key=time_of), time_of):
        writes = list(same_time)
        changing = [commit for commit in map(facts.store.commit_metadata, writes) if commit.changes_records]
        commits += len(changing)
        size += sum(stat.size_bytes for commit in changing for stat in commit.stats)
        unassigned += writes
        if not changing:
            continue
        if end is not None and _is_over(limits, commits, size):
            yield end, writes_since
            writes_since = []
        writes_since, unassigned, end = writes_since + unassigned, [], time
    if end is not None:
        yield end, writes_since


def _is_over(limits: Limits, commits: int, size: int) -> bool:
    over_commits = limits.commits is not None and commits > limits.commits
    return over_commits or (limits.bytes is not None and size > limits.bytes)


class LostFileGroups:
    """Tracks, for a growing range of commits, the file groups whose changes are lost.

    The changes of a file group are lost when a file that a commit wrote is deleted and no later commit of the
    range wrote a base file of the group or replaced the group.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._listed = ListedFiles(facts.view.listing)
        self._groups: set[tuple[str, str]] = set()

    def after(self, writes: Sequence[Instant]) -> bool:
        """Add writes to the range and return whether any changes are lost."""
        for write in writes:
            commit = self._facts.store.commit_metadata(write)
            self._groups -= superseded_groups(commit)
            self._groups.update(
                (stat.partition, stat.file_id)
                for stat in commit.stats
                if self._listed.find(stat.partition, stat.path) is None
            )
        return bool(self._groups)


@dataclass(frozen=True, slots=True)
class Loss:
    """Commits of a range whose changes are lost.

    Attributes:
        until: time of the last of them.
        left: the writes after it.
    """

    until: str
    left: tuple[Instant, ...]


def loss_of(facts: TableFacts, commit_range: CommitRange, *, changes: bool) -> Loss | None:
    """Return the lost commits of a range, None when none are lost.

    Args:
        facts: the table.
        commit_range: the range.
        changes: whether the query returns every change, rather than the rows as of the end of the range.
    """
    writes = sorted(commit_range.writes, key=time_of)
    lost = _without_changes(facts, writes) if changes else _without_files(facts, writes)
    if lost:
        return Loss(time_of(writes[lost - 1]), tuple(writes[lost:]))
    if not commit_range.reaches_archive:
        return None
    return Loss(
        max(map(time_of, archived_writes(facts, commit_range)), default=commit_range.start), tuple(writes)
    )


def _without_changes(facts: TableFacts, writes: Sequence[Instant]) -> int:
    """Return the number of writes up to the last one whose changes cannot be read."""
    planner = ChangePlanner(facts)
    for position in reversed(range(len(writes))):
        try:
            planner.tasks(writes[position])
        except InvalidError:
            return position + 1
    return 0


def _without_files(facts: TableFacts, writes: Sequence[Instant]) -> int:
    """Return the number of writes up to the last one with deleted files that no later write superseded."""
    listed = ListedFiles(facts.view.listing)
    superseded: set[tuple[str, str]] = set()
    for position in reversed(range(len(writes))):
        commit = facts.store.commit_metadata(writes[position])
        for stat in commit.stats:
            is_listed = listed.find(stat.partition, stat.path) is not None
            if not is_listed and (stat.partition, stat.file_id) not in superseded:
                return position + 1
        superseded |= superseded_groups(commit)
    return 0


def with_writes(commit_range: CommitRange, writes: tuple[Instant, ...]) -> CommitRange:
    """Return a range that contains only the given writes."""
    return replace(commit_range, writes=writes, archived=(), reaches_archive=False, skips_superseded=True)


POSITION_VERSION: Final = 1
"""Version of the format of a stored position."""

LATEST: Final = "latest"


@dataclass(frozen=True, slots=True)
class Position:
    """The commits that were already returned.

    Attributes:
        time: commits whose time (`time_of`) is not later were returned.
        requested: commits requested up to this time were returned as well; None for no others.
    """

    time: str
    requested: str | None = None

    @property
    def is_earliest(self) -> bool:
        """Whether no commit was returned."""
        return self.time == EARLIEST

    def covers(self, write: Instant) -> bool:
        """Return whether a commit was returned."""
        by_requested_time = self.requested is not None and write.requested <= self.requested
        return by_requested_time or time_of(write) <= self.time

    def moved(self, facts: TableFacts, time: str) -> Position:
        """Return the position at a later time.

        The requested time is dropped once every commit up to it is also covered by its completion time.
        """
        if not _has_completion_times(facts):
            return Position(time, time)
        if self.requested is None or _has_later(facts, time, self.requested):
            return Position(time, self.requested)
        return Position(time)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the stored position."""
        fields = {"version": POSITION_VERSION, "time": self.time}
        return fields if self.requested is None else {**fields, "requested": self.requested}

    def text(self) -> str:
        """Return the stored position as JSON text."""
        return json.dumps(self.fields(), separators=(",", ":"))


START: Final = Position(EARLIEST)


def stored_position(stored: Any) -> Position:
    """Parse a stored position.

    Args:
        stored: its JSON text or its fields.

    Raises:
        InvalidError: it is not a position, or a later release stored it.
    """
    try:
        fields = json.loads(stored) if isinstance(stored, str) else stored
        version, time, requested = fields["version"], fields["time"], fields.get("requested")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidError(
            f"{stored!r} is not a position. Pass the position of a batch, or a time."
        ) from error
    if version != POSITION_VERSION:
        raise InvalidError(
            f"The position has version {version}, which this release cannot read. Continue with the release"
            " that stored it."
        )
    return Position(
        as_instant_time(str(time)), None if requested is None else as_instant_time(str(requested))
    )


def position_from(facts: TableFacts, stored: Any) -> Position:
    """Parse a stored position and adapt it to the current table version.

    Raises:
        InvalidError: see `stored_position`.
    """
    position = stored_position(stored)
    is_plain = position.requested is None and not position.is_earliest
    if is_plain and _has_completion_times(facts) and _is_requested_time(facts, position.time):
        return replace(position, requested=position.time)
    return position


def _has_completion_times(facts: TableFacts) -> bool:
    return facts.config.layout.has_completion_times


def _has_later(facts: TableFacts, time: str, requested: str) -> bool:
    """Return whether a write requested up to `requested` completed after `time`, or is pending."""
    later = find_range(facts, RangeSpec(time, None, holes=Holes.BLOCK))
    return any(
        instant.requested <= requested
        for instant in (*later.writes, *later.archived, *facts.timeline.pending())
    )


def _is_requested_time(facts: TableFacts, time: str) -> bool:
    """Return whether a time is the requested time of a commit rather than a completion time."""
    writes = facts.timeline.writes()
    if any(write.completed == time for write in writes):
        return False
    if facts.timeline.write_at(time) is not None:
        return True
    if not facts.timeline.is_archived(time):
        return False
    archive = open_archive(facts.storage, facts.config)
    return any(instant.requested == time and instant.is_write for instant in archive.completed(time))


def position_of(facts: TableFacts, start: Any) -> Position:
    """Return the position to follow from.

    Args:
        facts: the table.
        start: a position, also as stored text, a time (exclusive), `earliest` (same as None) or `latest`.

    Raises:
        InvalidError: `start` is none of these.
    """
    check_commit_times(facts)
    if start is None:
        return START
    if isinstance(start, Position):
        return start
    if isinstance(start, str) and start.strip().startswith("{"):
        return position_from(facts, start)
    if isinstance(start, str) and start.strip().lower() == LATEST:
        return newest(facts)
    return Position(as_instant_time(start, facts.config.timezone))


def newest(facts: TableFacts) -> Position:
    """Return the position after all commits."""
    last = max(map(time_of, commits_between(facts, START).writes), default=EARLIEST)
    return START.moved(facts, last) if last != EARLIEST else START


def commits_between(facts: TableFacts, start: Position, end: Position | None = None) -> CommitRange:
    """Return the commits after one position and up to another.

    Args:
        facts: the table.
        start: the earlier position.
        end: the later position; None for no bound.
    """
    stop = None if end is None or end.requested is not None else end.time
    commit_range = find_range(facts, RangeSpec(start.time, stop, holes=Holes.BLOCK))
    if start.requested is None and (end is None or end.requested is None):
        return commit_range

    def between(writes: tuple[Instant, ...]) -> tuple[Instant, ...]:
        return tuple(
            write for write in writes if not start.covers(write) and (end is None or end.covers(write))
        )

    writes, archived = between(commit_range.writes), between(commit_range.archived)
    until = None if end is None else max([end.time, *map(time_of, writes)])
    reaches_archive = bool(archived) if _has_completion_times(facts) else commit_range.reaches_archive
    return replace(commit_range, end=until, writes=writes, archived=archived, reaches_archive=reaches_archive)


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
    for end, writes in batch_ends(facts, commit_range, spec.limits):
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
    return _range_batch(facts, with_writes(commit_range, loss.left), spec)


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
    return with_writes(commit_range, tuple(write for write in commit_range.writes if time_of(write) <= end))


_REMAINING_MS_MIN: Final = 60_000
"""Remaining lifetime, in milliseconds, that a hold needs to protect a new hold without further checks."""


def hold(context: TableContext, name: str, position: Any, hours: float) -> Hold:
    """Place a hold on the table as of a position, and on everything written after it.

    Args:
        context: the table.
        name: name of the reader; an existing hold of this name moves to the position.
        position: a stored position, a time, or None for now.
        hours: lifetime of the hold.

    Raises:
        InvalidError: an invalid name, time or position, or files that the reader needs were already deleted.
    """
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    time = _time(store.load(), config, position)
    holds = Holds(context.storage, context.clock, context.ids)
    if any(active.position <= time for active in holds.active(_REMAINING_MS_MIN)):
        return holds.put(name, time, hours)
    retry_on_archiving(store, lambda timeline: _check_complete(context, config, store, timeline, time))
    placed = holds.put(name, time, hours)
    try:
        retry_on_archiving(store, lambda timeline: _check_complete(context, config, store, timeline, time))
    except InvalidError:
        holds.release(name)
        raise
    return placed


def hold_for_scan(context: TableContext, hours: float) -> Hold:
    """Place a hold on the current files and timeline; this needs no check, as the newest files exist.

    Args:
        context: the table.
        hours: lifetime of the hold.

    Raises:
        InvalidError: an invalid number of hours.
    """
    config = load_config(context.storage)
    now = _time(TimelineStore(context.storage, config, context.clock).load(), config, None)
    return Holds(context.storage, context.clock, context.ids).put(
        f"scan-{context.ids.uuid()}", now, hours, is_scan=True
    )


class ReaderHold:
    """Keeps the hold of a following reader at the reader's position.

    It does not check whether files were already deleted: `OnCleaned` defines what the reader does then.

    Args:
        context: the table.
        name: name of the reader.
        hours: lifetime of the hold after its last renewal.
    """

    def __init__(self, context: TableContext, name: str, hours: float) -> None:
        self._holds = Holds(context.storage, context.clock, context.ids)
        self._clock = context.clock
        self._name = name
        self._hours = hours
        self._last: Hold | None = None
        self._position: Position | None = None

    @property
    def position(self) -> Position | None:
        """The position of the reader, None before the first call of `at`."""
        return self._position

    def at(self, position: Position) -> None:
        """Move the hold to a position."""
        self._position = position
        self._put()

    def _put(self) -> None:
        if self._position is not None:
            self._last = self._holds.put(self._name, self._position.time, self._hours)

    def renew(self) -> None:
        """Renew the hold once half of its lifetime has passed."""
        last = self._last
        if last is not None and self._clock.now_ms() > (last.held_ms + last.until_ms) // 2:
            self._put()


def _time(timeline: Timeline, config: TableConfig, position: Any) -> str:
    if position is None:
        return max(map(time_of, timeline.writes()), default=EARLIEST)
    if isinstance(position, str) and position.strip().startswith("{"):
        return stored_position(position).time
    return as_instant_time(position, config.timezone)


def _check_complete(
    context: TableContext, config: TableConfig, store: TimelineStore, timeline: Timeline, time: str
) -> None:
    first = timeline.first_after(time)
    if first is None:
        return
    if timeline.is_archived(time) and any(
        instant.is_write and timeline.write_at(instant.requested) is None
        for instant in open_archive(context.storage, config).completed(time)
    ):
        raise InvalidError(f"Writes after {time} were archived already. Choose a later position.")
    for clean in cleans_of(store, timeline):
        if (clean.earliest or clean.instant.requested) > first:
            raise InvalidError(
                f"Files that a reader from {time} on needs were cleaned away already. Choose a later"
                " position.",
                instant=clean.instant.requested,
            )
