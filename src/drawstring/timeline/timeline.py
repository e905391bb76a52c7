"""Define the active timeline as an immutable value: completed and pending instants in order.

Instant times: an instant time is `yyyyMMddHHmmssSSS` in the table's time zone; instant times compare as
strings.

Names of timeline files in both layouts (specification: Timeline):

    state       layout 1 (version 6)         layout 2 (versions 8 and 9)
    requested   <T>.<action>.requested       the same
    inflight    <T>.<action>.inflight        the same; of a commit <T>.inflight in both
    completed   <T>.<action>                 <T>_<C>.<action>

T is the requested time, C the completion time. A completed compaction is named `commit`, a log compaction
`deltacommit`, a clustering `replacecommit`; layout 1 uses `replacecommit` for a pending clustering too.
Files that an upgrade left in layout 2 may lack the completion time.

Notes of rolled back instants:

    <timeline folder>/<T>_<R>.rolledback     empty: T was rolled back at R; ignored by other engines

A writer that stalled while others rolled its instant back may create files of that instant when it resumes.
They must not count after archiving has passed the instant, when every instant that is not on the timeline
counts as committed. So a note stays for as long as such a writer may resume. The notes are listed with the
timeline, so they cost readers no extra request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from itertools import chain, groupby
from math import inf
from operator import itemgetter
from typing import Final

from drawstring.base.errors import CorruptTableError, InternalError, InvalidError
from drawstring.base.text_format import Grid, ShowsGrid
from drawstring.config.table_config import TableConfig
from drawstring.model.files import FULL_BOOTSTRAP, METADATA_BOOTSTRAP, join_path
from drawstring.model.instant import FILE_ACTIONS, WRITE_ACTIONS, Action, Instant, State, time_of
from drawstring.model.table_version import TimelineLayout
from drawstring.storage.protocol import Storage

EARLIEST = "000"
"""A time before every instant."""

_DIGITS = re.compile(r"(\d{14}|\d{17})", re.ASCII)
_ZEROS = re.compile(r"0+")
_EPOCH = re.compile(r"\d{10}|\d{13}", re.ASCII)
_EPOCH_SECONDS_DIGITS: Final = 10
_SECONDS = re.compile(r"\d\d:\d\d:\d\d(?![.,\d])(?=$|Z|[+-])", re.ASCII)
"""A time of day to the second in a text, with or without an offset behind it."""
_WHOLE_SECOND: Final = timedelta(milliseconds=999)
_TIME_DIGITS = 17
_LEGACY_PAD = "999"
_FAR_AHEAD_SECONDS: Final = 86_400
_log: Final = logging.getLogger("drawstring")


def as_instant_time(value: object, timezone: str = "UTC") -> str:
    """Return the instant time for a user's input.

    Args:
        value: 17 or 14 digits (kept as they are; may be a number), 13 or 10 digits (milliseconds or seconds
            since 1970, UTC), `yyyy-MM-dd[ HH:mm:ss[.SSS]]`, other ISO 8601 forms, `earliest`, zeros, a date
            (its midnight) or a datetime. Values with an offset are converted to the table's time zone; others
            are taken to be in it. A text with seconds but without a fraction is the end of its second.
        timezone: `hoodie.table.timeline.timezone` of the table, `UTC` or `LOCAL`.

    Raises:
        InvalidError: the value has none of these forms.
    """
    if isinstance(value, datetime):
        return _text(_to_zone(value, timezone))
    if isinstance(value, date):
        return _text(datetime.combine(value, time()))
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise _unreadable(value)
    text = str(value).strip()
    if text.lower() == "earliest" or _ZEROS.fullmatch(text):
        return EARLIEST
    if _DIGITS.fullmatch(text):
        if text not in (METADATA_BOOTSTRAP, FULL_BOOTSTRAP):
            _check_digits(text)
        return text
    if _EPOCH.fullmatch(text):
        return instant_time(int(text) * (1000 if len(text) == _EPOCH_SECONDS_DIGITS else 1), timezone)
    moment = _parse_iso(text)
    return _text(_to_zone(moment + _WHOLE_SECOND if _SECONDS.search(text) else moment, timezone))


def instant_time(epoch_ms: int, timezone: str) -> str:
    """Return the instant time of a point in time.

    Args:
        epoch_ms: milliseconds since the epoch, UTC.
        timezone: `UTC` or `LOCAL`.
    """
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC) + timedelta(milliseconds=epoch_ms % 1000)
    return _text(_to_zone(moment, timezone))


def next_time(last: str | None, now: str, table: str | None = None) -> str:
    """Return `now`, or the least time after `last` if the clock has not passed it yet.

    Args:
        last: the newest time of a timeline.
        now: the time by the clock.
        table: root of the table, to warn if `last` is more than a day in the future.

    Raises:
        CorruptTableError: `last` is in the future and not a date.
    """
    if last is None or now > last:
        return now
    padded = (last + _LEGACY_PAD)[:_TIME_DIGITS]
    try:
        following = _text(_parse_digits(padded) + timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        raise CorruptTableError(
            "The timeline has a time that is not a date. Remove that instant's files.", instant=last
        ) from None
    if table is not None and is_far_ahead(last, now):
        _warn_of_future(table, last[:8])
    return following


def is_far_ahead(time: str, now: str) -> bool:
    """Return whether an instant time is more than a day in the future: a clock was or is wrong."""
    return _FAR_AHEAD_SECONDS < seconds_between(now, time) < inf


@cache
def _warn_of_future(table: str, day: str) -> None:
    """Say once that the clock of this or of another machine is wrong."""
    _log.warning(
        "The newest instant of %s is more than a day in the future (%s). New instants get times right after"
        " it. Check the clocks of the machines that write; `drawstring services validate` names the"
        " instants.",
        table,
        day,
    )


def time_before(time: str) -> str:
    """Return the greatest time before another one; that time itself if it is not a date."""
    try:
        return _text(_parse_digits(time) - timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return time


def epoch_ms_of(time: str, timezone: str) -> int | None:
    """Return the point in time of an instant time in epoch milliseconds; None if it is not a date.

    Args:
        time: of 17 or 14 digits.
        timezone: of `time`, `UTC` or `LOCAL`.
    """
    try:
        moment = _parse_digits(time)
        return round((moment if timezone == "LOCAL" else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two instant times; infinity if one of them is not a date."""
    try:
        return (_parse_digits(later) - _parse_digits(earlier)).total_seconds()
    except ValueError:
        return inf


def day_of(instant: str) -> date:
    """Return the day of an instant time, in the table's time zone."""
    return _parse_digits(instant).date()


def _text(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}".rjust(_TIME_DIGITS, "0")


def _to_zone(moment: datetime, timezone: str) -> datetime:
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(None if timezone == "LOCAL" else UTC)


def _parse_digits(text: str) -> datetime:
    whole = datetime.strptime(text[:14], "%Y%m%d%H%M%S")
    return whole + timedelta(milliseconds=int(text[14:] or 0))


def _check_digits(text: str) -> None:
    try:
        _parse_digits(text)
    except ValueError:
        raise _unreadable(text) from None


def _parse_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _unreadable(text) from None


def _unreadable(value: object) -> InvalidError:
    return InvalidError(
        f"{value!r} is not a time. Write 17 digits such as 20240131100000000, "
        "or a date such as 2024-01-31 or 2024-01-31 10:00:00.000."
    )


MOVED_MARKER = "timeline.moved"
"""Name of a file in the folder of a timeline that is being deleted, since the other layout counts now."""

_NAME = re.compile(r"(\d{14,})(?:_(\d{14,}))?(?:\.([a-z]+))?(?:\.(requested|inflight))?", re.ASCII)
_ACTIONS = {action.value: action for action in Action}
_NAMES_MAX: Final = 1 << 14
"""So many names are kept parsed: each commit lists all files of the timeline several times."""


def parse_instant(file_name: str, layout: TimelineLayout) -> Instant | None:
    """Return the instant and state of a timeline file, None for a foreign file.

    Args:
        file_name: name without its folder.
        layout: of the timeline.
    """
    instant = _parse(file_name)
    if instant is None or (instant.completed is not None and not layout.has_completion_times):
        return None
    return instant


@lru_cache(_NAMES_MAX)
def _parse(file_name: str) -> Instant | None:
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    requested, completed, action_name, suffix = match.groups()
    if action_name == "inflight" and suffix is None:
        return None if completed else Instant(requested, Action.COMMIT, State.INFLIGHT)
    action = _ACTIONS.get(action_name)
    if action is None or (suffix == "inflight" and action is Action.COMMIT):
        return None
    if suffix is not None:
        return None if completed else Instant(requested, action, _pending_state(suffix))
    return Instant(requested, action, State.COMPLETED, completed)


def file_name(instant: Instant, layout: TimelineLayout) -> str:
    """Return the name of the file of an instant's state.

    Args:
        instant: a completed one must be named by its completed action, such as `commit`.
        layout: of the timeline.

    Raises:
        InternalError: a completed instant has the action name of a pending one.
    """
    action_name = layout.word(instant.action)
    if instant.state is State.REQUESTED:
        return f"{instant.requested}.{action_name}.requested"
    if instant.state is State.INFLIGHT:
        return f"{instant.requested}{'' if action_name == Action.COMMIT else '.' + action_name}.inflight"
    if instant.action is not instant.action.completed_action:
        raise InternalError(
            f"A completed {instant.action} must have the action {instant.action.completed_action}.",
            instant=instant.requested,
        )
    if not layout.has_completion_times or instant.completed is None:
        return f"{instant.requested}.{action_name}"
    return f"{instant.requested}_{instant.completed}.{action_name}"


def _pending_state(suffix: str) -> State:
    return State.REQUESTED if suffix == "requested" else State.INFLIGHT


_SUFFIX: Final = ".rolledback"


def noted_in(names: Iterable[str]) -> frozenset[str]:
    """Return the requested times that the file names of a timeline folder note as rolled back."""
    return frozenset(name.partition("_")[0] for name in names if name.endswith(_SUFFIX))


def note_rolled_back(storage: Storage, config: TableConfig, requested: str, now: str) -> None:
    """Note that an instant never completes; call it after taking the instant's claim.

    Args:
        storage: the table's files.
        config: the table's settings.
        requested: requested time of the instant.
        now: instant time of the note.
    """
    storage.put_if_absent(join_path(config.timeline_folder, f"{requested}_{now}{_SUFFIX}"), b"")


def copy_notes(storage: Storage, old: TableConfig, new: TableConfig) -> None:
    """Copy what one timeline notes as rolled back to that of another layout."""
    for name in _note_names(storage, old):
        storage.put(join_path(new.timeline_folder, name), b"")


def delete_notes(storage: Storage, config: TableConfig) -> None:
    """Delete what a timeline that does not count notes as rolled back."""
    storage.delete([join_path(config.timeline_folder, name) for name in _note_names(storage, config)])


def _note_names(storage: Storage, config: TableConfig) -> list[str]:
    return [name for name in storage.list_names(config.timeline_folder) if name.endswith(_SUFFIX)]


def old_notes(storage: Storage, config: TableConfig, before: str) -> list[tuple[str, str]]:
    """Return the notes made before an instant time: requested time and path of each, the oldest first."""
    notes = (status for status in storage.list_files(config.timeline_folder) if status.name.endswith(_SUFFIX))
    parsed = ((status.name.removesuffix(_SUFFIX).partition("_"), status.path) for status in notes)
    return sorted((requested, path) for (requested, _, at), path in parsed if at < before)


def pending_names(instant: Instant) -> list[Action]:
    """List the actions that an instant may have been requested as, the likeliest first."""
    if not instant.is_completed:
        return [instant.action]
    return [action for action in Action if action.completed_action is instant.action]


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
        return _joined((_InstantsOfSecond.of(files),), rolled_back)

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
    return _joined(
        [_instants_of_second(tuple(some), layout) for _, some in groupby(names, _SECOND)], noted_in(names)
    )


@lru_cache(maxsize=_SECONDS_CACHED)
def _instants_of_second(names: tuple[str, ...], layout: TimelineLayout) -> _InstantsOfSecond:
    """Return the instants of one second: between two loads of a timeline those of few seconds change."""
    parsed = (parse_instant(name, layout) for name in names)
    return _InstantsOfSecond.of(each for each in parsed if each is not None)


@dataclass(frozen=True, slots=True)
class _InstantsOfSecond:
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
    def of(files: Iterable[Instant]) -> _InstantsOfSecond:
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
        return _InstantsOfSecond(_in_order(furthest.values()), frozenset(begun), frozenset(requested))


def _joined(parts: Sequence[_InstantsOfSecond], rolled_back: Collection[str]) -> Timeline:
    """Return the timeline of instants that are sorted, part after part."""
    instants = tuple(chain.from_iterable(each.instants for each in parts))
    begun, requested = (
        frozenset().union(*(part.begun for part in parts)),
        frozenset().union(*(part.requested for part in parts)),
    )
    late = tuple(each for each in instants if _was_restored(each, begun, rolled_back)) if rolled_back else ()
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


def _was_restored(instant: Instant, begun: Collection[str], rolled_back: Collection[str]) -> bool:
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
