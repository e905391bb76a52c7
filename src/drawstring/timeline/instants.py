"""Instant times, the names of instant files, and the notes of rolled back instants.

An instant time is `yyyyMMddHHmmssSSS` in the table's time zone; instant times compare as strings.

Names of timeline files in both layouts (specification: Timeline).

    state       layout 1 (version 6)         layout 2 (versions 8 and 9)
    requested   <T>.<action>.requested       the same
    inflight    <T>.<action>.inflight        the same; of a commit <T>.inflight in both
    completed   <T>.<action>                 <T>_<C>.<action>

T is the requested time, C the completion time. A completed compaction is named `commit`, a log
compaction `deltacommit`, a clustering `replacecommit`; layout 1 uses `replacecommit` for a pending
clustering too. Files that an upgrade left in layout 2 may lack the completion time.

Notes of rolled back instants, kept for as long as a stalled writer of theirs may resume.

    <timeline folder>/<T>_<R>.rolledback     empty: T was rolled back at R; ignored by other engines

A writer that stalled while others rolled its instant back may create files of that instant when it resumes.
They must not count after archiving has passed the instant, when every instant that is not on the timeline
counts as committed. The notes are listed with the timeline, so they cost readers no extra request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from math import inf
from typing import Final

from drawstring.base.errors import CorruptTableError, InternalError, InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.model.files import FULL_BOOTSTRAP, METADATA_BOOTSTRAP, join_path
from drawstring.model.instant import Action, Instant, State
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
        " it. Check the clocks of the machines that write; `drawstring validate` names the instants.",
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


MOVED = "timeline.moved"
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
