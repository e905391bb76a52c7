"""The active timeline as one value: what was done to the table, and what is under way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from drawstring.model.instant import FILE_ACTIONS, WRITE_ACTIONS, Action, Instant, State, time_of


@dataclass(frozen=True, slots=True)
class Timeline:
    """The instants of the active timeline, each once, at its furthest state.

    Attributes:
        instants: sorted by requested time, then action.
        start: requested time of the first write of the active timeline; instants before it were
            archived and count as committed, save those that are known not to have completed. None for a table
            without writes.
        rolled_back: requested times of instants that were rolled back not long ago. A writer that stood still
            may make files of them at any time: they never count.
        stray: instants that only look pending: their inflight files were put once more, after they had been
            archived, by a process that stood still.
    """

    instants: tuple[Instant, ...] = ()
    start: str | None = None
    rolled_back: frozenset[str] = frozenset()
    stray: tuple[Instant, ...] = ()
    _writes: Mapping[str, Instant] = field(init=False, repr=False, compare=False)
    _uncommitted: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        writes = {instant.requested: instant for instant in self.instants if instant.is_write}
        pending = frozenset(each.requested for each in self.pending_of(*FILE_ACTIONS))
        object.__setattr__(self, "_writes", writes)
        object.__setattr__(self, "_uncommitted", (pending | self.rolled_back) - writes.keys())

    @staticmethod
    def of(files: Iterable[Instant], rolled_back: Collection[str] = ()) -> Timeline:
        """Build a timeline from what each of its files stands for, in any order.

        Args:
            files: an instant and state each.
            rolled_back: requested times of instants that were rolled back.
        """
        furthest: dict[tuple[str, Action], Instant] = {}
        begun: set[str] = set()
        requested: set[str] = set()
        for instant in files:
            key = (instant.requested, instant.action.completed_action)
            known = furthest.get(key)
            furthest[key] = instant if known is None else _further(known, instant)
            if not instant.is_completed:
                begun.add(instant.requested)
            if instant.state is State.REQUESTED:
                requested.add(instant.requested)
        instants = tuple(sorted(furthest.values()))
        start = _start(instants, begun)
        stray = frozenset(each for each in instants if _is_stray(each, requested, start))
        kept = tuple(each for each in instants if each not in stray)
        return Timeline(kept, start, frozenset(rolled_back), tuple(sorted(stray)))

    @property
    def uncommitted(self) -> frozenset[str]:
        """Requested times of instants that never count: pending ones, and those rolled back."""
        return self._uncommitted

    def writes(self) -> tuple[Instant, ...]:
        """Return the completed writes by requested time: commits, delta commits, replace commits."""
        return tuple(self._writes.values())

    def latest_write(self) -> Instant | None:
        """Return the completed write with the greatest requested time."""
        return next(reversed(self.writes()), None)

    def pending(self) -> tuple[Instant, ...]:
        """Return the instants that are not completed, of all actions."""
        return tuple(instant for instant in self.instants if not instant.is_completed)

    def pending_writes(self) -> tuple[Instant, ...]:
        """Return the pending writes of data, not those of compaction or clustering."""
        return tuple(instant for instant in self.pending() if instant.action in WRITE_ACTIONS)

    def pending_of(self, *actions: Action) -> tuple[Instant, ...]:
        """Return the pending instants of some actions."""
        return tuple(instant for instant in self.pending() if instant.action in actions)

    def completed_of(self, *actions: Action) -> tuple[Instant, ...]:
        """Return the completed instants of some actions, as these are called once completed."""
        return tuple(each for each in self.instants if each.is_completed and each.action in actions)

    def is_archived(self, requested: str) -> bool:
        """Tell whether an instant lies before the active timeline, and so counts as committed."""
        return self.start is not None and requested < self.start and requested not in self._uncommitted

    def completion_of(self, requested: str) -> str | None:
        """Return when a write took effect, None when it did not.

        Where no completion time is kept (version 6, archived instants) it is the requested time.
        """
        write = self._writes.get(requested)
        if write is not None:
            return time_of(write)
        return requested if self.is_archived(requested) else None

    def has_completed(self, requested: str) -> bool:
        """Tell whether a write took effect, archived ones included."""
        return self.completion_of(requested) is not None

    def write_at(self, requested: str) -> Instant | None:
        """Return the completed write of a requested time."""
        return self._writes.get(requested)

    def find(self, requested: str) -> Instant | None:
        """Return the instant of a requested time, a savepoint of it aside; None when there is none."""
        return next(
            (i for i in self.instants if i.requested == requested and i.action is not Action.SAVEPOINT), None
        )

    def until(self, requested: str) -> Timeline:
        """Return the timeline of the instants requested up to and including a time."""
        kept = tuple(instant for instant in self.instants if instant.requested <= requested)
        return self.with_instants(kept)

    def completed_by(self, time: str, besides: Collection[str] = ()) -> Timeline:
        """Return the timeline without what completed after a time.

        Args:
            time: a completion time; a requested time where instants have no other.
            besides: requested times of instants to keep in any case.
        """
        kept = tuple(
            instant
            for instant in self.instants
            if not instant.is_completed or time_of(instant) <= time or instant.requested in besides
        )
        return self.with_instants(kept)

    def first_after(self, time: str) -> str | None:
        """Return the smallest requested time of the writes that completed after a time, None without any."""
        later = (each.requested for each in self.writes() if time_of(each) > time)
        return min(later, default=None)

    def with_instants(self, instants: tuple[Instant, ...]) -> Timeline:
        """Return the timeline with other instants in the place of its own, sorted."""
        return Timeline(instants, self.start, self.rolled_back, self.stray)

    def latest_time(self) -> str | None:
        """Return the greatest requested or completion time of any instant."""
        times = [time_of(instant) for instant in self.instants]
        times += [instant.requested for instant in self.instants]
        return max(times, default=None)


def _further(one: Instant, other: Instant) -> Instant:
    """Choose the further state; of two completed files the earlier completion, so all readers agree."""
    if one.state is not other.state:
        return one if one.state > other.state else other
    return min(one, other, key=lambda instant: instant.completed or "")


def _is_stray(instant: Instant, requested: Collection[str], start: str | None) -> bool:
    """Tell whether an instant has an inflight file alone, before the first write that archiving left."""
    if instant.is_completed or instant.action not in FILE_ACTIONS or start is None:
        return False
    return instant.requested < start and instant.requested not in requested


def _start(instants: tuple[Instant, ...], begun: Collection[str]) -> str | None:
    """Find the first write that archiving did not pass: it leaves savepointed ones behind.

    Archiving takes requested and inflight files away first. So a write with a completed file alone is in the
    archive already: an archiver died, or a writer that stood still put its completed file once more. A write
    that is pending only does not say what was archived either.

    Args:
        instants: of the timeline, sorted.
        begun: requested times of those with a requested or inflight file.
    """
    saved = {instant.requested for instant in instants if instant.action is Action.SAVEPOINT}
    writes = [each for each in instants if each.action.completed_action in WRITE_ACTIONS]
    unsaved = [each for each in writes if each.requested not in saved]
    completed = [each for each in unsaved if each.is_completed]
    whole = [each for each in completed if each.requested in begun]
    return next((found[0].requested for found in (whole, completed, unsaved, writes) if found), None)
