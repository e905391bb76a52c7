"""Who holds the locks of a table, waits for them, or works on it without them."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.base.display import Grid, ShowsGrid
from drawstring.model.instant import Instant


@dataclass(frozen=True, slots=True)
class LockState:
    """A lock on the whole table.

    Attributes:
        provider: value of `hoodie.write.lock.provider` that stands for it.
        holder: who holds it, as in messages; empty if it is free.
        waiters: the processes that wait for it, the next one first; None if waiters leave no trace.
    """

    provider: str
    holder: str
    waiters: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class PendingWork:
    """An instant that is requested or inflight.

    Attributes:
        instant: the instant.
        process: the process that works on it, or its engine; empty if no file tells.
        is_alive: whether a live process works on it; None for actions that are done under the table lock.
        heartbeat_age_ms: milliseconds since its last heartbeat; None without one.
        heartbeat_left_ms: milliseconds until that expires, negative since it did; None without one.
        reserves_table: whether it goes first in the whole table.
        reserved_partitions: the partitions where it goes first.
        file_groups: those that it has begun files for or has planned to rewrite, as `partition/file id`.
        advice: what to do about it.
    """

    instant: Instant
    process: str
    is_alive: bool | None
    heartbeat_age_ms: int | None
    heartbeat_left_ms: int | None
    reserves_table: bool
    reserved_partitions: tuple[str, ...]
    file_groups: tuple[str, ...]
    advice: str


@dataclass(frozen=True, slots=True)
class TableLocks(ShowsGrid):
    """Who works on a table. It shows itself as a table, in notebooks too.

    Attributes:
        locks: the locks on the whole table.
        pending: the instants that are requested or inflight, oldest first.
    """

    locks: tuple[LockState, ...]
    pending: tuple[PendingWork, ...]

    def _grid(self) -> Grid:
        held = [(f"lock ({each.provider})", each.holder or "free", "", "") for each in self.locks]
        work = [
            (f"{each.instant.action} {each.instant.requested}", each.process, each.is_alive, each.advice)
            for each in self.pending
        ]
        note = "" if work else "Nothing is pending."
        return Grid("Locks and pending work", ("what", "who", "is alive", "advice"), [*held, *work], note)
