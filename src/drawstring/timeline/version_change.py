"""The marker of a version change: a file that exists while the timeline of the other layout is written.

    .hoodie/.locks/version.change    absent ── begin ──> begun ── end ──> absent
                                                           └── bar, by another writer ──> barred

The change takes effect when the properties are replaced, in the storage version that was read when it began.
A writer that finds the marker of a dead or stalled process puts the same properties again, so that the
stalled process fails at this step. Its copy of the timeline stays. No other change may begin while that
process may be alive: it would delete the new copy, which it takes for its own.
"""

from __future__ import annotations

from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError
from drawstring.storage.protocol import LOCK_FOLDER, Storage
from drawstring.timeline.properties import properties_version, renew_properties

VERSION_CHANGE: Final = f"{LOCK_FOLDER}/version.change"
_BEGUN: Final = b"begun"
_BARRED: Final = b"barred"


def begin_change(storage: Storage) -> str | None:
    """Note that this process changes the version; the caller holds the table lock.

    Returns:
        The storage version of the properties that the change replaces.

    Raises:
        ConflictError: another process began a change, and may be alive.
    """
    version = properties_version(storage)
    if storage.put_if_absent(VERSION_CHANGE, _BEGUN):
        return version
    # The table lock of a local file system ends with its process, so that process is dead.
    if storage.local_path("") is None:
        raise ConflictError(
            "A process began to change the version of this table and did not finish. Make sure that it has"
            " ended, delete the file, and try again.",
            table=storage.spec.uri,
            path=VERSION_CHANGE,
        )
    storage.put(VERSION_CHANGE, _BEGUN)
    return version


def end_change(storage: Storage) -> None:
    """Note that this process has finished the change, or given it up."""
    storage.delete([VERSION_CHANGE])


def prevent_version_change(storage: Storage, clock: Clock) -> None:
    """Make sure that an unfinished version change of another process cannot take effect any more."""
    versioned = storage.read_versioned(VERSION_CHANGE)
    if versioned is None or versioned[0] == _BARRED:
        return
    renew_properties(storage, clock)
    storage.put_if_match(VERSION_CHANGE, _BARRED, versioned[1])
