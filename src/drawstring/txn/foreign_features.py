"""Refuse writes to tables with unknown features of other engines, or maintain or switch off the features.

Writes keep the metadata table up to date (`metadata.maintenance`). They change it just before an instant
completes, after all checks, so a call that is refused, has nothing to do, or fails leaves it as it is. A
write builds a missing one, unless the write or the open table does without.

A metadata table that is damaged, or that lacks what another engine wrote without it, is switched off before a
write would make it stale, since readers would trust a stale list of files:

    remove it from the properties -> put the completed file -> delete its files

A crash in between leaves files that no reader uses, and the next write deletes them. If the completed file
cannot be put, the metadata table stays off: readers then list files, which is always correct. A savepoint
changes no data file. A rollback deletes files of an instant that never completed; the metadata table knows
them only if the failed writer had already updated it. A restore switches it off first and builds it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from drawstring.base.clock import Clock, Ids, SystemIds
from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    DrawstringError,
    MetadataTableError,
    UnsupportedError,
)
from drawstring.base.lazy import cached_property
from drawstring.base.resources import this_process
from drawstring.config.keys.index import DEFAULT_COMPACTION, MetadataCompaction
from drawstring.config.table_config import TableConfig
from drawstring.config.table_types import META_FIELDS_MODE, has_some_meta_fields
from drawstring.formats.metadata.commit import encode_commit
from drawstring.formats.metadata.rollback import decode_rollback
from drawstring.merge.record_merger import check_mergeable, merger_of
from drawstring.metadata.definitions import undefine
from drawstring.metadata.maintenance import MetadataMaintainer
from drawstring.metadata.partitions.files import FileChanges, written_files
from drawstring.metadata.partitions.maintainer import PartitionMaintainer
from drawstring.metadata.table import BUILDING_KEY, FILES, METADATA_FOLDER, PARTITIONS_KEY
from drawstring.metadata.writer import EncodedCommit, MetadataWriter
from drawstring.model.commit import WRITER, CommitMetadata, WriterFacts
from drawstring.model.instant import BUILD_TIME_PREFIX, Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import load_config, save_properties
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_TIMELINES: Final = (f"{METADATA_FOLDER}/.hoodie", f"{METADATA_FOLDER}/.hoodie/timeline")
_KEYS: Final = (PARTITIONS_KEY, BUILDING_KEY)
_log = logging.getLogger("drawstring")


def check_writable(storage: Storage, config: TableConfig) -> None:
    """Refuse tables with features that a write of this release would break.

    Args:
        storage: the table's files.
        config: the table's settings.

    Raises:
        UnsupportedError: the table has such a feature, which the message names with its table property, or
            an old version.
    """
    if not config.rules.is_writable:
        raise UnsupportedError(
            f"The table has version {config.version}, which this release only reads. Upgrade it to version 6"
            " with Apache Hudi 0.14 or 0.15 first, then write to it.",
            table=storage.spec.uri,
        )
    try:
        check_mergeable(config)
    except UnsupportedError as error:
        raise error.at(table=storage.spec.uri) from error
    for refused, feature in _refusals(config):
        if refused:
            raise UnsupportedError(
                f"This release cannot write to a table that {feature}; it can only read it. Write to it with"
                " Apache Hudi.",
                table=storage.spec.uri,
            )


def _refusals(config: TableConfig) -> list[tuple[bool, str]]:
    """Return whether a table has each of the features that a write would break, and what it is."""
    return [
        (
            config.cdc_enabled and not merger_of(config).supports_cdc,
            "logs changes (hoodie.table.cdc.enabled) and merges records column by column",
        ),
        (
            config.has_sorted_files and not _has_stored_keys(config),
            "keeps its files sorted by record key (hoodie.table.storage.layout) without storing the key",
        ),
        (
            config.has_sorted_files and config.is_bootstrapped,
            "keeps its files sorted by record key (hoodie.table.storage.layout) and was bootstrapped",
        ),
        (
            has_some_meta_fields(config.properties),
            f"has some of the meta columns only ({META_FIELDS_MODE})",
        ),
        (not config.has_written_format, f"has {config.base_file_format} base files"),
        (
            config.has_several_base_formats,
            "may have base files of several formats (hoodie.table.multiple.base.file.formats.enable)",
        ),
    ]


def _has_stored_keys(config: TableConfig) -> bool:
    return config.populate_meta_fields and bool(config.record_key_fields)


def switch_off_metadata_table(storage: Storage, config: TableConfig, clock: Clock) -> TableConfig | None:
    """Switch the metadata table off at once, to build it again afterwards; the caller holds the table lock.

    Args:
        storage: the table's files.
        config: the table's settings as read under the lock.
        clock: the time for the properties file.

    Returns:
        The settings afterwards, None if there was nothing to switch off.
    """
    is_registered = _remove_from_properties(storage, config, clock)
    if not is_registered and not storage.list_folders(METADATA_FOLDER):
        return None
    storage.delete_tree(METADATA_FOLDER)
    _log.info("Removed the metadata table of %s, which a restore or a repair builds again.", config.name)
    return load_config(storage)


def without_metadata_table(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table without those that register its metadata table."""
    return {key: value for key, value in properties.items() if key not in _KEYS}


class MetadataTableGuard:
    """Keeps the metadata table up to date, or switches it off; implements `TransitionHooks`.

    Args:
        storage: the table's files.
        config: as read under the table lock, which is held as long as the guard is used.
        clock: the time for the properties file.
        ids: makes the names of files of the metadata table distinct.
        builds: whether a table without a metadata table gets one.
        check: makes sure that the table lock is still held.
        compaction: when the metadata table is compacted.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        clock: Clock,
        ids: Ids | None = None,
        *,
        builds: bool = False,
        check: Callable[[], None] = lambda: None,
        compaction: MetadataCompaction = DEFAULT_COMPACTION,
    ) -> None:
        self._check = check
        self._compaction = compaction
        self._storage = storage
        self._clock = clock
        self._ids = ids or SystemIds()
        self._builds = builds
        self._is_kept = _is_kept(config)
        self._partitions = config.metadata_partitions
        self._timeline: Callable[[], Timeline] = Timeline
        self._own: set[str] = set()
        self._config = config
        self._encoded: EncodedCommit | None = None
        self._metadata: CommitMetadata | None = None
        self._held: dict[str, WriterFacts] = {}
        self._is_registered = _is_registered(config)
        self._is_gone = False
        self._added: tuple[str, ...] = ()
        self._wanted: dict[str, PartitionMaintainer] = {}

    def want(self, partitions: Mapping[str, PartitionMaintainer]) -> None:
        """Have the metadata table, if there is one, get the partitions of these that it lacks."""
        self._wanted |= partitions

    def watch(self, store: TimelineStore) -> None:
        """Look at the timeline of the table as a store loaded it last, for writes that were not told of."""
        self._timeline = lambda: store.loaded

    def encode(self, instant: Instant, metadata: CommitMetadata) -> Callable[[], None]:
        """Encode and stage (`stage`) what an inflight write will store, unless its metadata changes."""
        metadata = _told(metadata)
        content = _content_of(self._config, instant, metadata)
        self._metadata = metadata
        return self.stage(instant, content, lambda: written_files(metadata))

    def stage(self, instant: Instant, content: bytes, names: Callable[[], FileChanges]) -> Callable[[], None]:
        """Stage what an inflight instant will store: all of it is flushed at the same time.

        Args:
            instant: the instant.
            content: content of its completed file.
            names: tells the files that it writes or deletes.

        Returns:
            Drops what was staged and not stored; never fails.
        """
        delta, files = None, [(self._config.timeline_folder, content)]
        if self._config.metadata_partitions == (FILES,):
            with suppress(DrawstringError, OSError):  # what is wrong there is dealt with under the lock
                writer = MetadataWriter.of(self._storage, self._clock, self._ids)
                delta = writer.encode_files(instant.requested, names(), content)
                files += writer.files_of(delta)
        self._encoded = EncodedCommit(content, delta)
        return self._storage.stage(files)

    def content_of(self, instant: Instant, metadata: CommitMetadata) -> bytes:
        """Return the content of the completed file of an instant; take what the writers of its files hold."""
        metadata = _told(metadata)
        self._held = {each.path: each.held for each in metadata.stats if each.held is not None}
        if self._encoded is not None and self._metadata == metadata:
            return self._encoded.content
        return _content_of(self._config, instant, metadata)

    def requesting(self, instant: Instant) -> None:
        """Note an instant of this process, which no metadata table can know."""
        self._own.add(instant.requested)

    @contextmanager
    def completing(self, instant: Instant, content: bytes) -> Iterator[None]:
        """Keep the metadata table up to date around the put of a completed file, or else switch it off.

        Args:
            instant: the instant that is about to complete.
            content: content of its completed file.
        """
        if self._keep(instant, content):
            yield
            self._keeper.define(self._added)
            self._compact()
            return
        if instant.action is Action.RESTORE and self._is_kept:
            yield
            if self._keeper.build(load_config(self._storage)):
                self._keeper.add_again(self._partitions)
                self._keeper.add(self._wanted)
            return
        if not self._makes_stale(instant, content):
            yield
            return
        self.switch_off()
        yield
        self.remove_files()

    def removing(self, instant: Instant) -> None:
        """Let the metadata table forget a pending instant before it leaves the timeline, or switch it off."""
        if self._is_kept and _is_kept(load_config(self._storage)):
            try:
                self._keeper.take_back(instant)
                return
            except MetadataTableError as error:
                self._give_up(error)
        if self._is_registered and self._may_know(instant.requested):
            self.switch_off()

    def switch_off(self) -> None:
        """Remove the metadata table from the table properties."""
        if self._is_registered:
            config = load_config(self._storage)
            self._check()
            if _remove_from_properties(self._storage, config, self._clock):
                _log_switched_off(config)
            self._is_registered = False

    def remove_files(self) -> None:
        """Delete the files of a metadata table that is off; the next write deletes what remains."""
        if self._is_gone:
            return
        try:
            is_used = _is_registered(load_config(self._storage))  # others built it, if the lock was lost
            if not is_used and self._storage.list_folders(METADATA_FOLDER):
                self._check()
                self._storage.delete_tree(METADATA_FOLDER)
                undefine(self._storage, ())  # a damaged file, which would be in the way of another one
            self._is_gone = True
        except (DrawstringError, OSError) as error:
            _log.warning(
                "Files of the metadata table that was switched off could not be deleted and stay for now: %s",
                error,
            )

    @cached_property
    def _keeper(self) -> MetadataMaintainer:
        return MetadataMaintainer(self._storage, self._clock, self._ids, self._check, self._compaction)

    def _keep(self, instant: Instant, content: bytes) -> bool:
        """Bring the metadata table up to date; False if that is not possible, or not needed."""
        if instant.action in (Action.SAVEPOINT, Action.RESTORE):
            return False
        config = load_config(self._storage)
        # A restore switches it off; others may have built one, if the lock was lost.
        self._is_registered, self._is_kept = _is_registered(config), _is_kept(config)
        if self._builds and not self._is_registered:
            self._is_kept = self._is_registered = self._build(config, instant)
            config = load_config(self._storage)
        if not self._is_kept:
            return False
        try:
            if self._wanted:
                self._keeper.add(self._wanted)
                config = load_config(self._storage)
            delta = self._encoded.delta if self._encoded else None
            self._added = self._keeper.update(config, instant, content, self._held, self._timeline(), delta)
        except MetadataTableError as error:
            self._give_up(error)
        return self._is_kept

    def _build(self, config: TableConfig, completing: Instant) -> bool:
        """Build the metadata table; False if that has to wait, or data files are missing.

        Where the table lock was lost it waits too: the claim on the instant decides whether it completes.
        """
        try:
            return self._keeper.build(config, completing)
        except (ConflictError, CorruptTableError) as error:
            _log.warning("The metadata table of %s cannot be built now: %s", config.name, error)
            return False

    def _compact(self) -> None:
        try:
            self._keeper.compact()
        except MetadataTableError as error:
            self._give_up(error)
            self.switch_off()
            self.remove_files()

    def _give_up(self, error: DrawstringError) -> None:
        _log.warning("The metadata table cannot be kept up to date: %s", error)
        self._is_kept = False

    def _makes_stale(self, instant: Instant, content: bytes) -> bool:
        if instant.action is Action.ROLLBACK:
            return self._is_registered and self._may_know(decode_rollback(content, "").instant)
        return instant.action is not Action.SAVEPOINT

    def _may_know(self, requested: str) -> bool:
        """Return whether the metadata table has, or may have had and archived, an entry of an instant."""
        if requested in self._own:
            return False
        names = [status.name for folder in _TIMELINES for status in self._storage.list_files(folder)]
        times = [name for name in names if name[:14].isdecimal() and not name.startswith(BUILD_TIME_PREFIX)]
        return any(name.startswith(requested) for name in times) or requested < min(times, default="")


def _is_kept(config: TableConfig) -> bool:
    """Return whether this release maintains the metadata table of a table."""
    return FILES in config.metadata_partitions


def _is_registered(config: TableConfig) -> bool:
    return any(config.properties.get(key) for key in _KEYS)


def _remove_from_properties(storage: Storage, config: TableConfig, clock: Clock) -> bool:
    """Remove the metadata table from the properties; return False if they do not register it."""
    if not _is_registered(config):
        return False
    save_properties(storage, without_metadata_table(config.properties), clock)
    return True


def _log_switched_off(config: TableConfig) -> None:
    _log.warning(
        "Switched off the metadata table of %s (%s): it cannot be kept up to date, and a stale one would"
        " mislead readers. Writes with hoodie.metadata.enable=true, the default, build it again.",
        config.name,
        config.properties.get(_KEYS[0]) or "left behind",
    )


def _told(metadata: CommitMetadata) -> CommitMetadata:
    return replace(metadata, extra={**metadata.extra, WRITER: this_process()})


def _content_of(config: TableConfig, instant: Instant, metadata: CommitMetadata) -> bytes:
    is_replace = instant.action.completed_action is Action.REPLACE_COMMIT
    return encode_commit(metadata, config.layout, is_replace)
