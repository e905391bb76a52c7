"""Switching a foreign metadata table off when what it says stops being true.

A metadata table that a write does not update makes readers trust a stale list of files. It lists what
completed instants told it of, so files of a write under way do no harm beside it. It is switched off right
before an instant takes effect, after all checks: a call that is refused, that finds nothing to do or that
fails leaves it as it is.

    properties stop naming it -> the completed file is put -> its files go

A crash in between leaves files that no reader looks at, and the next write deletes them. Where the completed
file cannot be put the metadata table stays off: readers list files then, which is right in any case.

Two actions leave what it lists as it is. A savepoint changes no data file. A rollback deletes files of an
instant that never completed, which the metadata table knows only if its writer had come as far as telling it;
then it is switched off, since readers trust all that it says of instants that left the timeline.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import DrawstringError
from drawstring.config.table.config import TableConfig
from drawstring.formats.metadata.rollback import decode_rollback
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties_store import load_config, save_properties

METADATA_FOLDER: Final = ".hoodie/metadata"
_TIMELINES: Final = (f"{METADATA_FOLDER}/.hoodie", f"{METADATA_FOLDER}/.hoodie/timeline")
_INITIAL: Final = "00000000000000"
"""How the instants begin that filled a metadata table first."""

_KEYS: Final = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")
_log = logging.getLogger("drawstring")


def switch_off_metadata_table(storage: Storage, config: TableConfig, clock: Clock) -> TableConfig | None:
    """Switch the metadata table off at once; to be called under the table lock.

    Args:
        storage: the table's files.
        config: as read under the lock.
        clock: for the time in the properties file.

    Returns:
        The configuration after that, None when there was nothing to switch off.
    """
    is_named = _stop_naming(storage, config, clock)
    if not is_named and not storage.list_folders(METADATA_FOLDER):
        return None
    storage.delete_tree(METADATA_FOLDER)
    _warn(config)
    return load_config(storage)


def without_metadata_table(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table that no longer name its metadata table."""
    return {key: value for key, value in properties.items() if key not in _KEYS}


class MetadataTableGuard:
    """Keeps a metadata table from being stale; a `timeline.store.TimelineGuard`.

    Args:
        storage: the table's files.
        config: as read under the table lock, which is held as long as this is used.
        clock: for the time in the properties file.
    """

    def __init__(self, storage: Storage, config: TableConfig, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._own: set[str] = set()
        self._is_named = _is_named(config)
        self._is_gone = False

    def requesting(self, instant: Instant) -> None:
        """Note an instant of this process, of which no metadata table knows."""
        self._own.add(instant.requested)

    @contextmanager
    def completing(self, instant: Instant, content: bytes) -> Iterator[None]:
        """Switch the metadata table off around the put of a completed file, if that makes it stale.

        Args:
            instant: is about to complete.
            content: of its completed file.
        """
        if not self._makes_stale(instant, content):
            yield
            return
        self.switch_off()
        yield
        self.remove_files()

    def removing(self, instant: Instant) -> None:
        """Switch the metadata table off before a pending instant leaves the timeline, if it knows of it."""
        if self._is_named and self._may_know(instant.requested):
            self.switch_off()

    def switch_off(self) -> None:
        """Let the properties stop naming the metadata table."""
        if self._is_named:
            config = load_config(self._storage)
            if _stop_naming(self._storage, config, self._clock):
                _warn(config)
            self._is_named = False

    def remove_files(self) -> None:
        """Delete the files of a metadata table that is off; what stays, the next write deletes."""
        if self._is_gone:
            return
        try:
            if self._storage.list_folders(METADATA_FOLDER):
                self._storage.delete_tree(METADATA_FOLDER)
            self._is_gone = True
        except (DrawstringError, OSError) as error:
            _log.warning("files of the metadata table that was switched off stay for now: %s", error)

    def _makes_stale(self, instant: Instant, content: bytes) -> bool:
        if instant.action is Action.ROLLBACK:
            return self._is_named and self._may_know(decode_rollback(content, "").instant)
        return instant.action is not Action.SAVEPOINT

    def _may_know(self, requested: str) -> bool:
        """Tell whether the metadata table was told of an instant, or may have been and archived that."""
        if requested in self._own:
            return False
        names = [status.name for folder in _TIMELINES for status in self._storage.list_files(folder)]
        times = [name for name in names if name[:14].isdecimal() and not name.startswith(_INITIAL)]
        return any(name.startswith(requested) for name in times) or requested < min(times, default="")


def _is_named(config: TableConfig) -> bool:
    return any(config.properties.get(key) for key in _KEYS)


def _stop_naming(storage: Storage, config: TableConfig, clock: Clock) -> bool:
    """Take the metadata table out of the properties; False where they do not name it."""
    if not _is_named(config):
        return False
    save_properties(storage, without_metadata_table(config.properties), clock)
    return True


def _warn(config: TableConfig) -> None:
    _log.warning(
        "switched off the metadata table of %s (%s): this release does not maintain it, and a stale one "
        "would mislead readers; other engines can build it again",
        config.name,
        config.properties.get(_KEYS[0]) or "left behind",
    )
