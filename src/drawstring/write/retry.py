"""Run the attempts of a write under optimistic concurrency control.

    attempt   begin under the table lock -> write files without it -> under it: check, commit
    conflict  roll the attempt back, wait for the live writes that were first, begin again with the same rows
    pending   a clustering of file groups to be changed: the same, once it is done; it needs the lock too
    first     the last two of four attempts go first where the others wrote: nobody else commits there

Waits: a clustering that a process runs is worth waiting for again before each attempt. A clustering that
nobody runs may stay pending for good; after one wait the user has to decide.

Writers of Hudi: a writer of Hudi puts its instant on the timeline first, and reads the timeline without the
lock after that. It sees no conflict in a commit with a greater requested time that completes in between.
Yet its base file in the same file group is the older one by its name, and its rows are lost (seen with
1.2.0, also among its own writers). So `await_begun` waits until such instants are inflight before base
files are committed. Hudi has read the timeline by then, and finds the commit in conflict.

Schema: `resolved_schema` determines the table schema of a write beside other commits, and which of two
writes that changed the schema loses (RFC-82).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from itertools import count
from typing import Final, TypeVar

from drawstring.base.clock import jitter
from drawstring.base.errors import (
    DrawstringError,
    LostRaceError,
    MissingFileError,
    OutrunError,
    PendingClusteringError,
    ReservedError,
    RivalError,
)
from drawstring.config.keys.concurrency import ConcurrencyMode
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.payload_classes import MergeMode
from drawstring.filegroups.base_file_writer import ensure_partition_metadata
from drawstring.filegroups.write.markers import ready_files
from drawstring.formats.metadata.plans import decode_clustering_plan
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.protocol import LOCK_FOLDER
from drawstring.timeline.properties import changed_by, load_config
from drawstring.timeline.schema import table_schema_json, with_history
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.conflict_resolution import (
    OwnChanges,
    changed_properties,
    files_deleted,
    preload_concurrent_commits,
    properties_race,
    refuse_conflicts,
    rolled_back_error,
    schema_race,
)
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER, alive_elsewhere, describe_instant, leased, process_of
from drawstring.txn.locks.service_lease import is_runner_dead
from drawstring.txn.read_set import NO_ROWS, InPartitions, Reads, shown
from drawstring.txn.reservations import Parts, await_reserved, changed_parts, conflict_scope, refuse_reserved
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, Transaction
from drawstring.write.facts import WriteFacts
from drawstring.write.plan import Verb, WritePlan
from drawstring.write.source import BoundSource

_log: Final = logging.getLogger("drawstring")
_WAIT: Final = "hoodie.write.lock.wait_time_ms"
_RETRIES: Final = "hoodie.write.num.retries.on.conflict.failures"
_ALLOW: Final = "hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy"
_PAUSE_SECONDS: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 5.0
_PASS_SECONDS_MAX: Final = 5.0
_PASS_SHARE: Final = 1 / 16
_PASS_PAUSE_SECONDS: Final = 0.002
_SPREAD_MAX: Final = 3
"""Behind so many writes and more, a write that lost begins after a random time of one to two attempts."""


def wait_for(context: TableContext, options: WriteOptions, refused: DrawstringError) -> bool:
    """Wait without the table lock until an instant has completed, is gone, or its process died.

    Args:
        context: the open table.
        options: of the write, with the longest wait.
        refused: names the instant.

    Returns:
        False if it is still pending after that time.
    """
    requested, clock = refused.instant or "", context.clock
    store = _store(context)
    deadline_ms, pause = clock.now_ms() + options.locking.wait_ms, _PAUSE_SECONDS
    while (instant := store.load().find(requested)) is not None and not instant.is_completed:
        if _is_abandoned(context, options, instant):
            break  # the next attempt unschedules it, or need not care
        remaining_ms = deadline_ms - clock.now_ms()
        if remaining_ms <= 0:
            return False
        clock.sleep(min(pause * jitter(context.ids), remaining_ms / 1000))
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)
    return True


def wait_for_pending_writes(context: TableContext, attempt_seconds: float) -> None:
    """Wait after a lost race until the writes that are pending now are over, for as long as an attempt took.

    Who begins while they are at work loses against them again: they commit first, and others that loop begin
    their next write at once. Behind a single one the write begins before its next one does. Behind several
    there are others that lost as well: they should not all begin at the same moment.

    Args:
        context: the open table.
        attempt_seconds: how long the attempt took that lost.
    """
    clock, others = context.clock, 0
    seconds = min(attempt_seconds, _PASS_SECONDS_MAX)
    pause, deadline_ms = max(seconds * _PASS_SHARE, _PASS_PAUSE_SECONDS), clock.now_ms() + 1000 * seconds
    with suppress(DrawstringError, OSError):  # the next attempt meets what is wrong
        store = _store(context)
        at_work = {each.requested for each in store.load().pending_writes()}
        others = min(len(at_work), _SPREAD_MAX) - 1
        while at_work and clock.now_ms() < deadline_ms:
            clock.sleep(pause * jitter(context.ids))
            at_work &= {each.requested for each in store.load().pending_writes()}
    if others > 0:
        clock.sleep(min(seconds, _PAUSE_SECONDS) * others * jitter(context.ids))


def wait_for_next_attempt(
    context: TableContext, options: WriteOptions, number: int, error: DrawstringError
) -> bool:
    """Wait, after an attempt of a write, for what the next one needs; return whether it may begin.

    Args:
        context: the open table.
        options: of the write: how long it waits.
        number: of the attempt.
        error: why it did not commit.
    """
    if isinstance(error, PendingClusteringError):
        _log.info("Attempt %d of a write waits for a clustering: %s", number, error)
        return wait_for(context, options, error) or is_running(context, options, error)
    if isinstance(error, RivalError):
        _log.info("Attempt %d of a write waits for another writer: %s", number, error)
        wait_for(context, options, error)
    else:
        _log.info("Attempt %d of a write was in conflict and runs again: %s", number, error)
    return True


def _is_abandoned(context: TableContext, options: WriteOptions, instant: Instant) -> bool:
    storage, clock = context.storage, context.clock
    if instant.action is Action.CLUSTERING:
        return is_runner_dead(storage, clock, context.ids, instant.requested)
    return not alive_elsewhere(storage, clock, (instant,), options.failed_writes)


def is_running(context: TableContext, options: WriteOptions, refused: DrawstringError) -> bool:
    """Return whether a process of any engine works on the instant that an error names.

    Args:
        context: the open table.
        options: of the write, with the greatest age of a live heartbeat.
        refused: names the instant.
    """
    instant = _store(context).load().find(refused.instant or "")
    if instant is None or instant.is_completed:
        return False
    alive = alive_elsewhere(context.storage, context.clock, (instant,), options.failed_writes)
    return bool(alive or leased(context, (instant,)))


def running_clustering(
    context: TableContext, options: WriteOptions, refused: PendingClusteringError
) -> PendingClusteringError:
    """Return the error of a write whose last attempt met a clustering that a process runs.

    Args:
        context: the open table.
        options: of the write.
        refused: names the clustering.
    """
    store, time = _store(context), refused.instant or ""
    instant = Instant(time, Action.CLUSTERING, State.REQUESTED)
    inputs = frozenset(decode_clustering_plan(store.read_requested(instant)).inputs)
    who, wait_ms = process_of(context.storage, instant), options.locking.wait_ms
    waited = f" Before each further attempt this write waited for up to {wait_ms} ms."
    waited = waited if options.concurrency.retries_max else ""
    return PendingClusteringError(
        f"Another process runs the clustering {time}{f' ({who})' if who else ''}, which rewrites file groups"
        f" that this write changes; it rewrites {shown(inputs)}.{waited} Nothing of this write was"
        f" committed. Write again when it is done, wait longer with {_WAIT} (and {_RETRIES}),"
        f" or let writes go first, so that the clustering gives way, with {_ALLOW}.",
        table=context.storage.spec.uri,
        instant=time,
    )


def live_rival_error(context: TableContext, refused: RivalError) -> RivalError:
    """Return the error of a write whose last attempt met a live writer that was first, with its process."""
    rival = _store(context).load().find(refused.instant or "")
    if rival is None:
        return refused
    message = f"{refused.message} It is {describe_instant(context.storage, context.clock, rival)}."
    return RivalError(message, table=refused.table, instant=refused.instant, path=refused.path)


def _store(context: TableContext) -> TimelineStore:
    return TimelineStore(context.storage, load_config(context.storage), context.clock)


def resolved_schema(facts: WriteFacts, schema_json: str, now: Timeline) -> str:
    """Return the table schema for the commit metadata of a write.

    Args:
        facts: the table when the write began.
        schema_json: the schema with which the write wrote its files.
        now: the timeline under the table lock, with further writes.

    Raises:
        LostRaceError: this write and another one changed the schema, or its files seem to have columns that
            another one has renamed.
    """
    locked = facts.locked
    began, current = (
        table_schema_json(locked.context.storage, locked.store, timeline, locked.config)
        for timeline in (facts.timeline, now)
    )
    altered = _altered_since(facts, now)
    if altered is not None and altered > facts.time and schema_json == began:
        return schema_json  # readers look for its columns by the version that its files were written with
    if altered is None and schema_json in (began, current):
        return current or schema_json  # this write changes nothing, or what the other one changed too
    # The schema of a table is that of the write with the greatest requested time.
    is_latest = all(write.requested < facts.time for write in now.writes())
    if altered is None and is_latest and current == began:
        return schema_json
    since = [each for each in now.writes() if facts.timeline.write_at(each.requested) is None]
    written = [(each, locked.store.commit_metadata(each)) for each in since]
    others = (each for each in written if each[1].schema_json not in (None, began))
    raise schema_race(facts.time, *next(others, (None, None)))


def _altered_since(facts: WriteFacts, now: Timeline) -> str | None:
    """Return the instant that gave the schema another version since a write began, None without one."""
    locked = facts.locked
    began, current = (
        with_history(locked.config, locked.context.storage, locked.store, timeline).history
        for timeline in (facts.timeline, now)
    )
    if current is None or (began is not None and began.requested == current.requested):
        return None
    return str(current.requested)


T = TypeVar("T")
_ATTEMPTS_BEFORE_FIRST_MIN: Final = 2
"""So many attempts of three and more do not go first; of more than four all but the last two."""

_FIRST_MAX: Final = 4
"""How often a write that goes first runs before it is given up."""


class Turn(StrEnum):
    """How an attempt of a write shares the table with other writers."""

    ALONE = "alone"
    """It keeps the table lock from its begin to its commit."""
    BESIDE = "beside others"
    FIRST = "first"
    """Others commit after it in the partitions that it reserves."""


def run_attempts(context: TableContext, options: WriteOptions, attempt: Callable[[Turn], T]) -> T:
    """Run a write until it is not in conflict with other writers; a single writer runs it once.

    Args:
        context: the open table.
        options: of the write: how often it runs again (with 0 the only attempt does not go first), and how
            long it waits each time, for a pending clustering or a write that goes first.
        attempt: runs the write.

    Returns:
        The result of the attempt that committed.

    Raises:
        LostRaceError: the last attempt was in conflict as well.
        PendingClusteringError: so it was, or the clustering stayed pending for as long.
    """
    if options.concurrency.mode == ConcurrencyMode.SINGLE_WRITER:
        return _last(context, options, attempt, Turn.ALONE)
    retries_max = options.concurrency.retries_max
    for number in range(retries_max):
        began_ms, took_ms = context.clock.now_ms(), 0
        try:
            goes_first = number >= max(_ATTEMPTS_BEFORE_FIRST_MIN, retries_max - 1)
            return _in_turn(context, options, attempt, Turn.FIRST if goes_first else Turn.BESIDE)
        except (LostRaceError, PendingClusteringError) as error:
            took_ms = context.clock.now_ms() - began_ms
            if not wait_for_next_attempt(context, options, number + 1, error):
                raise
        wait_for_pending_writes(context, took_ms / 1000)
    return _last(context, options, attempt, Turn.FIRST if retries_max > 0 else Turn.BESIDE)


def _in_turn(context: TableContext, options: WriteOptions, attempt: Callable[[Turn], T], turn: Turn) -> T:
    """Run an attempt, again when a write is done that goes first where it writes.

    One that goes first runs again as well, a few times, after what its reservation does not protect it from:
    cleans and archiving, changes of the schema or the properties, and clusterings that were planned before.
    """
    deadline_ms, first = 0, count(1)
    while True:
        try:
            return attempt(turn)
        except ReservedError as error:
            deadline_ms = deadline_ms or context.clock.now_ms() + options.locking.wait_ms
            await_reserved(context, options.failed_writes, error, deadline_ms)
        except (OutrunError, PendingClusteringError) as error:
            if turn is not Turn.FIRST or next(first) == _FIRST_MAX:
                raise
            waits = isinstance(error, PendingClusteringError)
            if waits and not (is_running(context, options, error) and wait_for(context, options, error)):
                raise
            _log.info("The last attempt of a write runs again: %s", error)


def _last(context: TableContext, options: WriteOptions, attempt: Callable[[Turn], T], turn: Turn) -> T:
    """Run an attempt after which there is no other one."""
    try:
        return _in_turn(context, options, attempt, turn)
    except PendingClusteringError as error:
        if is_running(context, options, error):
            raise running_clustering(context, options, error) from error
        raise
    except RivalError as error:
        raise live_rival_error(context, error) from error


def flush_to_commit(
    facts: WriteFacts, write: Instant, metadata: CommitMetadata, options: WriteOptions, *, encodes: bool
) -> None:
    """Flush the files of a write, and wait until it may be committed beside other engines; see `await_begun`.

    Args:
        facts: the table when the write began.
        write: its instant.
        metadata: of its commit.
        options: of the write.
        encodes: whether it does not hold the table lock, so that the commit is encoded now.
    """
    context, stats = facts.locked.context, metadata.stats
    ready_files(context.storage, write.requested, stats)
    if any(not stat.is_log for stat in stats):  # log files belong to a slice by their completion time
        await_begun(context, options, facts.timeline, facts.time)
    if encodes and metadata.touched:
        facts.locked.lock.afterwards(facts.locked.guard.encode(write, metadata))
        preload_concurrent_commits(facts.timeline, facts.locked.store)


def await_begun(
    context: TableContext,
    options: WriteOptions,
    timeline: Timeline | None = None,
    requested: str | None = None,
) -> None:
    """Wait until the writers that are about to read the timeline have read it, before committing base files.

    They need no lock for that, and those that come later find the instant of this process.

    Args:
        context: the open table.
        options: how long to wait in addition to the time after which a dead writer shows.
        timeline: as read when the instant was put on it, or later; None to read it now.
        requested: requested time of the instant that is about to be committed; None if it has none yet.

    Raises:
        LostRaceError: one of them still has not.
    """
    storage, clock, failed = context.storage, context.clock, options.failed_writes
    # Live writers are refused without several writers, and none lives without a heartbeat.
    if not failed.spares_writers or (timeline is None and not storage.list_files(HEARTBEAT_FOLDER)):
        return
    deadline_ms, pause = clock.now_ms() + options.locking.wait_ms + failed.alive_ms, _PAUSE_SECONDS
    while late := alive_elsewhere(storage, clock, _not_begun(timeline or _load(context), requested), failed):
        if clock.now_ms() > deadline_ms:
            raise LostRaceError(
                f"Another writer put {describe_instant(storage, clock, late[0])} on the timeline and still"
                " looks up where"
                " to write: it would not notice what is committed now, and rows would be lost. Nothing was"
                " committed. Try again when it is done, or wait longer with hoodie.write.lock.wait_time_ms.",
                table=storage.spec.uri,
                instant=late[0].requested,
            )
        clock.sleep(pause * jitter(context.ids))
        timeline, pause = None, min(2 * pause, _PAUSE_SECONDS_MAX)


def _load(context: TableContext) -> Timeline:
    return TimelineStore(context.storage, load_config(context.storage), context.clock).load()


def _not_begun(timeline: Timeline, requested: str | None) -> list[Instant]:
    pending = [each for each in timeline.pending_writes() if each.state is State.REQUESTED]
    return [each for each in pending if requested is None or each.requested < requested]


def rivals_of(facts: WriteFacts, options: WriteOptions) -> tuple[str, ...]:
    """Return the requested times of the live writes that began before; none without early detection.

    Args:
        facts: the table when the write began.
        options: of the write.
    """
    if options.is_non_blocking or not options.concurrency.detects_early:
        return ()
    context, pending = facts.locked.context, facts.timeline.pending_writes()
    alive = alive_elsewhere(context.storage, context.clock, pending, options.failed_writes)
    return tuple(each.requested for each in alive)


def own_changes(
    metadata: CommitMetadata, verb: Verb, source: BoundSource, plan: WritePlan, options: WriteOptions
) -> OwnChanges:
    """Return what a write read and changed; others may be in conflict with it.

    Args:
        metadata: what it is about to commit.
        verb: rules of the operation.
        source: of its rows.
        plan: of the write.
        options: of the write.
    """
    reads = source.reads(metadata.touched)
    is_upsert = verb.looks_up and not verb.is_delete and plan.duplicates == "none"
    if is_upsert and reads is NO_ROWS and not plan.index.is_global:  # it has a row wherever it looked
        reads = Reads(looked_at=InPartitions(frozenset(stat.partition for stat in metadata.stats)))
    return OwnChanges(
        metadata,
        tags=verb.looks_up or plan.duplicates != "none",
        is_hashed=plan.index.is_hashed,
        is_global=plan.index.is_global,
        fills_logs=plan.index.can_index_log_files,
        reads=reads,
        overwrites=bool(verb.replaces),
        overwrites_table=verb.replaces == "table" or (bool(verb.replaces) and plan.index.is_global),
        non_blocking=options.is_non_blocking,
        requested=plan.settings.instant,
        precedes_clusterings=options.concurrency.prefers_writers,
        by_commit_time=plan.settings.config.merge_mode is not MergeMode.EVENT_TIME_ORDERING,
    )


def checked_timeline(
    facts: WriteFacts, own: OwnChanges, options: WriteOptions, reserved: Parts | None = None
) -> Timeline:
    """Check a write that is about to commit under the table lock; return the current timeline.

    The metadata of its partitions is put again if a clean may have deleted it meanwhile. The lock is given up
    while the write waits for one that goes first.

    Args:
        facts: the table when the write began.
        own: what the write changed.
        options: of the write: how long it waits.
        reserved: where the write goes first and waits for nobody; None if it does not go first.

    Raises:
        LostRaceError: it conflicts with what others did since it began.
        OutrunError: so it does, where it has reserved nothing.
        ReservedError: another write goes first there.
    """
    locked = facts.locked
    if reserved is None:
        now = _unreserved(locked, own, options)
    else:
        now = locked.store.load_barred(own.requested)
        stray = changed_parts(own.metadata.touched) - reserved
        refuse_reserved(locked.context, now, stray, options.failed_writes, own.requested)
    if now.find(facts.time) is None:
        raise rolled_back_error(locked, now, facts.time)
    properties = load_config(locked.context.storage).properties
    if properties != locked.config.properties and changed_properties(locked.config.properties, properties):
        who = changed_by(locked.context.storage)
        raise properties_race(facts.time, locked.config.properties, properties, who)
    _refuse_conflicts(own, facts, now, reserved)
    if any(each.action is Action.CLEAN and each not in facts.timeline.instants for each in now.instants):
        # It may have dropped a partition that was empty until this write put its first file there.
        for partition in sorted({stat.partition for stat in own.metadata.stats}):
            ensure_partition_metadata(locked.context.storage, partition, facts.time)
    return now


def _refuse_conflicts(own: OwnChanges, facts: WriteFacts, now: Timeline, reserved: Parts | None) -> None:
    try:
        refuse_conflicts(own, facts.timeline, now, facts.locked)
    except LostRaceError as lost:
        if reserved is None or not conflict_scope((own,)) - reserved:
            raise
        raise OutrunError(lost.message, instant=lost.instant) from lost


def _unreserved(locked: LockedTable, own: OwnChanges, options: WriteOptions) -> Timeline:
    """Return the timeline once no other write goes first where a write changed something.

    Raises:
        ReservedError: another one still does at the end of the wait.
    """
    context, failed = locked.context, options.failed_writes
    deadline_ms = context.clock.now_ms() + options.locking.wait_ms
    while True:
        listed = [status.path for status in context.storage.list_files(LOCK_FOLDER)]
        # Those come first whose processes had decided to commit when they died or lost the lock.
        now = locked.store.load_barred(own.requested, listed)
        if all(each.requested == own.requested for each in now.pending_writes()):
            return now
        try:
            changed = changed_parts(own.metadata.touched)
            refuse_reserved(context, now, changed, failed, own.requested, listed)
            return now
        except ReservedError as error:
            with locked.lock.released():
                await_reserved(context, failed, error, deadline_ms)


def schema_to_commit(facts: WriteFacts, schema_json: str, now: Timeline, options: WriteOptions) -> str:
    """Return the table schema for the commit metadata of a write (RFC-82).

    Args:
        facts: the table when the write began.
        schema_json: the schema with which the write wrote its files.
        now: the timeline under the table lock.
        options: of the write.

    Raises:
        LostRaceError: this write and another one changed the schema.
    """
    if now.writes() == facts.timeline.writes() or not options.concurrency.resolves_schemas:
        return schema_json
    return resolved_schema(facts, schema_json, now)


@contextmanager
def lock_released(transaction: Transaction, facts: WriteFacts) -> Iterator[None]:
    """Release the table lock for a block of code that writes the files of a write.

    Args:
        transaction: the write; it holds the lock.
        facts: the table when the write began.

    Raises:
        LostRaceError: the block failed because of what other writers did meanwhile.
    """
    try:
        with transaction.locked.lock.released():
            transaction.locked.store.flush()
            yield
    except (DrawstringError, OSError) as error:
        if (lost := _race_behind(error, transaction, facts)) is not None:
            raise lost from error
        raise


def _race_behind(
    error: DrawstringError | OSError, transaction: Transaction, facts: WriteFacts
) -> LostRaceError | None:
    """Return the race that a write lost if that is why it failed, else None."""
    own = transaction.instant.requested
    try:
        now = transaction.locked.store.load()
    except (DrawstringError, OSError):
        return None
    if now.find(own) is None:
        return rolled_back_error(transaction.locked, now, own)
    others = tuple(each for each in now.instants if each.requested != own)
    if isinstance(error, FileNotFoundError | MissingFileError) and others != facts.timeline.instants:
        return files_deleted(facts.timeline, now, own)
    return None
