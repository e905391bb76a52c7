"""Who changes the version of a table: a file that is there while the other timeline is written.

    .hoodie/.locks/version.change    absent ── begin ──> begun ── end ──> absent
                                                           └── bar, by another writer ──> barred

The change takes effect when the properties are replaced in the version that was read when it began. A writer
that finds the file of a process that died, or stands still, puts the properties anew, the same ones: then
that process fails at this step. Its copy of the timeline stays, and nobody may begin another change on it
where the process may still live: it would delete what it takes for its own copy.
"""

from __future__ import annotations

from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError
from drawstring.storage.protocol import Storage
from drawstring.timeline.claims import CLAIM_FOLDER
from drawstring.timeline.properties_store import properties_version, renew_properties

VERSION_CHANGE: Final = f"{CLAIM_FOLDER}/version.change"
_BEGUN: Final = b"begun"
_BARRED: Final = b"barred"


def begin_change(storage: Storage) -> str | None:
    """Note that this process changes the version; only under the table lock.

    Returns:
        The version of the properties that the change replaces.

    Raises:
        ConflictError: another process began to, and may still live.
    """
    before = properties_version(storage)
    if storage.put_if_absent(VERSION_CHANGE, _BEGUN):
        return before
    # The table lock of a local file system ends with its process: that one is dead.
    if storage.local_path("") is None:
        raise ConflictError(
            "A process began to change the version of this table and did not finish. Make sure that it has"
            " ended, delete the file, and try again.",
            table=storage.spec.uri,
            path=VERSION_CHANGE,
        )
    storage.put(VERSION_CHANGE, _BEGUN)
    return before


def end_change(storage: Storage) -> None:
    """Note that this process is done with the change, or gave it up."""
    storage.delete([VERSION_CHANGE])


def bar_change(storage: Storage, clock: Clock) -> None:
    """Make sure that a change of version that another process left cannot take effect any more."""
    found = storage.read_versioned(VERSION_CHANGE)
    if found is None or found[0] == _BARRED:
        return
    renew_properties(storage, clock)
    storage.put_if_match(VERSION_CHANGE, _BARRED, found[1])
