"""Events of writes and table services: a log line each, and a call of every registered listener.

    drawstring.add_listener(print)

The logger `drawstring.events` gets one line per action at level INFO. A listener is a function of one
`Event`. It is called after the action took effect, in the thread that ran it. That thread may still hold the
table lock, so a listener must not write to the table. An exception of a listener is logged as a warning.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from drawstring.base.errors import InvalidError
from drawstring.config.table_config import TableConfig
from drawstring.model.result import ArchiveResult, CleanResult, CommitResult, Event, VersionResult
from drawstring.txn.table_context import TableContext

Listener: TypeAlias = Callable[[Event], object]

_log: Final = logging.getLogger("drawstring.events")
_mutex: Final = threading.Lock()
_listeners: Final[list[Listener]] = []


def add_listener(listener: Listener) -> None:
    """Call a function with an `Event` after every write and table service of this process.

    Args:
        listener: called in the thread that did the work, which waits for it, so it must not write to the
            table. An error in it is logged, and changes nothing.

    Raises:
        InvalidError: it is no function.

    Example:
        >>> events = []
        >>> drawstring.add_listener(events.append)
        >>> result = table.update("id = 1", {"fare": "11.0"})
        >>> events[0].operation, events[0].updates
        ('update', 1)
        >>> drawstring.remove_listener(events.append)
    """
    if not callable(listener):
        raise InvalidError(f"{listener!r} cannot be called with an event. Give a function.")
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
    context: TableContext, config: TableConfig, result: CommitResult, stages: Mapping[str, float]
) -> CommitResult:
    """Publish the event of a commit, and return its result.

    Args:
        context: the open table.
        config: the table's settings.
        result: the result of the commit.
        stages: seconds by stage.
    """
    _publish(
        Event(
            table=context.storage.spec.uri,
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


def emit_clean(context: TableContext, config: TableConfig, result: CleanResult) -> CleanResult:
    """Publish the event of a clean, and return its result."""
    table = context.storage.spec.uri
    count = result.files
    _publish(Event(table, config.name, "clean", result.instant, files_deleted=count, seconds=result.seconds))
    return result


def emit_archive(context: TableContext, config: TableConfig, result: ArchiveResult) -> ArchiveResult:
    """Publish the event of an archiving, and return its result."""
    table, count = context.storage.spec.uri, result.instants
    _publish(
        Event(table, config.name, "archive", result.last, instants_archived=count, seconds=result.seconds)
    )
    return result


def emit_version_change(
    context: TableContext, config: TableConfig, at: str, result: VersionResult
) -> VersionResult:
    """Publish the event of an upgrade or downgrade of the table, and return its result.

    Args:
        context: the open table.
        config: the table's settings.
        at: requested time of the newest instant.
        result: the old and new version.
    """
    name = "upgrade" if result.new > result.old else "downgrade"
    _publish(Event(context.storage.spec.uri, config.name, name, at, seconds=result.seconds))
    return result


def _publish(event: Event) -> None:
    _log.info("%s", event)
    with _mutex:
        listeners = tuple(_listeners)
    for listener in listeners:
        try:
            listener(event)
        except Exception as error:
            _log.warning("A listener failed on the event %s of %s: %s", event.operation, event.name, error)
