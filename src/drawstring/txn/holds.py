"""Where readers declare what they need kept: a small file for each, which other engines pass over.

    .hoodie/.holds/<name>~<uuid>.json

    held ── moved on, renewed ──> held ── released, or out of time ──> over ── a clean that saw it ──> gone

No lock is taken: readers do not wait for writers. A file is only replaced in the version that was read, and
never comes to life again; a reader that returns after its time was over gets a new one. So a clean can delete
those that are over, once it has looked at what they had kept.
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
from drawstring.model.hold import Hold
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage

HOLD_FOLDER: Final = ".hoodie/.holds"
_VERSION: Final = 1
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_HOUR_MS: Final = 3_600_000
_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class HoldFile:
    """A hold as it is stored.

    Attributes:
        hold: what it says.
        path: of its file.
        version: of the file, as it was read.
    """

    hold: Hold
    path: str
    version: str


class Holds:
    """The holds of a table.

    Args:
        storage: the table's files.
        clock: tells which are over.
        ids: names files.
    """

    def __init__(self, storage: Storage, clock: Clock, ids: Ids) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids

    def files(self) -> list[HoldFile]:
        """Return all holds, those that are over too; a file that makes no sense is passed over."""
        listed = (status.path for status in self._storage.list_files(HOLD_FOLDER))
        return [each for path in listed if (each := self._read(path)) is not None]

    def active(self, spare_ms: int = 0) -> list[Hold]:
        """Return the holds that are not over and will not be for some time, the oldest position first."""
        now_ms = self._clock.now_ms() + spare_ms
        found = (each.hold for each in self.files())
        return sorted((each for each in found if not each.is_over(now_ms)), key=lambda each: each.position)

    def put(self, name: str, position: str, hours: float, *, is_scan: bool = False) -> Hold:
        """Place a hold, or move the one of that name on.

        Args:
            name: of the reader.
            position: where it stands.
            hours: after which it ends by itself.
            is_scan: whether archiving is to wait for it.

        Raises:
            InvalidError: a name or a time that is none.
        """
        if not _NAME.fullmatch(name):
            raise InvalidError(
                f"{name!r} is no name of a hold: take up to 100 letters, digits, dots, dashes, underscores"
            )
        if not 0 < hours < float("inf"):
            raise InvalidError(f"a hold lasts for a number of hours greater than 0, not {hours!r}")
        now_ms = self._clock.now_ms()
        hold = Hold(name, position, now_ms, now_ms + round(hours * _HOUR_MS), is_scan=is_scan)
        for each in self.files():
            is_own = each.hold.name == name and not each.hold.is_over(now_ms)
            if is_own and self._storage.put_if_match(each.path, _encode(hold), each.version):
                self._storage.sync([HOLD_FOLDER])
                return hold
        path = f"{HOLD_FOLDER}/{name}~{self._ids.uuid()}.json"
        self._storage.put(path, _encode(hold))
        self._storage.sync(folders_above([path]))
        return hold

    def release(self, name: str) -> bool:
        """Give up what is held by a name, and tell whether there was anything."""
        own = [each for each in self.files() if each.hold.name == name and not each.hold.released]
        return sum(self._end(each) for each in own) > 0

    def clear(self, over: Iterable[HoldFile]) -> None:
        """Delete holds that are over, unless they were renewed since they were read."""
        ended = [each.path for each in over if each.hold.released or self._end(each)]
        self._storage.delete(ended)

    def _end(self, each: HoldFile) -> bool:
        ended = _encode(replace(each.hold, released=True))
        return self._storage.put_if_match(each.path, ended, each.version)

    def _read(self, path: str) -> HoldFile | None:
        found = self._storage.read_versioned(path)
        if found is None:
            return None
        try:
            fields = json.loads(found[0])
            if fields.pop("version") != _VERSION:
                raise ValueError("made by a later release")
            return HoldFile(Hold(**fields), path, found[1])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            _log.warning("the hold %s cannot be read, and nothing is kept for it: %s", path, error)
            return None


def _encode(hold: Hold) -> bytes:
    return json.dumps({"version": _VERSION, **asdict(hold)}, separators=(",", ":")).encode()
