"""The active timeline as an immutable value: completed and pending instants in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

from drawstring.base.display import Grid, ShowsGrid
from drawstring.model.instant import FILE_ACTIONS, WRITE_ACTIONS, Action, Instant, State, time_of
from drawstring.model.table_version import TimelineLayout
from drawstring.timeline.instants import noted_in, parse_instant

_CACHED: Final = 16
"""Number of timelines that are kept parsed."""

_SHOWN: Final = 20
"""Number of instants that a timeline shows itself by."""

_SECONDS_CACHED: Final = 4096
"""Number of seconds whose instants are kept parsed."""

_SECOND: Final = itemgetter(slice(14))
"""The part of a file name that tells the second of the requested time."""


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(ShowsGrid):
    """The instants of the active timeline, each once, in its furthest state. Shows itself as a table.

    Attributes:
        instants: sorted by requested time, then action.
        start: requested time of the first write of the active timeline that no savepoint keeps there (Hudi:
            getFirstNonSavepointCommit); earlier instants were archived and count as committed, except those
            that are known not to have completed. None for a table without writes.
        rolled_back: requested times of recently rolled back instants. A stalled writer may still create files
            of them, which never count.
        stray: instants that only look pending or completed: a stalled process put their inflight files again
            after they had been archived, or their completed files after a restore had undone them.
    """

    instants: tuple[Instant, ...] = ()
    start: str | None = None
    rolled_back: frozenset[str] = frozenset()
    stray: tuple[Instant, ...] = ()
    _pending: tuple[Instant, ...] = field(init=False, repr=False, compare=False)
    _writes: Mapping[str, Instant] = field(init=False, repr=False, compare=False)
    _uncommitted: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unfinished = tuple(instant for instant in self.instants if not instant.is_completed)
        object.__setattr__(self, "_pending", unfinished)
        writes = {instant.requested: instant for instant in self.instants if instant.is_write}
        pending = frozenset(instant.requested for instant in self.pending_of(*FILE_ACTIONS))
        object.__setattr__(self, "_writes", writes)
        uncommitted = (pending | self.rolled_back).difference(writes)
        object.__setattr__(self, "_uncommitted", uncommitted)

    def __repr__(self) -> str:
        return str(self)

    def _grid(self) -> Grid:
        shown, count = self.instants[-_SHOWN:], len(self.instants)
        rows = [(each.requested, str(each.action), str(each.state), each.completed) for each in shown]
        earlier = f"and {count - len(shown):,} earlier ones" if count > len(shown) else ""
        title = f"Timeline of {count:,} {'instant' if count == 1 else 'instants'}"
        return Grid(title, ("requested", "action", "state", "completed"), rows, earlier)

    @staticmethod
    def of(files: Iterable[Instant], rolled_back: Collection[str] = ()) -> Timeline:
        """Build a timeline from its files, in any order.

        Args:
            files: the instant and state of each file.
            rolled_back: requested times of instants that were rolled back.
        """
        return _joined((_Begun.of(files),), rolled_back)

    @property
    def uncommitted(self) -> frozenset[str]:
        """Requested times of instants that do not count: pending and rolled back ones."""
        return self._uncommitted

    def writes(self) -> tuple[Instant, ...]:
        """Return the completed writes by requested time: commits, delta commits, replace commits."""
        return tuple(self._writes.values())

    def latest_write(self) -> Instant | None:
        """Return the completed write with the greatest requested time."""
        return next(reversed(self.writes()), None)

    def pending(self) -> tuple[Instant, ...]:
        """Return the instants that are not completed, of all actions."""
        return self._pending

    def pending_writes(self) -> tuple[Instant, ...]:
        """Return the pending writes of data, not those of compaction or clustering."""
        return tuple(instant for instant in self.pending() if instant.action in WRITE_ACTIONS)

    def pending_of(self, *actions: Action) -> tuple[Instant, ...]:
        """Return the pending instants of some actions."""
        return tuple(instant for instant in self.pending() if instant.action in actions)

    def shares_time(self, instant: Instant) -> bool:
        """Return whether another action has the requested time of a pending instant; savepoints do by design.

        A process that lost the table lock put one of them on the timeline. The metadata table knows one
        action of each time, as its delta commits have the times of the data table's instants.
        """
        mine = instant.action.completed_action
        return any(
            other.requested == instant.requested
            and other.action is not Action.SAVEPOINT
            and other.action.completed_action is not mine
            for other in self.instants
        )

    def completed_of(self, *actions: Action) -> tuple[Instant, ...]:
        """Return the completed instants of some actions, given as they are called when completed."""
        return tuple(
            instant for instant in self.instants if instant.is_completed and instant.action in actions
        )

    def is_archived(self, requested: str) -> bool:
        """Return whether an instant lies before the active timeline, and so counts as committed."""
        return self.start is not None and requested < self.start and requested not in self._uncommitted

    def completion_of(self, requested: str) -> str | None:
        """Return the completion time of a write, None if it is not completed.

        Without a known completion time (version 6, archived instants) this is the requested time.
        """
        write = self._writes.get(requested)
        if write is not None:
            return time_of(write)
        return requested if self.is_archived(requested) else None

    def has_completed(self, requested: str) -> bool:
        """Return whether a write is completed; archived writes are."""
        return self.completion_of(requested) is not None

    def write_at(self, requested: str) -> Instant | None:
        """Return the completed write with a requested time, None without one."""
        return self._writes.get(requested)

    def find(self, requested: str) -> Instant | None:
        """Return the instant with a requested time, other than a savepoint; None without one."""
        return next(
            (i for i in self.instants if i.requested == requested and i.action is not Action.SAVEPOINT), None
        )

    def until(self, requested: str) -> Timeline:
        """Return the timeline of the instants requested up to a time, inclusive."""
        instants = tuple(instant for instant in self.instants if instant.requested <= requested)
        return self.with_instants(instants)

    def completed_by(self, time: str, besides: Collection[str] = ()) -> Timeline:
        """Return the timeline without the instants that completed after a time.

        Args:
            time: a completion time; a requested time for instants without a completion time.
            besides: requested times of instants to keep in any case.
        """
        instants = tuple(
            instant
            for instant in self.instants
            if not instant.is_completed or time_of(instant) <= time or instant.requested in besides
        )
        return self.with_instants(instants)

    def first_after(self, time: str) -> str | None:
        """Return the least requested time of the writes that completed after a time, None without any."""
        later = (instant.requested for instant in self.writes() if time_of(instant) > time)
        return min(later, default=None)

    def with_instants(self, instants: tuple[Instant, ...]) -> Timeline:
        """Return this timeline with other instants, given in order."""
        return Timeline(instants, self.start, self.rolled_back, self.stray)

    def with_clusterings(self, times: Collection[str]) -> Timeline:
        """Return this timeline with some pending insert-overwrites as clusterings (see `TimelineStore.load`).

        Args:
            times: their requested times.
        """
        overwrites = self.pending_of(Action.REPLACE_COMMIT)
        clusterings = {each for each in overwrites if each.requested in times}
        return self.with_instants(
            tuple(
                Instant(each.requested, Action.CLUSTERING, each.state) if each in clusterings else each
                for each in self.instants
            )
        )

    def with_completed(self, completed: Instant) -> Timeline:
        """Return this timeline once an instant, new or pending, has completed."""
        requested, action = completed.requested, completed.action
        others = (
            each
            for each in self.instants
            if each.requested != requested or each.action.completed_action is not action
        )
        instants = _in_order((*others, completed))
        begun = {each.requested for each in instants if each.requested >= (self.start or "")}
        return Timeline(instants, _start(instants, begun | {requested}), self.rolled_back, self.stray)

    def latest_time(self) -> str | None:
        """Return the greatest requested or completion time of any instant."""
        times = [time_of(instant) for instant in self.instants]
        times += [instant.requested for instant in self.instants]
        return max(times, default=None)


@lru_cache(maxsize=_CACHED)
def timeline_of(names: tuple[str, ...], layout: TimelineLayout) -> Timeline:
    """Return the timeline of a folder with some files: a commit loads the same state several times.

    Args:
        names: of all files; those that are not instants are ignored.
        layout: of the timeline.
    """
    return _joined([_of_second(tuple(some), layout) for _, some in groupby(names, _SECOND)], noted_in(names))


@lru_cache(maxsize=_SECONDS_CACHED)
def _of_second(names: tuple[str, ...], layout: TimelineLayout) -> _Begun:
    """Return the instants of one second: between two loads of a timeline those of few seconds change."""
    parsed = (parse_instant(name, layout) for name in names)
    return _Begun.of(each for each in parsed if each is not None)


@dataclass(frozen=True, slots=True)
class _Begun:
    """Instants, none of which has files among others.

    Attributes:
        instants: in their furthest states, sorted.
        begun: requested times of those with a requested or inflight file.
        requested: requested times of those with a requested file.
    """

    instants: tuple[Instant, ...]
    begun: frozenset[str]
    requested: frozenset[str]

    @staticmethod
    def of(files: Iterable[Instant]) -> _Begun:
        furthest: dict[tuple[str, Action], Instant] = {}
        begun: set[str] = set()
        requested: set[str] = set()
        for instant in files:
            key = (instant.requested, instant.action.completed_action)
            known = furthest.get(key)
            furthest[key] = instant if known is None else _further_state(known, instant)
            if instant.state is not State.COMPLETED:
                begun.add(instant.requested)
                if instant.state is State.REQUESTED:
                    requested.add(instant.requested)
        return _Begun(_in_order(furthest.values()), frozenset(begun), frozenset(requested))


def _joined(parts: Sequence[_Begun], rolled_back: Collection[str]) -> Timeline:
    """Return the timeline of instants that are sorted, part after part."""
    instants = tuple(chain.from_iterable(each.instants for each in parts))
    begun, requested = (
        frozenset().union(*(part.begun for part in parts)),
        frozenset().union(*(part.requested for part in parts)),
    )
    late = tuple(each for each in instants if _is_undone(each, begun, rolled_back)) if rolled_back else ()
    counted = tuple(instant for instant in instants if instant not in late) if late else instants
    start = _start(counted, begun)
    stray = tuple(instant for instant in counted if _is_stray(instant, requested, start))
    counted = tuple(instant for instant in counted if instant not in stray) if stray else counted
    return Timeline(counted, start, frozenset(rolled_back), (*stray, *late))


def _in_order(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    return tuple(sorted(instants, key=lambda each: (each.requested, each.action)))


def _further_state(one: Instant, other: Instant) -> Instant:
    """Return the further state; of two completed files the one completed first, so that all readers agree."""
    if one.state is not other.state:
        return one if one.state > other.state else other
    return min(one, other, key=lambda instant: instant.completed or "")


def _is_undone(instant: Instant, begun: Collection[str], rolled_back: Collection[str]) -> bool:
    """Return whether a restore undid a completed write whose completed file is there alone."""
    return instant.is_write and instant.requested in rolled_back and instant.requested not in begun


def _is_stray(instant: Instant, requested: Collection[str], start: str | None) -> bool:
    """Return whether an instant before the start of the active timeline has only an inflight file."""
    if instant.is_completed or instant.action not in FILE_ACTIONS or start is None:
        return False
    return instant.requested < start and instant.requested not in requested


def _start(instants: tuple[Instant, ...], begun: Collection[str]) -> str | None:
    """Find the first write that is not archived; savepointed writes stay behind when others are archived.

    Archiving removes requested and inflight files first. So a write with only a completed file is already in
    the archive: either the archiver died, or a stalled writer put its completed file again. A pending write
    does not show either how far archiving came.

    Args:
        instants: of the timeline, sorted.
        begun: requested times of the instants with a requested or inflight file.
    """
    savepointed = {instant.requested for instant in instants if instant.action is Action.SAVEPOINT}
    in_archive: str | None = None
    pending: str | None = None
    kept: str | None = None
    for instant in instants:
        requested = instant.requested
        if instant.action.completed_action not in WRITE_ACTIONS:
            continue
        if requested in savepointed:
            kept = kept or requested
        elif not instant.is_completed:
            pending = pending or requested
        elif requested not in begun:
            in_archive = in_archive or requested
        else:
            return requested
    return in_archive or pending or kept
