"""Reservations: the partitions where a write that lost before goes first.

    .hoodie/.locks/<T>.reserved     {"partitions": ["rome"]}; null for the whole table

A write that runs for the last time reserves, when it begins under the table lock, the partitions in which its
earlier attempts wrote. Then it writes rows without the lock, like any other. Whoever else would commit there
waits until it is done, and services plan nothing there. Writes to other partitions go on. If it writes
outside its reservation (a row that was late before), it gives way there like anybody else, and runs again
with a larger one. A reservation counts as long as its write is pending and the process of it lives.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from drawstring.base.clock import jitter
from drawstring.base.errors import DrawstringError, ReservedError
from drawstring.config.keys.concurrency import FailedWrites
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.write.markers import Markers
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.protocol import LOCK_FOLDER, RESERVED_SUFFIX, Storage
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.conflict_resolution import OwnChanges
from drawstring.txn.heartbeat import alive_elsewhere, instant_name
from drawstring.txn.read_set import Groups, InGroups, InPartitions, nowhere, shown
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable

_FILE: Final = f"{LOCK_FOLDER}/{{}}{RESERVED_SUFFIX}"
_PAUSE_SECONDS: Final = 0.02
_PAUSE_SECONDS_MAX: Final = 0.25
_SHOWN: Final = 5
_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a table.

    Attributes:
        partitions: paths; None for the whole table.
    """

    partitions: frozenset[str] | None

    def __or__(self, other: Parts) -> Parts:
        if self.partitions is None or other.partitions is None:
            return WHOLE_TABLE
        return Parts(self.partitions | other.partitions)

    def __sub__(self, other: Parts) -> Parts:
        """Return these without others; the whole table stays whole without partitions."""
        if other.partitions is None:
            return NO_PARTS
        return self if self.partitions is None else Parts(self.partitions - other.partitions)

    def __bool__(self) -> bool:
        return self.partitions is None or bool(self.partitions)

    def overlap(self, other: Parts) -> bool:
        """Return whether both have a partition in common."""
        if self.partitions is None or other.partitions is None:
            return bool(self) and bool(other)
        return not self.partitions.isdisjoint(other.partitions)

    def has(self, partition: str) -> bool:
        """Return whether a partition is one of these."""
        return self.partitions is None or partition in self.partitions

    def __str__(self) -> str:
        if self.partitions is None or self.partitions == {""}:
            return "the whole table"
        names = ", ".join(sorted(self.partitions)[:_SHOWN])
        more = len(self.partitions) - _SHOWN
        noun = "partition" if len(self.partitions) == 1 else "partitions"
        return f"{noun} {names}" + (f" and {more} more" if more > 0 else "")


WHOLE_TABLE: Final = Parts(None)
NO_PARTS: Final = Parts(frozenset())


def changed_parts(groups: Iterable[tuple[str, str]]) -> Parts:
    """Return the partitions of file groups."""
    return Parts(frozenset(partition for partition, _ in groups))


def conflict_scope(attempts: Iterable[OwnChanges]) -> Parts:
    """Return where others may conflict with a write, by its attempts so far; anywhere without any."""
    return reduce(or_, map(_scope_of_attempt, attempts), NO_PARTS) or WHOLE_TABLE


def _scope_of_attempt(own: OwnChanges) -> Parts:
    depends_on = own.reads.depends_on
    if own.is_global or own.overwrites_table:
        return WHOLE_TABLE
    if isinstance(depends_on, InPartitions):
        return Parts(depends_on.paths) | changed_parts(own.metadata.touched)
    is_known = depends_on is nowhere or isinstance(depends_on, InGroups)
    return changed_parts(own.metadata.touched) if is_known else WHOLE_TABLE


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a pending write has reserved.

    Attributes:
        write: its instant.
        parts: where it goes first.
    """

    write: Instant
    parts: Parts


def reserve(locked: LockedTable, requested: str, parts: Parts) -> None:
    """Reserve parts of a table for a write that was just put on the timeline, until it is over.

    Args:
        locked: the table, locked since the reservations of others were looked at.
        requested: requested time of the write.
        parts: where it goes first.
    """
    storage, path = locked.context.storage, _FILE.format(requested)
    paths = None if parts.partitions is None else sorted(parts.partitions)
    storage.put(path, json.dumps({"partitions": paths}).encode())
    locked.lock.afterwards(lambda: _give_back(storage, path))
    _log.info("The write %s runs for the last time after conflicts, and goes first in %s.", requested, parts)


def _give_back(storage: Storage, path: str) -> None:
    try:
        storage.delete([path])
    except (DrawstringError, OSError) as error:
        _log.warning("%s could not be deleted; it counts no more, as its write is over: %s", path, error)


def reservations(
    context: TableContext,
    timeline: Timeline,
    failed: FailedWrites,
    own: str = "",
    listed: Collection[str] | None = None,
) -> list[Reservation]:
    """Return the reservations of live writes.

    Args:
        context: the open table.
        timeline: as it is now.
        failed: the greatest age of a live heartbeat.
        own: requested time of a write of this process, which does not count.
        listed: paths of the files in the folder of the locks, listed under the lock; None to list them.
    """
    storage = context.storage
    pending = {_FILE.format(each.requested): each for each in timeline.pending_writes()}
    pending.pop(_FILE.format(own), None)
    if listed is None:
        listed = [status.path for status in storage.list_files(LOCK_FOLDER)] if pending else ()
    found = [pending[path] for path in sorted(listed) if path in pending]
    alive = alive_elsewhere(storage, context.clock, found, failed)
    return [Reservation(each, _reserved_by(storage, each)) for each in alive]


def _reserved_by(storage: Storage, write: Instant) -> Parts:
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):  # given back, or cut short
        paths = json.loads(storage.read(_FILE.format(write.requested)))["partitions"]
        return WHOLE_TABLE if paths is None else Parts(frozenset(paths))
    return NO_PARTS


def reserved_parts(context: TableContext, timeline: Timeline, failed: FailedWrites) -> Parts:
    """Return where a service must not plan anything now; arguments as of `reservations`."""
    found = reservations(context, timeline, failed)
    return reduce(or_, (each.parts for each in found), NO_PARTS)


def refuse_reserved(
    context: TableContext,
    timeline: Timeline,
    parts: Parts,
    failed: FailedWrites,
    own: str = "",
    listed: Collection[str] | None = None,
) -> None:
    """Let the writes go first that reserved some parts of a table.

    Args:
        context: the open table, locked.
        timeline: as read under the lock.
        parts: that are about to be changed; nothing is looked at without any.
        failed: the greatest age of a live heartbeat.
        own: requested time of the write that is about to change them, if it has begun.
        listed: as of `reservations`.

    Raises:
        ReservedError: there is one.
    """
    for each in reservations(context, timeline, failed, own, listed) if parts else ():
        if each.parts.overlap(parts):
            raise _refusal(
                instant_name(context.storage, each.write),
                str(each.parts),
                each.write.requested,
                context.storage,
            )


def _refusal(
    writer: str, parts: str, requested: str, storage: Storage, groups: Groups = frozenset()
) -> ReservedError:
    """Return the error of those that wait for a write.

    Args:
        writer: the words that name the write.
        parts: the words that name where it goes first.
        requested: its requested time.
        storage: the table's files.
        groups: the file groups that it has begun files for, if they were looked up.
    """
    work = f" It is at work in {shown(groups)}." if groups else ""
    return ReservedError(
        f"Another writer goes first in {parts}: {writer}, which runs for the last time after conflicts.{work}"
        " Nothing of this write was committed. Write again when it is done, or wait longer with"
        " hoodie.write.lock.wait_time_ms.",
        writer=writer,
        parts=parts,
        groups=groups,
        table=storage.spec.uri,
        instant=requested,
    )


def await_reserved(
    context: TableContext, failed: FailedWrites, refused: ReservedError, deadline_ms: int
) -> None:
    """Wait, without the table lock, until the write that an error names has given its reservation back.

    Args:
        context: the open table.
        failed: the greatest age of a live heartbeat.
        refused: names the write.
        deadline_ms: in epoch milliseconds.

    Raises:
        ReservedError: it has not until then, though its process lives.
    """
    clock, pause = context.clock, _PAUSE_SECONDS
    write = Instant(refused.instant or "", Action.COMMIT, State.INFLIGHT)
    while context.storage.exists(_FILE.format(write.requested)):
        if not alive_elsewhere(context.storage, clock, (write,), failed):
            return
        remaining_ms = deadline_ms - clock.now_ms()
        if remaining_ms <= 0:
            raise _with_groups(context.storage, refused, write.requested)
        clock.sleep(min(pause * jitter(context.ids), remaining_ms / 1000))
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)


def _with_groups(storage: Storage, refused: ReservedError, requested: str) -> ReservedError:
    """Return the error with the file groups that the other write has begun files for by now."""
    groups: Groups = frozenset()
    with suppress(DrawstringError, OSError):
        groups = Markers(storage, requested).groups()
    return _refusal(refused.writer, refused.parts, requested, storage, groups)


def await_unreserved(context: TableContext, options: WriteOptions) -> None:
    """Wait before a service is planned, without the table lock, until no write goes first anywhere.

    What is still reserved after `hoodie.write.lock.wait_time_ms` is left out of the plan.

    Args:
        context: the open table.
        options: of the service: how long it waits.
    """
    clock, failed, pause = context.clock, options.failed_writes, _PAUSE_SECONDS
    deadline_ms = clock.now_ms() + options.locking.wait_ms
    store = TimelineStore(context.storage, load_config(context.storage), clock)
    while any(name.endswith(RESERVED_SUFFIX) for name in context.storage.list_names(LOCK_FOLDER)):
        if clock.now_ms() >= deadline_ms or not reservations(context, store.load(), failed):
            return
        clock.sleep(pause * jitter(context.ids))
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)
