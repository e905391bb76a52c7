"""Signs of life of other engines: a file for each of their writes, touched while it goes on."""

from __future__ import annotations

from collections.abc import Collection

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError
from drawstring.model.instant import Instant
from drawstring.storage.protocol import Storage

HEARTBEAT_FOLDER = ".hoodie/.heartbeat"
HEARTBEAT_ALIVE_MS = 120_000


def refuse_live_writers(storage: Storage, clock: Clock, pending: Collection[Instant]) -> None:
    """Refuse to touch instants whose writers show signs of life.

    Args:
        storage: the table's files.
        clock: tells how old a sign is.
        pending: the instants.

    Raises:
        ConflictError: another engine is at work on one of them.
    """
    if not pending:
        return
    beats = {status.name: status.modified_ms for status in storage.list_files(HEARTBEAT_FOLDER)}
    now_ms = clock.now_ms()
    for instant in pending:
        if instant.requested in beats and now_ms - beats[instant.requested] < HEARTBEAT_ALIVE_MS:
            raise ConflictError(
                "Another engine is writing to this table; retry when it is done.", instant=instant.requested
            )
