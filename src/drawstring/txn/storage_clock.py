"""The time by the clock of a storage, which gives files their modification times.

    put ── .hoodie/.locks/drawstring.clock ──> list: its modification time ──> delete

Clocks of machines may differ by minutes, so they do not tell the age of a file. A file that was just written
tells what time it is for the storage. It is written only when an answer depends on it: when something seems
to have expired by the clock of this machine, corrected by what was found before. Several processes may write
it at once: each takes the time that it finds, which is not before its own put. A file that a dead process
left is replaced and deleted the next time.

If the clock of the storage cannot be read, nothing expires. Calls that only look write nothing and trust the
clock of the machine. Hudi trusts the clock of the machine always, and asks for NTP.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import DrawstringError
from drawstring.storage.protocol import LOCK_FOLDER, Storage

_FILE: Final = f"{LOCK_FOLDER}/drawstring.clock"
_ATTEMPTS: Final = 4
"""How often the file is written again if another process deleted it first."""
_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class _Found:
    """What the clock of a storage showed.

    Attributes:
        at_ms: the time that it showed, which has passed since.
        ahead_ms: how far it was ahead of the clock of this machine.
    """

    at_ms: int
    ahead_ms: int


_found: Final[dict[str, _Found]] = {}
"""What this process has found, by the address of the table."""


def about_now_ms(storage: Storage, clock: Clock) -> int:
    """Return the time of a storage as far as it is known: by the clock of this machine, corrected."""
    found = _found.get(storage.spec.uri)
    return clock.now_ms() + (found.ahead_ms if found else 0)


def passed_ms(storage: Storage) -> int:
    """Return a time that has passed by the clock of a storage; 0 if it was never looked at."""
    found = _found.get(storage.spec.uri)
    return found.at_ms if found else 0


def storage_now_ms(storage: Storage, clock: Clock) -> int:
    """Return the time by the clock of a storage, as it was at some moment during this call.

    It is the last one that was found if the storage fails, so that what seems to have expired does not yet.
    """
    try:
        for _ in range(_ATTEMPTS):
            storage.put(_FILE, b"")
            local_ms = clock.now_ms()
            times = [each.modified_ms for each in storage.list_files(LOCK_FOLDER) if each.path == _FILE]
            storage.delete([_FILE])
            if times:
                _found[storage.spec.uri] = _Found(times[0], times[0] - local_ms)
                return times[0]
    except (DrawstringError, OSError) as error:
        _log.warning(
            "The clock of %s could not be read, so that nothing there counts as expired now: %s",
            storage.spec.uri,
            error,
        )
    return passed_ms(storage)
