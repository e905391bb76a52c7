"""Upgrade and downgrade of a table among versions 6, 8, 9 and 10.

    check      the new version supports everything that the table has       nothing was written yet
    compact    MERGE_ON_READ: run pending compactions, compact all log files, as Hudi does; not from 9 to 10
    lock:      roll failed writes back, switch a foreign metadata table off
               no pending compaction, no log file in a latest slice?        else compact again
               archive cleans and rollbacks that earlier archiving left     before completion times count
               copy the timeline into its other layout                      `timeline.layout_migration`
               replace the properties                                       the change takes effect
               delete the timeline of the old layout

A process may die at any point: until the properties are replaced the table has its old version, afterwards
the new one. What remains of the other layout is deleted by the next change, or by a call with the version
that the table has.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

import pyarrow.compute as pc

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import (
    ConflictError,
    DrawstringError,
    InvalidError,
    MissingFileError,
    UnsupportedError,
)
from drawstring.config.keys.compaction import Strategy
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig, table_config
from drawstring.config.table.kinds import KeyGeneratorType
from drawstring.config.table.version_changes import (
    keeps_log_files,
    moves_timeline,
    obstacles,
    properties_of_version,
    version_with_another_layout,
)
from drawstring.formats.base_files import Selection, read_base
from drawstring.formats.metadata.index_definitions import INDEX_DEFINITIONS, definitions_of_version
from drawstring.model.files import LogFile
from drawstring.model.instant import Action
from drawstring.model.result import VersionPlan, VersionResult
from drawstring.model.table_version import (
    VERSION_RULES,
    WRITABLE_VERSIONS,
    LogFormat,
    VersionRules,
    writable_rules,
)
from drawstring.schema.meta import KEY_ALONE, RECORD_KEY
from drawstring.services.archiving.run import archive_stragglers
from drawstring.services.compaction.run import compact
from drawstring.services.progress import Progress
from drawstring.storage.data_files import data_files
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage
from drawstring.timeline.change_detection import retry_on_archiving
from drawstring.timeline.layout_migration import MigratedInstants, copy_timeline, remove_timeline
from drawstring.timeline.properties_store import load_config, save_properties
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.timeline.version_change import begin_change, end_change
from drawstring.txn.events import emit_version_change
from drawstring.txn.foreign_features import MetadataTableGuard, check_writable, without_metadata_table
from drawstring.txn.live_work import refuse_live_work
from drawstring.txn.table_context import TableContext
from drawstring.txn.told import told
from drawstring.txn.transaction import LockedTable, lock_table, recover

_COMPACTIONS_MAX: Final = 3
_COMPACTION_ACTIONS: Final = (Action.COMPACTION, Action.LOG_COMPACTION)
_log = logging.getLogger("drawstring")


def planned_version(context: TableContext, version: int) -> VersionPlan:
    """Return what `change_version` would do; the table is not changed.

    Raises:
        UnsupportedError: the version does not exist, or does not support what the table has.
    """
    config = load_config(context.storage)
    _check(context.storage, config, version)
    new_properties = properties_of_version(config.properties, version)
    keys = sorted({*config.properties, *new_properties})
    pairs = {key: (config.properties.get(key), new_properties.get(key)) for key in keys}
    return VersionPlan(
        old=config.version,
        new=version,
        moves_timeline=moves_timeline(config.layout, table_config(new_properties).layout),
        properties={key: pair for key, pair in pairs.items() if pair[0] != pair[1]},
    )


def change_version(
    context: TableContext, version: int, options: WriteOptions, progress: Progress | None = None
) -> VersionResult:
    """Upgrade or downgrade a table.

    Args:
        context: the open table.
        version: 6, 8, 9 or 10; the table's own version only deletes what an interrupted change left.
        options: of writes: codec, lock wait; the compaction includes all file groups.
        progress: called after each compacted file group.

    Returns:
        What was changed.

    Raises:
        UnsupportedError: the version does not exist, or does not support what the table has; nothing was
            written.
        ConflictError: another writer holds the table, or another process writes or runs a service.
        InvalidError: file groups with log files are in a pending clustering.
    """
    watch = Stopwatch()
    config = load_config(context.storage)
    _check(context.storage, config, version)
    compacted: str | None = None
    for _ in range(_COMPACTIONS_MAX):
        if config.is_merge_on_read and not keeps_log_files(config.version, version):
            compaction_result = compact(context, _full_compaction(options), progress)
            compacted = compaction_result.instant if compaction_result else compacted
        with lock_table(context, options.locking) as locked:
            migrated = _change(locked, version, options)
            if migrated is None:
                continue
            result = VersionResult(
                old=locked.config.version,
                new=version,
                compacted=compacted,
                instants=migrated.active,
                archived=migrated.archived,
                seconds=round(watch.seconds(), 3),
            )
            if result.old == result.new:
                return result
            store = TimelineStore(context.storage, load_config(context.storage), context.clock)
            return emit_version_change(context, locked.config, store.load().latest_time() or "", result)
    raise ConflictError(
        "Other writers add log files faster than they are compacted. Stop them while the version changes, and"
        " try again.",
        table=context.storage.spec.uri,
    )


def _check(storage: Storage, config: TableConfig, version: int) -> None:
    if writable_rules(version) is None or isinstance(version, bool):
        supported = ", ".join(map(str, WRITABLE_VERSIONS))
        raise UnsupportedError(
            f"There is no table version {version} to change to. Choose one of {supported}.",
            table=storage.spec.uri,
        )
    check_writable(storage, config)
    if reasons := obstacles(config.properties, version):
        raise UnsupportedError(
            f"A table of version {version} cannot have {'; nor '.join(reasons)}. Leave the table at version"
            f" {config.version}, or copy its rows to a new table.",
            table=storage.spec.uri,
        )
    if config.rules.log_format is LogFormat.NATIVE and VERSION_RULES[version].log_format is LogFormat.INLINE:
        _check_change_logs(storage, version)


def _check_change_logs(storage: Storage, version: int) -> None:
    """Refuse native files of change images, which readers of a lower version do not know.

    Raises:
        UnsupportedError: there are such files.
    """
    for status in data_files(storage):
        log = LogFile.parse(status)
        if log is not None and log.native is not None and log.is_cdc:
            raise UnsupportedError(
                f"The table has change logs in native files, which readers of version {version} do not know:"
                " change queries would lack their changes. Clean the commits that wrote them, or leave the"
                " table at its version.",
                table=storage.spec.uri,
                path=status.path,
            )


def _full_compaction(options: WriteOptions) -> WriteOptions:
    """Return options by which a compaction includes every file group and makes base files of all."""
    compact_all = replace(
        options.compaction,
        strategies=(Strategy.UNBOUNDED,),
        hybrid=False,
        log_bytes_min=0,
        log_files_min=0,
    )
    return replace(options, compaction=compact_all)


def _change(locked: LockedTable, version: int, options: WriteOptions) -> MigratedInstants | None:
    """Change the version of a locked table; return None if log files have to be compacted first."""
    storage = locked.context.storage
    if locked.config.version == version:
        return MigratedInstants(_sweep(storage, locked.config), 0)
    _check(storage, locked.config, version)
    if VERSION_RULES[version].prefixes_single_keys and not locked.config.rules.prefixes_single_keys:
        _check_keys_have_names(locked)
    timeline = locked.store.load()
    refuse_live_work(locked.context, timeline, options.failed_writes, "change the version of the table")
    locked = recover(locked, timeline=timeline)
    stays = keeps_log_files(locked.config.version, version)
    if locked.config.is_merge_on_read and not stays and not _has_no_logs(locked, locked.store.load()):
        return None
    properties_kept = without_metadata_table(locked.config.properties)
    new_config = table_config(properties_of_version(properties_kept, version))
    if new_config.layout.has_completion_times and not locked.config.layout.has_completion_times:
        archive_stragglers(locked, options)
    properties_version = begin_change(storage)
    try:
        return _carry_out(locked, new_config, options, properties_version)
    finally:
        end_change(storage)


def _carry_out(
    locked: LockedTable, new_config: TableConfig, options: WriteOptions, properties_version: str | None
) -> MigratedInstants:
    """Copy the timeline into its other layout, if the layout changes, and replace the properties."""
    storage, migrated = locked.context.storage, MigratedInstants(0, 0)
    changes_layout = moves_timeline(locked.config.layout, new_config.layout)
    if changes_layout:
        migrated = _copy(locked, new_config, options)
    _rewrite_definitions(storage, new_config.rules)
    locked.lock.check()
    save_properties(storage, new_config.properties, locked.context.clock, properties_version)
    MetadataTableGuard(storage, new_config, locked.context.clock).remove_files()
    if changes_layout:
        _remove(storage, locked.config)
    return migrated


def _has_no_logs(locked: LockedTable, timeline: Timeline) -> bool:
    """Return whether all records are in base files.

    Raises:
        ConflictError: another process runs a compaction.
        InvalidError: file groups with log files are in a pending clustering.
    """
    table = locked.context.storage.spec.uri
    for pending in timeline.pending_of(*_COMPACTION_ACTIONS):
        raise ConflictError(
            "A compaction is pending or another process runs it:"
            f" {told(locked.context.storage, locked.context.clock, pending)}. Run it or wait for it, then"
            " change the version again.",
            table=table,
            instant=pending.requested,
        )
    view = locked.context.lookup(locked.config, timeline).view()
    slices_with_logs = [each for each in view.all_slices() if each.logs]
    clusterings = view.pending_clusterings() if slices_with_logs else {}
    if clusterings:
        raise InvalidError(
            "File groups with log files are in a pending clustering and cannot be compacted before it. Run"
            " the clustering first (drawstring cluster, or table.cluster()), then change the version again.",
            table=table,
            instant=min(clusterings.values()),
        )
    return not slices_with_logs


def _check_keys_have_names(locked: LockedTable) -> None:
    """Refuse single-column record keys of a COMPLEX generator that lack the column name.

    Later writes of version 9 add the name, and the version does not record which of the two forms a table
    has; one file shows it.

    Raises:
        UnsupportedError: the keys lack the name.
    """
    config, storage = locked.config, locked.context.storage
    may_lack_names = config.key_generator is KeyGeneratorType.COMPLEX and len(config.record_key_fields) == 1
    if not may_lack_names or not config.populate_meta_fields:
        return
    view = locked.context.lookup(config, locked.store.load()).view()
    bases = (each.base for each in view.all_slices() if each.base)
    for base in bases:
        selection = Selection((RECORD_KEY,), types=KEY_ALONE)
        for batch in read_base(storage, base.status.path, selection):
            has_names = pc.all(pc.starts_with(batch.column(0), f"{config.record_key_fields[0]}:")).as_py()
            if not has_names:
                raise UnsupportedError(
                    f"Record keys lack the name of their column {config.record_key_fields[0]}, with which"
                    " version 9 writes them. Leave the table at version 8, or copy its rows to a new table.",
                    table=storage.spec.uri,
                    path=base.status.path,
                )
            return


def _copy(locked: LockedTable, new: TableConfig, options: WriteOptions) -> MigratedInstants:
    """Write the timeline in its other layout; delete the copy if that fails.

    Who archived before may still take instants off the timeline, for which the table lock is not needed.

    Raises:
        MissingFileError: a file is missing that nobody archived.
        UnavailableError: that went on during each of several attempts.
    """
    storage = locked.context.storage

    def attempt(_: Timeline) -> MigratedInstants:
        remove_timeline(storage, new)
        try:
            return copy_timeline(storage, locked.config, new, options.archiving, locked.lock.check)
        except FileNotFoundError as error:
            path = str(error.filename or error)
            raise MissingFileError(
                "A file of the timeline is missing. Restore it from a backup.", path=path
            ) from error

    try:
        return retry_on_archiving(locked.store, attempt)
    except (DrawstringError, OSError):
        _remove(storage, new)
        raise


def _remove(storage: Storage, config: TableConfig) -> None:
    try:
        remove_timeline(storage, config)
    except (DrawstringError, OSError) as error:
        _log.warning(
            "Files of the unused timeline in layout %d stay in %s. To delete them, change the table to the"
            " version that it has: %s",
            config.layout.number,
            config.name,
            error,
        )


def _sweep(storage: Storage, config: TableConfig) -> int:
    """Delete the other layout's timeline, left by an interrupted change; return its number of files."""
    other = version_with_another_layout(config.layout)
    return remove_timeline(storage, table_config(properties_of_version(config.properties, other)))


def _rewrite_definitions(storage: Storage, rules: VersionRules) -> None:
    try:
        data = storage.read(INDEX_DEFINITIONS)
    except FileNotFoundError:
        return
    storage.put(INDEX_DEFINITIONS, definitions_of_version(data, rules))
    storage.sync(folders_above([INDEX_DEFINITIONS]))
