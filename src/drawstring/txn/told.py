"""How messages name what others work on: the action, its instant, the process, and the file groups.

    the commit 20260101000000000 of process 7 on host, at work in rome/8c1f...

A process is known from the files by which it shows that it lives; file groups of a write are those that it
has begun files for, by its markers, and those of a service are the ones of its plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import DrawstringError
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.formats.metadata.commit import compacted_groups
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import FILE_ACTIONS, PLANNED_ACTIONS, Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.heartbeats import HEARTBEAT_FOLDER, OF_DRAWSTRING
from drawstring.txn.locks.file_lock import FileLock
from drawstring.txn.locks.lease_lock import Lease
from drawstring.txn.locks.service_lease import LEASE_FILE
from drawstring.txn.reach import Groups, shown

_TOLD: Final = 3
"""How many pending instants a message names."""
_NAME_MAX: Final = 200
_UNREADABLE: Final = (DrawstringError, OSError, UnicodeDecodeError)


def told(storage: Storage, clock: Clock, work: Instant) -> str:
    """Name a pending instant for a message.

    Args:
        storage: the table's files.
        clock: for reading the timeline.
        work: the instant.
    """
    return named(storage, work) + told_groups(storage, clock, work)


def named(storage: Storage, work: Instant) -> str:
    """Name a pending instant by its action, its time and, where a file tells, its process."""
    who = process_of(storage, work)
    return f"the {work.action} {work.requested}{f' of {who}' if who else ''}"


def told_groups(storage: Storage, clock: Clock, work: Instant) -> str:
    """Return the words for the file groups of a pending instant, led by a comma; empty without any."""
    groups = groups_of(storage, clock, work)
    return f", at work in {shown(groups)}" if groups else ""


def told_commit(instant: Instant, metadata: CommitMetadata) -> str:
    """Name a completed write of somebody else for a message, with its process if it noted it."""
    return f"The {instant.action} {instant.requested} of {another_writer(metadata)}"


def another_writer(metadata: CommitMetadata) -> str:
    """Return the words for the writer of a commit, with its process if the commit notes it."""
    return f"another writer ({metadata.writer})" if metadata.writer else "another writer"


def told_pending(storage: Storage, clock: Clock) -> str:
    """Return a sentence that names what is pending on a table, led by a space; empty if that is nothing."""
    pending: Sequence[Instant] = ()
    with suppress(DrawstringError, OSError):
        pending = TimelineStore(storage, load_config(storage), clock).load().pending_of(*FILE_ACTIONS)
    if not pending:
        return ""
    names = "; ".join(told(storage, clock, each) for each in pending[-_TOLD:])
    more = f"; and {len(pending) - _TOLD} more" if len(pending) > _TOLD else ""
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
    if content == OF_DRAWSTRING:
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
