"""The active timeline as one value: what was done to the table, and what is under way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, time_of


@dataclass(frozen=True, slots=True)
class Timeline:
    """The instants of the active timeline, each once, at its furthest state.

    Attributes:
        instants: sorted by requested time, then action.
        start: requested time of the first write of the active timeline; instants before it were
            archived and count as committed. None for a table without writes.
    """

    instants: tuple[Instant, ...] = ()
    start: str | None = None
    _writes: Mapping[str, Instant] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        writes = {instant.requested: instant for instant in self.instants if instant.is_write}
        object.__setattr__(self, "_writes", writes)

    @staticmethod
    def of(files: Iterable[Instant]) -> Timeline:
        """Build a timeline from what each of its files stands for, in any order."""
        furthest: dict[tuple[str, Action], Instant] = {}
        for instant in files:
            key = (instant.requested, instant.action.completed_action)
            known = furthest.get(key)
            furthest[key] = instant if known is None else _further(known, instant)
        instants = tuple(sorted(furthest.values()))
        return Timeline(instants, _start(instants))

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
        """Tell whether an instant lies before the active timeline."""
        return self.start is not None and requested < self.start

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
        return Timeline(kept, self.start)

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
        return Timeline(kept, self.start)

    def first_after(self, time: str) -> str | None:
        """Return the smallest requested time of the writes that completed after a time, None without any."""
        later = (each.requested for each in self.writes() if time_of(each) > time)
        return min(later, default=None)

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


def _start(instants: tuple[Instant, ...]) -> str | None:
    """Find the first write that archiving did not pass: it leaves savepointed ones behind."""
    saved = {instant.requested for instant in instants if instant.action is Action.SAVEPOINT}
    writes = [instant.requested for instant in instants if instant.action.completed_action in WRITE_ACTIONS]
    return next((time for time in writes if time not in saved), writes[0] if writes else None)
