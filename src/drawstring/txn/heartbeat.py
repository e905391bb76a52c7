"""Write and read heartbeats, and find out which pending instants a live process works on.

    .hoodie/.heartbeat/<T>       empty, in object stores the name of the process of drawstring (Hudi looks at
                                 the time of the file only); of a single writer or a service `drawstring`
    .hoodie/.locks/<T>.service   on local files, locked by a process of drawstring that writes beside others

Each pending write has a heartbeat file, which the writer touches while the write goes on. The signs of life
of a pending instant are:

    write of Hudi                        its heartbeat is young
    write of drawstring beside others    its heartbeat is young, and on local files its process holds its lock
    single write of drawstring           its process holds the table lock
    service of drawstring                its process holds the lease of the plan; its heartbeat is for Hudi
    service of Hudi                      its heartbeat is young

A single writer of drawstring is dead as soon as another process holds the table lock. Under the LAZY policy
(failed writes are left to the cleaner) it writes heartbeats for Hudi, which takes a write without a
heartbeat for dead. A running compaction or clustering of drawstring writes heartbeats for Hudi too; other
processes of drawstring look at its lease. Cleans, archiving and all other actions under the table lock need
no sign of life.

The lock of a process ends with the process, so the next writer need not wait for the heartbeat to expire.

An empty heartbeat file is not flushed to the disk. The flush would take longer than all other steps of a
write under the table lock when it begins. A power cut may lose the file, but it ends the writer too.

Names in messages: a message names a pending instant by its action, its requested time, its process and its
file groups (`describe_instant`). Lock files and heartbeats name the process. The file groups of a write are
those that its markers name; the file groups of a service are those in its plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, DrawstringError, UnavailableError
from drawstring.base.resources import Renewal, this_process
from drawstring.config.keys.concurrency import DEFAULT_FAILED_WRITES, FailedWrites
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.commit import compacted_groups
from drawstring.formats.metadata.plans import decode_clustering_plan
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import FILE_ACTIONS, PLANNED_ACTIONS, Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.locks.file_lock import FileLock
from drawstring.txn.locks.service_lease import LEASE_FILE, is_leased, runner_of
from drawstring.txn.locks.storage_lock import LEASE_PATH, Lease
from drawstring.txn.locks.table_lock import FILE_LOCK_PATH, lock_at
from drawstring.txn.read_set import Groups, shown
from drawstring.txn.storage_clock import about_now_ms, passed_ms, storage_now_ms
from drawstring.txn.table_context import TableContext

HEARTBEAT_FOLDER: Final = ".hoodie/.heartbeat"
SINGLE_WRITER_CONTENT: Final = b"drawstring"
"""Content of a heartbeat that is for Hudi alone: a lock or a lease tells whether the process lives."""
_BESIDE_OTHERS: Final = b""
_TOLERANCE_MS: Final = 10_000
"""How far in the future a heartbeat may lie without a doubt about the clock of this machine."""
_log = logging.getLogger("drawstring")


def alive_elsewhere(
    storage: Storage,
    clock: Clock,
    pending: Collection[Instant],
    failed: FailedWrites,
    *,
    only_reads: bool = False,
) -> list[Instant]:
    """Return the instants of writers that live without the table lock, in the same order.

    The lock of a process of drawstring tells that it died before its heartbeat expires.

    Args:
        storage: the table's files.
        clock: the current time, which the clock of the storage corrects.
        pending: pending instants.
        failed: the greatest age of a live heartbeat.
        only_reads: whether to trust the clock of this machine rather than to write a file.
    """
    if not pending:
        return []
    ages = _ages(storage, clock, pending, failed, only_reads=only_reads)
    young = [each for each in pending if ages.get(each.requested, failed.alive_ms) < failed.alive_ms]
    return [each for each in young if not _held_lock(storage, each) and not has_died(storage, each)]


def expired(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites
) -> list[Instant]:
    """Return the instants whose heartbeat is missing or too old, in the same order."""
    ages, never_ms = _ages(storage, clock, pending, failed), failed.alive_ms + 1
    return [each for each in pending if ages.get(each.requested, never_ms) > failed.alive_ms]


def forget_heartbeats(
    storage: Storage, clock: Clock, pending: Collection[Instant], failed: FailedWrites
) -> None:
    """Delete expired heartbeats of instants that are not pending: their writers died after completing."""
    ages, times = _ages(storage, clock, None, failed), {instant.requested for instant in pending}
    old = [time for time, ms in ages.items() if time not in times and ms > failed.alive_ms]
    storage.delete([f"{HEARTBEAT_FOLDER}/{time}" for time in old])


def _ages(
    storage: Storage,
    clock: Clock,
    instants: Collection[Instant] | None,
    failed: FailedWrites,
    *,
    only_reads: bool = False,
) -> Mapping[str, int]:
    """Return the ages of heartbeats in milliseconds, by requested time.

    One that is too old is so by the clock of the storage.

    Args:
        storage: the table's files.
        clock: the current time, for what is young in any case.
        instants: of which to look at the heartbeats; None for all heartbeats.
        failed: the greatest age of a live heartbeat.
        only_reads: whether to trust the clock of this machine.
    """
    now_ms, found = about_now_ms(storage, clock), heartbeat_times(storage)
    times = found.keys() if instants is None else found.keys() & {each.requested for each in instants}
    passed, doubtful = passed_ms(storage), False
    ages: dict[str, int] = {}
    for time in times:
        is_old = passed - found[time] > failed.alive_ms
        ages[time] = (passed if is_old else now_ms) - found[time]
        doubtful |= not is_old and not -_TOLERANCE_MS <= ages[time] <= failed.alive_ms
    if only_reads or not doubtful:
        return ages
    now_ms = storage_now_ms(storage, clock)
    return {time: now_ms - ms for time, ms in heartbeat_times(storage).items() if time in times}


class Heartbeat:
    """The heartbeat of one write or service of this process.

    Args:
        storage: the table's files.
        clock: the current time, for the age of the last beat.
        requested: requested time of the write.
        failed: the interval of beats and the greatest age of a live heartbeat.
        is_leased: whether this process holds the lease of the instant, as a service does.
    """

    def __init__(
        self, storage: Storage, clock: Clock, requested: str, failed: FailedWrites, *, is_leased: bool = False
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._requested = requested
        self._failed = failed
        self._last_ms = 0
        self._is_anothers = False
        self._lock_path = LEASE_FILE.format(requested)
        local = storage.local_path(self._lock_path)
        self._tells_all = failed.spares_writers and not is_leased
        self._lock = FileLock(local) if self._tells_all and local is not None else None
        failure = f"The heartbeat of {requested} could not be written"
        self._renewal = Renewal(self._beat, failed.interval_ms / 1000, failure)

    @contextmanager
    def beating(self, defer: Callable[[Callable[[], None]], None]) -> Iterator[None]:
        """Keep the heartbeat during a block of code.

        Args:
            defer: takes the end of the heartbeat, which may come later.
        """
        self.start()
        try:
            yield
        finally:
            defer(self.stop)

    def start(self) -> None:
        """Write the heartbeat once, and repeat it in a daemon thread; lock the file of this process."""
        if self._lock is not None:
            with suppress(UnavailableError):  # a file system without locks: the heartbeat has to do
                self._lock.try_acquire()
        self._beat()
        self._renewal.start()

    def check(self) -> None:
        """Make sure that no other process may have taken this write for dead.

        Raises:
            ConflictError: the heartbeat is too old, because this process stalled for too long.
        """
        if self._clock.now_ms() - self._last_ms > self._failed.alive_ms:
            raise ConflictError(
                "This write sent no heartbeat for too long and may have been rolled back. Write again.",
                instant=self._requested,
            )

    def leave(self) -> None:
        """Let the file expire when this heartbeat stops: another write of the same time may beat there."""
        self._is_anothers = True

    def stop(self) -> None:
        """Stop beating and delete the files; a heartbeat that cannot be deleted expires."""
        self._renewal.stop()
        if self._is_anothers:
            if self._lock is not None:
                self._lock.release()
            return
        try:
            self._storage.delete([self._path, *([] if self._lock is None else [self._lock_path])])
        except (DrawstringError, OSError) as error:
            _log.warning(
                "The heartbeat of %s could not be deleted and expires by itself: %s", self._requested, error
            )
        finally:
            if self._lock is not None:
                self._lock.release()

    @property
    def _path(self) -> str:
        return f"{HEARTBEAT_FOLDER}/{self._requested}"

    def _beat(self) -> bool:
        now_ms = self._clock.now_ms()
        self._storage.put(self._path, self._content())
        self._last_ms = now_ms
        return True

    def _content(self) -> bytes:
        if not self._tells_all:
            return SINGLE_WRITER_CONTENT
        return _BESIDE_OTHERS if self._lock is not None else this_process().encode()


def heartbeat_times(storage: Storage) -> Mapping[str, int]:
    """Return the modification time of each heartbeat in epoch milliseconds, by requested time."""
    return {status.name: status.modified_ms for status in storage.list_files(HEARTBEAT_FOLDER)}


def has_died(storage: Storage, write: Instant) -> bool:
    """Return whether the lock that the process of a write holds while it lives is free.

    The lease of a plan tells nothing: its process may have died, and another engine runs the plan. In object
    stores no file does, whatever its name: a process that lost the table lock may have leased the requested
    time of a write for a plan that it could not schedule.
    """
    path = LEASE_FILE.format(write.requested)
    local = storage.local_path(path)
    if local is None or write.action in PLANNED_ACTIONS or not storage.exists(path):
        return False
    try:
        return not FileLock(local).is_held()
    except UnavailableError:  # a file system without locks: the heartbeat has to do
        return False


def _held_lock(storage: Storage, instant: Instant) -> bool:
    """Return whether the heartbeat is that of a process of drawstring with the table lock, or a lease."""
    try:
        return storage.read(f"{HEARTBEAT_FOLDER}/{instant.requested}") == SINGLE_WRITER_CONTENT
    except FileNotFoundError:
        return True


_PENDING_NAMED_MAX: Final = 3
"""How many pending instants a message names."""
_NAME_MAX: Final = 200
_UNREADABLE: Final = (DrawstringError, OSError, UnicodeDecodeError)


def describe_instant(storage: Storage, clock: Clock, work: Instant) -> str:
    """Name a pending instant for a message.

    Args:
        storage: the table's files.
        clock: for reading the timeline.
        work: the instant.
    """
    return instant_name(storage, work) + describe_file_groups(storage, clock, work)


def instant_name(storage: Storage, work: Instant) -> str:
    """Name a pending instant by its action, its time and, where a file tells, its process."""
    who = process_of(storage, work)
    return f"the {work.action} {work.requested}{f' of {who}' if who else ''}"


def describe_file_groups(storage: Storage, clock: Clock, work: Instant) -> str:
    """Return the words for the file groups of a pending instant, led by a comma; empty without any."""
    groups = groups_of(storage, clock, work)
    return f", at work in {shown(groups)}" if groups else ""


def describe_commit(instant: Instant, metadata: CommitMetadata) -> str:
    """Name a completed write of somebody else for a message, with its process if it noted it."""
    return f"The {instant.action} {instant.requested} of {another_writer(metadata)}"


def another_writer(metadata: CommitMetadata) -> str:
    """Return the words for the writer of a commit, with its process if the commit notes it."""
    return f"another writer ({metadata.writer})" if metadata.writer else "another writer"


def describe_pending(storage: Storage, clock: Clock) -> str:
    """Return a sentence that names what is pending on a table, led by a space; empty if that is nothing."""
    pending: Sequence[Instant] = ()
    with suppress(DrawstringError, OSError):
        pending = TimelineStore(storage, load_config(storage), clock).load().pending_of(*FILE_ACTIONS)
    if not pending:
        return ""
    names = "; ".join(describe_instant(storage, clock, each) for each in pending[-_PENDING_NAMED_MAX:])
    more = f"; and {len(pending) - _PENDING_NAMED_MAX} more" if len(pending) > _PENDING_NAMED_MAX else ""
    return f" Pending: {names}{more}."


def process_of(storage: Storage, work: Instant) -> str:
    """Return the process that works on a pending instant, or its engine; empty if no file tells."""
    path = LEASE_FILE.format(work.requested)
    local = storage.local_path(path)
    with suppress(*_UNREADABLE):
        if local is not None and storage.exists(path):
            lock = FileLock(local)
            return lock.holder() if lock.is_held() else ""
        if local is None and work.action in PLANNED_ACTIONS and (data := storage.read_versioned(path)):
            lease = Lease.decode(data[0])
            return "" if lease.expired else lease.owner.partition(", ")[2] or lease.owner
        return _of_heartbeat(storage.read(f"{HEARTBEAT_FOLDER}/{work.requested}"))
    return ""


def _of_heartbeat(content: bytes) -> str:
    if content == SINGLE_WRITER_CONTENT:
        return "a process of drawstring"
    return content.decode()[:_NAME_MAX] or "another engine"


def groups_of(storage: Storage, clock: Clock, work: Instant) -> Groups:
    """Return the file groups of a pending instant: begun, or in its plan; none if no file tells."""
    with suppress(*_UNREADABLE):
        if work.action in PLANNED_ACTIONS:
            return planned_groups(TimelineStore(storage, load_config(storage), clock), work)
        return Markers(storage, work.requested).groups()
    return frozenset()


def planned_groups(store: TimelineStore, plan: Instant) -> Groups:
    """Return the file groups that a pending compaction or clustering reads."""
    content = store.read_requested(plan)
    if plan.action is Action.CLUSTERING:
        return frozenset(decode_clustering_plan(content).inputs)
    return frozenset(compacted_groups(content))


_WAIT: Final = "Wait until it is done, or end that process."


def leased(context: TableContext, pending: Collection[Instant]) -> list[Instant]:
    """Return the plans among some pending instants that a process of drawstring runs; writes nothing."""
    storage, clock, ids = context.storage, context.clock, context.ids
    return [
        each
        for each in pending
        if each.action in PLANNED_ACTIONS and is_leased(storage, clock, ids, each.requested)
    ]


def active_instants(
    context: TableContext,
    pending: Collection[Instant],
    failed: FailedWrites = DEFAULT_FAILED_WRITES,
    *,
    holds_lock: bool = False,
) -> frozenset[str]:
    """Return the requested times of the pending instants that a live process works on; writes nothing.

    Args:
        context: the open table.
        pending: pending instants.
        failed: the greatest age of a live heartbeat.
        holds_lock: whether the caller holds the table lock, so that no single writer is at work.
    """
    storage, clock = context.storage, context.clock
    beating = alive_elsewhere(storage, clock, pending, failed, only_reads=True)
    alive = {*leased(context, pending), *beating}
    if not holds_lock and (silent := [each for each in pending if _is_silent(context, each)]):
        path = LEASE_PATH if context.storage.local_path("") is None else FILE_LOCK_PATH
        if lock_at(context.storage, context.clock, context.ids, path).is_held():
            alive.update(silent)
    return frozenset(each.requested for each in alive)


def _is_silent(context: TableContext, instant: Instant) -> bool:
    """Return whether an instant is one of a single writer, whose sign of life is the table lock."""
    paths = f"{HEARTBEAT_FOLDER}/{instant.requested}", LEASE_FILE.format(instant.requested)
    return instant.action not in PLANNED_ACTIONS and not any(map(context.storage.exists, paths))


def refuse_live_writers(
    storage: Storage,
    clock: Clock,
    pending: Collection[Instant],
    failed: FailedWrites = DEFAULT_FAILED_WRITES,
    advice: str = _WAIT,
    *,
    only_reads: bool = False,
) -> None:
    """Refuse to go on while writers that do not hold the table lock are alive.

    Args:
        storage: the table's files.
        clock: the current time, for the age of heartbeats.
        pending: pending instants.
        failed: the policy for failed writes, with the greatest age of a live heartbeat.
        advice: what to do, as the last sentences of the message.
        only_reads: whether nothing may be written to find out.

    Raises:
        ConflictError: another process or engine is writing one of the instants.
    """
    for instant in alive_elsewhere(storage, clock, pending, failed, only_reads=only_reads):
        raise ConflictError(
            "Another process or engine is writing to this table: the heartbeat of"
            f" {describe_instant(storage, clock, instant)} is younger than {failed.alive_ms // 1000} s."
            f" {advice}",
            table=storage.spec.uri,
            instant=instant.requested,
        )


def runs_elsewhere(
    context: TableContext, what: str, requested: str, work: Instant | None, advice: str = _WAIT
) -> ConflictError:
    """Return the error of a service whose instant another process has leased.

    Args:
        context: where the table is.
        what: the service, for the message.
        requested: requested time of the instant.
        work: the instant, for its file groups; None to name none.
        advice: what to do, as the last sentences of the message.
    """
    who = runner_of(context.storage, context.clock, context.ids, requested)
    where = "" if work is None else describe_file_groups(context.storage, context.clock, work)
    return ConflictError(
        f"Another process runs this {what} ({who}){where}. {advice}",
        table=context.storage.spec.uri,
        instant=requested,
    )


def refuse_live_work(context: TableContext, timeline: Timeline, failed: FailedWrites, purpose: str) -> None:
    """Leave what live processes are at work on alone: refuse to do something that needs the table for itself.

    A writer of another engine that does not know of claims would complete a write whose files are gone, and a
    service would find that the files it reads are gone.

    Args:
        context: the open table, locked.
        timeline: as read under the lock.
        failed: the greatest age of a live heartbeat.
        purpose: what the caller is about to do, as in `restore the table`.

    Raises:
        ConflictError: a process runs a service, or another process or engine writes.
    """
    pending = timeline.pending_of(*FILE_ACTIONS)
    storage, clock = context.storage, context.clock
    for each in leased(context, pending):
        raise ConflictError(
            f"Another process runs {describe_instant(storage, clock, each)}. End that process, or {purpose}"
            " when it is done.",
            table=storage.spec.uri,
            instant=each.requested,
        )
    refuse_live_writers(storage, clock, pending, failed, f"Stop it, or {purpose} when it is done.")
