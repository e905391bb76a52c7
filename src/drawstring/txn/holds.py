"""Holds: small files by which readers declare the oldest instant that they still need.

    .hoodie/.holds/<name>~<uuid>.json      ignored by other engines

    held ── moved on, renewed ──> held ── released, expired ──> over ── a clean read it ──> deleted

Holds need no lock: readers do not wait for writers. A file is replaced only in the version that was read,
and a hold that is over never becomes active again: a reader that returns later gets a new file. So a clean
can delete holds that are over, once it has taken account of what they had kept.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import InvalidError
from drawstring.model.instant import Hold
from drawstring.storage.protocol import Storage, folders_above

HOLD_FOLDER: Final = ".hoodie/.holds"
_VERSION: Final = 1
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_HOUR_MS: Final = 3_600_000
_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class HoldFile:
    """A hold and the file that stores it.

    Attributes:
        hold: the hold.
        path: of the file.
        version: version of the file when it was read.
    """

    hold: Hold
    path: str
    version: str


class Holds:
    """The holds of a table.

    Args:
        storage: the table's files.
        clock: decides which holds are over.
        ids: gives new files their names.
    """

    def __init__(self, storage: Storage, clock: Clock, ids: Ids) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids

    def files(self) -> list[HoldFile]:
        """Return all holds, including those that are over; unreadable files are skipped."""
        listed = (status.path for status in self._storage.list_files(HOLD_FOLDER))
        return [file for path in listed if (file := self._read(path)) is not None]

    def active(self, spare_ms: int = 0) -> list[Hold]:
        """Return the holds that stay active for at least `spare_ms` ms, the oldest position first."""
        now_ms = self._clock.now_ms() + spare_ms
        holds = (each.hold for each in self.files())
        return sorted((each for each in holds if not each.is_over(now_ms)), key=lambda each: each.position)

    def put(self, name: str, position: str, hours: float, *, is_scan: bool = False) -> Hold:
        """Place a hold, or move the active hold of that name to a new position.

        Args:
            name: of the reader.
            position: the instant time that the reader has reached.
            hours: hours until the hold expires, counted from now.
            is_scan: whether archiving has to wait for it, too.

        Raises:
            InvalidError: the name or the number of hours is not valid.
        """
        given: object = name
        if not (isinstance(given, str) and _NAME.fullmatch(given)):
            raise InvalidError(
                f"{name!r} is not a valid name of a hold. Use up to 100 letters, digits, dots, dashes and"
                " underscores, beginning with a letter or digit."
            )
        if not 0 < hours < float("inf"):
            raise InvalidError(
                f"A hold cannot last {hours!r} hours. Give a finite number of hours greater than 0."
            )
        now_ms = self._clock.now_ms()
        hold = Hold(name, position, now_ms, now_ms + round(hours * _HOUR_MS), is_scan=is_scan)
        for file in self.files():
            is_own = file.hold.name == name and not file.hold.is_over(now_ms)
            if is_own and self._storage.put_if_match(file.path, _encode(hold), file.version):
                self._storage.sync([HOLD_FOLDER])
                return hold
        path = f"{HOLD_FOLDER}/{name}~{self._ids.uuid()}.json"
        self._storage.put(path, _encode(hold))
        self._storage.sync(folders_above([path]))
        return hold

    def release(self, name: str) -> bool:
        """Release the holds of a name, and return whether there were any."""
        own = [file for file in self.files() if file.hold.name == name and not file.hold.released]
        return sum(self._end(file) for file in own) > 0

    def clear(self, over: Iterable[HoldFile]) -> None:
        """Delete holds that are over, unless they were renewed since they were read."""
        ended = [file.path for file in over if file.hold.released or self._end(file)]
        self._storage.delete(ended)

    def _end(self, file: HoldFile) -> bool:
        ended = _encode(replace(file.hold, released=True))
        return self._storage.put_if_match(file.path, ended, file.version)

    def _read(self, path: str) -> HoldFile | None:
        versioned = self._storage.read_versioned(path)
        if versioned is None:
            return None
        try:
            fields = json.loads(versioned[0])
            if fields.pop("version") != _VERSION:
                raise ValueError("made by a later release")
            return HoldFile(Hold(**fields), path, versioned[1])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            _log.warning("The hold %s cannot be read, so cleaning ignores it: %s", path, error)
            return None


def _encode(hold: Hold) -> bytes:
    return json.dumps({"version": _VERSION, **asdict(hold)}, separators=(",", ":")).encode()
