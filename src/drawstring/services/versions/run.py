"""Upgrade and downgrade: a table among versions 6, 8 and 9.

    check      the other version can hold all that the table has            nothing was written yet
    fold       MERGE_ON_READ: run pending compactions, compact what has log files, as Hudi does
    lock:      take back what dead writers left, a foreign metadata table goes
               no compaction pending, no log file in a latest slice?        else fold again
               what stayed when writes after it were archived is archived   before completion times count
               the timeline in its other layout, beside the one that counts (`timeline.layout_migration`)
               the properties                                               the moment of the change
               the timeline that counts no more goes

A process may die anywhere: until the properties are replaced the table is what it was, from then on it is
of the other version. What is left behind of the other layout goes with the next change, or with a call that
asks for the version that the table has.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import ConflictError, DrawstringError, InvalidError, UnsupportedError
from drawstring.config.keys.compaction import Strategy
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig, table_config
from drawstring.config.table.kinds import KeyGeneratorType
from drawstring.config.table.version_changes import (
    moves_timeline,
    obstacles,
    properties_of_version,
    version_with_another_layout,
)
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.metadata.index_definitions import INDEX_DEFINITIONS, definitions_of_version
from drawstring.formats.parquet import ParquetQuery, read_parquet
from drawstring.model.instant import Action
from drawstring.model.result import VersionPlan, VersionResult
from drawstring.model.table_version import VERSION_RULES, WRITABLE_VERSIONS, VersionRules, writable_rules
from drawstring.schema.meta import RECORD_KEY
from drawstring.services.archiving.run import archive_stragglers
from drawstring.services.compaction.run import compact
from drawstring.services.progress import Progress
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage
from drawstring.timeline.layout_migration import Relaid, copy_timeline, remove_timeline
from drawstring.timeline.properties_store import load_config, save_properties
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.timeline.version_change import begin_change, end_change
from drawstring.txn.events import emit_version_change
from drawstring.txn.metadata_table import MetadataTableGuard, without_metadata_table
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover
from drawstring.txn.writable import check_writable

_FOLDS_MAX: Final = 3
_COMPACTIONS: Final = (Action.COMPACTION, Action.LOG_COMPACTION)
_log = logging.getLogger("drawstring")


def planned_version(state: TableContext, version: int) -> VersionPlan:
    """Return what `change_version` would do; the table stays as it is.

    Raises:
        UnsupportedError: there is no such version, or it cannot hold what the table has.
    """
    config = load_config(state.storage)
    _check(state.storage, config, version)
    then = properties_of_version(config.properties, version)
    keys = sorted({*config.properties, *then})
    pairs = {key: (config.properties.get(key), then.get(key)) for key in keys}
    return VersionPlan(
        old=config.version,
        new=version,
        moves_timeline=moves_timeline(config.layout, table_config(then).layout),
        properties={key: pair for key, pair in pairs.items() if pair[0] != pair[1]},
    )


def change_version(
    state: TableContext, version: int, options: WriteOptions, progress: Progress | None = None
) -> VersionResult:
    """Make a table one of another version.

    Args:
        state: the table.
        version: 6, 8 or 9; that of the table only clears away what an interrupted change left.
        options: of writes: codec, lock wait; the compaction takes all file groups.
        progress: told of every file group that is compacted.

    Raises:
        UnsupportedError: there is no such version, or it cannot hold what the table has; nothing was written.
        ConflictError: another writer holds the table, or another process runs a compaction.
        InvalidError: file groups with log files are in a pending clustering.
    """
    watch = Stopwatch()
    config = load_config(state.storage)
    _check(state.storage, config, version)
    compacted: str | None = None
    for _ in range(_FOLDS_MAX):
        if config.is_merge_on_read and config.version != version:
            folded = compact(state, _folding(options), progress)
            compacted = folded.instant if folded else compacted
        with lock_table(state, options.lock_wait_ms) as found:
            relaid = _change(found, version, options)
            if relaid is None:
                continue
            result = VersionResult(
                old=found.config.version,
                new=version,
                compacted=compacted,
                instants=relaid.active,
                archived=relaid.archived,
                seconds=round(watch.seconds(), 3),
            )
            if result.old == result.new:
                return result
            store = TimelineStore(state.storage, load_config(state.storage), state.clock)
            return emit_version_change(state, found.config, store.load().latest_time() or "", result)
    raise ConflictError(
        "other writers add log files faster than they are compacted: stop them while the version changes,"
        " then try again",
        table=state.storage.spec.uri,
    )


def _check(storage: Storage, config: TableConfig, version: int) -> None:
    if writable_rules(version) is None or isinstance(version, bool):
        known = ", ".join(map(str, WRITABLE_VERSIONS))
        raise UnsupportedError(
            f"there is no table version {version} to change to: choose one of {known}", table=storage.spec.uri
        )
    check_writable(storage, config)
    if found := obstacles(config.properties, version):
        raise UnsupportedError(
            f"a table of version {version} cannot hold {'; nor '.join(found)}: leave the table at version"
            f" {config.version}, or copy its rows to a new table",
            table=storage.spec.uri,
        )


def _folding(options: WriteOptions) -> WriteOptions:
    """Return options whose compaction takes every file group and makes base files of all of them."""
    whole = replace(
        options.compaction,
        strategies=(Strategy.UNBOUNDED,),
        hybrid=False,
        log_bytes_min=0,
        log_files_min=0,
    )
    return replace(options, compaction=whole)


def _change(found: LockedTable, version: int, options: WriteOptions) -> Relaid | None:
    """Change the version of a locked table, None where log files have to be folded first."""
    storage = found.state.storage
    if found.config.version == version:
        return Relaid(_sweep(storage, found.config), 0)
    _check(storage, found.config, version)
    if VERSION_RULES[version].prefixes_single_keys and not found.config.rules.prefixes_single_keys:
        _check_named_keys(found)
    session = recover(found)
    if session.config.is_merge_on_read and not _is_folded(session, session.store.load()):
        return None
    kept = without_metadata_table(session.config.properties)
    then = table_config(properties_of_version(kept, version))
    if then.layout.has_completion_times and not session.config.layout.has_completion_times:
        archive_stragglers(session, options)
    before = begin_change(storage)
    try:
        return _carry_out(session, then, options, before)
    finally:
        end_change(storage)


def _carry_out(session: LockedTable, then: TableConfig, options: WriteOptions, before: str | None) -> Relaid:
    """Bring the timeline to its other layout, if it has one, and replace the properties of a version."""
    storage, relaid = session.state.storage, Relaid(0, 0)
    is_relaid = moves_timeline(session.config.layout, then.layout)
    if is_relaid:
        relaid = _copy(storage, session.config, then, options)
    _rewrite_definitions(storage, then.rules)
    session.lock.check()
    save_properties(storage, then.properties, session.state.clock, before)
    MetadataTableGuard(storage, then, session.state.clock).remove_files()
    if is_relaid:
        _remove(storage, session.config)
    return relaid


def _is_folded(session: LockedTable, timeline: Timeline) -> bool:
    """Tell whether all records stand in base files.

    Raises:
        ConflictError: another process runs a compaction.
        InvalidError: file groups with log files are in a pending clustering.
    """
    table = session.state.storage.spec.uri
    for pending in timeline.pending_of(*_COMPACTIONS):
        raise ConflictError(
            "another process runs a compaction: wait for it, then change the version again",
            table=table,
            instant=pending.requested,
        )
    view = SliceLookup(session.state.storage.spec, session.config, timeline).view()
    logged = [each for path in view.partitions() for each in view.slices(path) if each.logs]
    clusterings = view.pending_clusterings() if logged else {}
    if clusterings:
        raise InvalidError(
            "file groups with log files wait for a clustering, and are not compacted before it: run it first"
            " (drawstring cluster, or table.cluster()), then change the version again",
            table=table,
            instant=min(clusterings.values()),
        )
    return not logged


def _check_named_keys(session: LockedTable) -> None:
    """Refuse keys of one column, under a COMPLEX generator, that lack its name: later writes would have it.

    Version 9 does not say which of the two a table has; one file tells.

    Raises:
        UnsupportedError: they lack it.
    """
    config, storage = session.config, session.state.storage
    is_told = config.key_generator is KeyGeneratorType.COMPLEX and len(config.record_key_fields) == 1
    if not is_told or not config.populate_meta_fields:
        return
    view = SliceLookup(storage.spec, config, session.store.load()).view()
    bases = (each.base for path in view.partitions() for each in view.slices(path) if each.base)
    for base in bases:
        query = ParquetQuery((RECORD_KEY,), types=pa.schema([(RECORD_KEY, pa.string())]))
        for batch in read_parquet(storage, base.status.path, query):
            named = pc.all(pc.starts_with(batch.column(0), f"{config.record_key_fields[0]}:")).as_py()
            if not named:
                raise UnsupportedError(
                    f"record keys lack the name of their column {config.record_key_fields[0]}, with which"
                    " version 9 writes them: leave the table at version 8, or copy its rows to a new table",
                    table=storage.spec.uri,
                    path=base.status.path,
                )
            return


def _copy(storage: Storage, old: TableConfig, new: TableConfig, options: WriteOptions) -> Relaid:
    """Write the timeline in its other layout; where that fails, what was written goes again."""
    remove_timeline(storage, new)
    try:
        return copy_timeline(storage, old, new, options.archiving)
    except (DrawstringError, OSError):
        _remove(storage, new)
        raise


def _remove(storage: Storage, config: TableConfig) -> None:
    try:
        remove_timeline(storage, config)
    except (DrawstringError, OSError) as error:
        _log.warning(
            "files of a timeline in layout %d, which does not count, stay in %s; asking for the version that"
            " the table has clears them away: %s",
            config.layout.number,
            config.name,
            error,
        )


def _sweep(storage: Storage, config: TableConfig) -> int:
    """Take away the timeline of the other layout, which an interrupted change left; return its files."""
    other = version_with_another_layout(config.layout)
    return remove_timeline(storage, table_config(properties_of_version(config.properties, other)))


def _rewrite_definitions(storage: Storage, rules: VersionRules) -> None:
    try:
        data = storage.read(INDEX_DEFINITIONS)
    except FileNotFoundError:
        return
    storage.put(INDEX_DEFINITIONS, definitions_of_version(data, rules))
    storage.sync(folders_above([INDEX_DEFINITIONS]))
