"""Tell the log, and whoever listens, what an action did.

    drawstring.add_listener(print)

The log has one line an action, from the logger `drawstring.events`, at level INFO. A listener is a function
of one `Event`. It is called once the action took effect, in the thread that did it, which may hold the table
lock still: so it must not write to the table. Whatever it raises is a warning.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from drawstring.config.table.config import TableConfig
from drawstring.model.event import Event
from drawstring.model.result import ArchiveResult, CleanResult, CommitResult, VersionResult
from drawstring.txn.table_context import TableContext

Listener: TypeAlias = Callable[[Event], object]

_log: Final = logging.getLogger("drawstring.events")
_mutex: Final = threading.Lock()
_listeners: Final[list[Listener]] = []


def add_listener(listener: Listener) -> None:
    """Have a function called with an `Event` after every write and service of this process.

    Args:
        listener: called in the thread that did the work, which waits for it, so it must not write to the
            table. An error in it is logged, and changes nothing.

    Example:
        >>> events = []
        >>> drawstring.add_listener(events.append)
        >>> result = table.update("id = 1", {"fare": "11.0"})
        >>> events[0].operation, events[0].updates
        ('update', 1)
        >>> drawstring.remove_listener(events.append)
    """
    with _mutex:
        if listener not in _listeners:
            _listeners.append(listener)


def remove_listener(listener: Listener) -> None:
    """Call a function no more.

    Args:
        listener: which `add_listener` was given; one that is not called passes without an error.

    Example:
        >>> drawstring.add_listener(print)
        >>> drawstring.remove_listener(print)
    """
    with _mutex:
        if listener in _listeners:
            _listeners.remove(listener)


def emit_commit(
    state: TableContext, config: TableConfig, result: CommitResult, stages: Mapping[str, float]
) -> CommitResult:
    """Tell of a commit, and return its result.

    Args:
        state: the table.
        config: of the table.
        result: what it did.
        stages: seconds by stage.
    """
    _tell(
        Event(
            table=state.storage.spec.uri,
            name=config.name,
            operation=result.operation,
            instant=result.instant,
            records=result.records_written,
            inserts=result.inserts,
            updates=result.updates,
            deletes=result.deletes,
            files=result.files,
            bytes_written=result.bytes_written,
            seconds=result.seconds,
            stages={stage: round(seconds, 3) for stage, seconds in stages.items()},
        )
    )
    return result


def emit_clean(state: TableContext, config: TableConfig, result: CleanResult) -> CleanResult:
    """Tell of a clean, and return its result."""
    table = state.storage.spec.uri
    gone = result.files
    _tell(Event(table, config.name, "clean", result.instant, files_deleted=gone, seconds=result.seconds))
    return result


def emit_archive(state: TableContext, config: TableConfig, result: ArchiveResult) -> ArchiveResult:
    """Tell of an archiving, and return its result."""
    table, count = state.storage.spec.uri, result.instants
    _tell(Event(table, config.name, "archive", result.last, instants_archived=count, seconds=result.seconds))
    return result


def emit_version_change(
    state: TableContext, config: TableConfig, at: str, result: VersionResult
) -> VersionResult:
    """Tell of a change of the table's version, and return its result.

    Args:
        state: the table.
        config: of the table.
        at: requested time of its newest instant.
        result: what changed.
    """
    name = "upgrade" if result.new > result.old else "downgrade"
    _tell(Event(state.storage.spec.uri, config.name, name, at, seconds=result.seconds))
    return result


def _tell(event: Event) -> None:
    _log.info("%s", event)
    with _mutex:
        listeners = tuple(_listeners)
    for listener in listeners:
        try:
            listener(event)
        except Exception as error:
            _log.warning("a listener failed on %s of %s: %s", event.operation, event.name, error)
