"""Upgrade and downgrade a table among versions 6, 8, 9 and 10.

    check      the new version supports everything that the table has       nothing was written yet
    compact    MERGE_ON_READ: run pending compactions, compact all log files, as Hudi does; not from 9 to 10
    lock:      roll failed writes back, switch a foreign metadata table off
               no pending compaction, no log file in a latest slice?        else compact again
               archive cleans and rollbacks that earlier archiving left     before completion times count
               copy the timeline into its other layout                      `timeline.migration`
               replace the properties                                       the change takes effect
               delete the timeline of the old layout

A process may die at any point: until the properties are replaced the table has its old version, afterwards
the new one. The next change, or a call with the version that the table has, deletes what remains of the
other layout.

Properties change step by step, 6 <-> 8 <-> 9 <-> 10, like the upgrade and downgrade handlers of Hudi 1.2.0,
and those to and from 10 like Hudi's later ones (pure functions):

    6 -> 8   adds timeline folder, initial version, merge mode and strategy id (by payload class), and both
             class and type of key generator and bootstrap index
    8 -> 9   replaces a well-known payload class by merge mode, partial update mode and merge properties,
             and stores it as the legacy payload class
    9 -> 8   reverses this
    9 -> 10  says which meta columns there are; log files stay, since readers of version 10 know both formats
    10 -> 9  removes that and the storage layout
    8 -> 6   removes merge mode and strategy id: a payload class defines how records merge

Properties that a lower version cannot express prevent the change, see `obstacles`.

`set_storage_layout` returns a table from the storage layout `lsm_tree` to `default`: one put of the
properties.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
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
from drawstring.config.keys.services import Strategy
from drawstring.config.merge_config import MERGE_PROPERTY_PREFIX
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.payload_classes import (
    COMMIT_TIME_STRATEGY,
    DEFAULT,
    EVENT_TIME_STRATEGY,
    OVERWRITE,
    PAYLOAD_CLASSES,
    PAYLOAD_PACKAGE,
    PAYLOAD_STRATEGY,
    STRATEGY_MODES,
    MergeMode,
    MergeRule,
    payload_class,
)
from drawstring.config.table.key_settings import BARE_SINGLE_KEY
from drawstring.config.table.properties import CLASS_KEY, TYPE_KEY
from drawstring.config.table.storage_layout import BASE_FORMAT, DEFAULT_LAYOUT, LSM_TREE, STORAGE_LAYOUT
from drawstring.config.table.virtual_keys import meta_field_properties
from drawstring.config.table_config import TableConfig, table_config
from drawstring.config.table_types import (
    META_FIELDS_MODE,
    KeyGeneratorType,
    TableType,
    class_of_type,
    type_name_of_class,
)
from drawstring.formats.data_file import Selection, read_base
from drawstring.formats.metadata.index_definitions import INDEX_DEFINITIONS, definitions_of_version
from drawstring.model.files import LogFile
from drawstring.model.instant import Action
from drawstring.model.result import VersionPlan, VersionResult
from drawstring.model.table_version import (
    VERSION_RULES,
    WRITABLE_VERSIONS,
    LogFormat,
    TimelineLayout,
    VersionRules,
    writable_rules,
)
from drawstring.schema.fields import KEY_ALONE, RECORD_KEY
from drawstring.services.archive import archive_stragglers
from drawstring.services.compaction import compact
from drawstring.services.progress import Progress
from drawstring.storage.local import data_files
from drawstring.storage.protocol import Storage, folders_above
from drawstring.timeline.change_detection import retry_on_archiving
from drawstring.timeline.migration import MigratedInstants, copy_timeline, remove_timeline
from drawstring.timeline.properties import load_config, properties_version, save_properties
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.timeline.version_change import begin_change, end_change
from drawstring.txn.events import emit_version_change
from drawstring.txn.foreign_features import MetadataTableGuard, check_writable, without_metadata_table
from drawstring.txn.heartbeat import describe_instant, refuse_live_work
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover


def set_storage_layout(context: TableContext, layout: str, options: WriteOptions) -> bool:
    """Change the storage layout of a table; its files stay as they are.

    Writers that began before may still write sorted files, which both layouts allow.

    Args:
        context: the open table.
        layout: `default`; `lsm_tree` only if the table has it.
        options: lock wait.

    Returns:
        Whether it changed.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: the table does not have sorted files, or there is no such layout.
    """
    wanted = layout.strip().lower()
    if wanted not in (DEFAULT_LAYOUT, LSM_TREE):
        raise InvalidError(f"There is no storage layout {layout!r}. Use {DEFAULT_LAYOUT} or {LSM_TREE}.")
    with lock_table(context, options.locking) as locked:
        config = locked.config
        if wanted == config.storage_layout:
            return False
        if wanted == LSM_TREE:
            raise InvalidError(
                f"The files of the table are not sorted, so {STORAGE_LAYOUT} cannot become {LSM_TREE}. Create"
                " another table with this property, and copy the rows."
            )
        storage = context.storage
        version = properties_version(storage)
        locked.lock.check()
        properties = {**config.properties, STORAGE_LAYOUT: DEFAULT_LAYOUT}
        save_properties(storage, properties, context.clock, version)
    return True


_VERSION: Final = "hoodie.table.version"
_LAYOUT: Final = "hoodie.timeline.layout.version"
_INITIAL: Final = "hoodie.table.initial.version"
_MODE: Final = "hoodie.record.merge.mode"
_STRATEGY: Final = "hoodie.record.merge.strategy.id"
_PAYLOAD: Final = "hoodie.compaction.payload.class"
_LEGACY_PAYLOAD: Final = "hoodie.table.legacy.payload.class"
_PARTIAL_MODE: Final = "hoodie.table.partial.update.mode"
_ORDERING: Final = "hoodie.table.ordering.fields"
_PRECOMBINE: Final = "hoodie.table.precombine.field"
_INDEX_CLASS: Final = "hoodie.bootstrap.index.class"
_INDEX_TYPE: Final = "hoodie.bootstrap.index.type"
_HFILE_INDEX: Final = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_NO_INDEX: Final = "org.apache.hudi.common.bootstrap.index.NoOpBootstrapIndex"
_PLAIN_PAYLOADS: Final = ("", *(each.full_name for each in PAYLOAD_CLASSES.values() if each.is_plain))
_STRATEGY_OF_MODE: Final[Mapping[str, str]] = {mode: strategy for strategy, mode in STRATEGY_MODES.items()}

_Properties = dict[str, str]


def properties_of_version(properties: Mapping[str, str], version: int) -> dict[str, str]:
    """Return the properties of a table after a change of its version.

    Args:
        properties: the current properties.
        version: the new version.
    """
    changed = dict(properties)
    for step in _steps(int(properties[_VERSION]), version):
        _STEPS[step](changed)
        changed[_VERSION] = str(step[1])
        changed[_LAYOUT] = str(VERSION_RULES[step[1]].layout.number)
    return changed


def obstacles(properties: Mapping[str, str], version: int) -> list[str]:
    """Return descriptions of the properties that another version cannot express, empty if there are none.

    Args:
        properties: the current properties.
        version: the new version.
    """
    steps = _steps(int(properties[_VERSION]), version)
    reasons: list[str] = []
    if (9, 8) in steps:
        reasons += _without_legacy_payload(properties)
    if (8, 6) in steps and not _payload_of(properties) and properties.get(_MODE) == MergeMode.CUSTOM:
        reasons.append(f"a custom merger without a payload class ({_MODE}=CUSTOM), which version 6 needs")
    if (8, 6) in steps and properties.get(BASE_FORMAT, "").upper() == "LANCE":
        reasons.append(f"Lance base files ({BASE_FORMAT}=LANCE), which no reader of version 6 knows")
    if (8, 9) in steps and properties.get(BARE_SINGLE_KEY, "").lower() == "true":
        reasons.append(
            f"keys without column names ({BARE_SINGLE_KEY}), which version 9 writes with column names"
        )
    return reasons


def is_wrong_direction(current: int, version: int, *, lower: bool) -> bool:
    """Tell whether a change that is to lower, or to raise, a table's version asks for the other direction.

    Args:
        current: version of the table.
        version: that it is to have; one that no table can have leads nowhere.
        lower: whether the change is a downgrade.
    """
    last = version == (WRITABLE_VERSIONS[-1] if lower else WRITABLE_VERSIONS[0])
    is_known = {version, current} <= {*WRITABLE_VERSIONS}
    return is_known and (last or (version > current if lower else version < current))


def keeps_log_files(current: int, version: int) -> bool:
    """Tell whether log files mean the same after a change of version, so that none has to be compacted."""
    return all(step in _LOG_FILES_STAY for step in _steps(current, version))


def moves_timeline(old: TimelineLayout, new: TimelineLayout) -> bool:
    """Tell whether the timeline has to be written anew, when a table of one layout gets another."""
    return old != new


def version_with_another_layout(layout: TimelineLayout) -> int:
    """Return the lowest version whose timeline has another layout."""
    return next(
        number for number in WRITABLE_VERSIONS if moves_timeline(layout, VERSION_RULES[number].layout)
    )


def _steps(old: int, new: int) -> list[tuple[int, int]]:
    """Return the pairs of adjacent versions from one version to another."""
    path = [version for version in WRITABLE_VERSIONS if min(old, new) <= version <= max(old, new)]
    if new < old:
        path.reverse()
    return list(pairwise(path))


def _payload_of(properties: Mapping[str, str]) -> str:
    return properties.get(_PAYLOAD) or properties.get(_LEGACY_PAYLOAD) or ""


def _replaced(payload: str) -> MergeRule | None:
    """Return the rule that version 9 stores in place of a payload class of Hudi's, None for other classes."""
    known = payload_class(payload)
    return known.stored if known and payload.startswith(PAYLOAD_PACKAGE) else None


def _without_legacy_payload(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield the merge properties of version 9 that no payload class expresses in version 8."""
    rule = _replaced(properties.get(_LEGACY_PAYLOAD) or "")
    implied = (
        {} if rule is None else {MERGE_PROPERTY_PREFIX + key: value for key, value in rule.properties.items()}
    )
    partial = properties.get(_PARTIAL_MODE)
    if (
        partial
        and partial.upper() != "NONE"
        and (rule is None or rule.partial_update_mode != partial.upper())
    ):
        yield f"partial updates ({_PARTIAL_MODE}={partial}), for which version 8 needs a payload class"
    more = [key for key in properties if key.startswith(MERGE_PROPERTY_PREFIX) and key not in implied]
    if more:
        yield f"merge properties ({', '.join(sorted(more))}), for which version 8 needs a payload class"


def _six_to_eight(properties: _Properties) -> None:
    properties[_INITIAL] = "6"
    properties["hoodie.timeline.path"] = "timeline"
    _set_merge_mode(properties)
    name = properties.get(CLASS_KEY) or class_of_type(properties.get(TYPE_KEY, ""))
    if name:
        properties[CLASS_KEY] = name
        properties[TYPE_KEY] = type_name_of_class(name)
    if index := _bootstrap_index(properties):
        properties[_INDEX_CLASS] = index
        properties[_INDEX_TYPE] = "NO_OP" if index == _NO_INDEX else "HFILE"


def _set_merge_mode(properties: _Properties) -> None:
    payload = properties.get(_PAYLOAD) or DEFAULT.full_name
    is_merge_on_read = properties.get("hoodie.table.type", "").upper() == TableType.MERGE_ON_READ
    ordering = properties.get(_ORDERING) or properties.get(_PRECOMBINE)
    if payload not in _PLAIN_PAYLOADS:
        merging = (payload, MergeMode.CUSTOM, PAYLOAD_STRATEGY)
    elif payload == DEFAULT.full_name or (is_merge_on_read and ordering):
        # In version 6 log records merge by the ordering fields, regardless of the class.
        merging = (DEFAULT.full_name, MergeMode.EVENT_TIME_ORDERING, EVENT_TIME_STRATEGY)
    else:
        merging = (OVERWRITE.full_name, MergeMode.COMMIT_TIME_ORDERING, COMMIT_TIME_STRATEGY)
    properties |= dict(zip((_PAYLOAD, _MODE, _STRATEGY), merging, strict=True))


def _eight_to_nine(properties: _Properties) -> None:
    payload = properties.get(_PAYLOAD, "")
    rule = _replaced(payload)
    if properties.get(_MODE) != MergeMode.CUSTOM:
        properties.pop(_STRATEGY, None)
    if rule is not None:
        _replace_payload_class(properties, rule, payload)
    ordering = properties.get(_ORDERING) or properties.get(_PRECOMBINE)
    if rule is not None and rule.ordering_fields:
        ordering = ",".join(rule.ordering_fields)
    properties.pop(_PRECOMBINE, None)
    if ordering:
        properties[_ORDERING] = ordering


def _replace_payload_class(properties: _Properties, rule: MergeRule, payload: str) -> None:
    if payload not in (OVERWRITE.full_name, DEFAULT.full_name):
        properties |= {_MODE: rule.mode, _STRATEGY: _STRATEGY_OF_MODE[rule.mode]}
    if rule.partial_update_mode:
        properties[_PARTIAL_MODE] = rule.partial_update_mode
    properties |= {MERGE_PROPERTY_PREFIX + key: value for key, value in rule.properties.items()}
    properties[_LEGACY_PAYLOAD] = properties.pop(_PAYLOAD)


def _nine_to_eight(properties: _Properties) -> None:
    properties.pop(_PARTIAL_MODE, None)
    if strategy := _STRATEGY_OF_MODE.get(properties.get(_MODE, "")):
        properties[_STRATEGY] = strategy
    payload = properties.get(_LEGACY_PAYLOAD, "")
    rule = _replaced(payload)
    if rule is not None:
        properties[_PAYLOAD] = properties.pop(_LEGACY_PAYLOAD)
        if payload not in _PLAIN_PAYLOADS:
            properties |= {_STRATEGY: PAYLOAD_STRATEGY, _MODE: MergeMode.CUSTOM}
        for key in rule.properties:
            properties.pop(MERGE_PROPERTY_PREFIX + key, None)
    ordering = properties.pop(_ORDERING, None)
    known = payload_class(payload)
    if known and known.code.ordering_fields:
        ordering = ",".join(known.code.ordering_fields)
    if ordering:
        properties[_PRECOMBINE] = ordering


def _eight_to_six(properties: _Properties) -> None:
    mode = properties.pop(_MODE, None)
    properties.pop(_STRATEGY, None)
    if not properties.get(_PAYLOAD):
        by_event_time = mode == MergeMode.EVENT_TIME_ORDERING
        properties[_PAYLOAD] = DEFAULT.full_name if by_event_time else OVERWRITE.full_name
    name = class_of_type(properties.get(TYPE_KEY, "")) or properties.get(CLASS_KEY)
    if name:
        properties[CLASS_KEY] = name
    if index := _bootstrap_index(properties):
        properties[_INDEX_CLASS] = index
    properties.pop(_INDEX_TYPE, None)


def _bootstrap_index(properties: Mapping[str, str]) -> str | None:
    """Return the class of the bootstrap index, None for a table without one."""
    if not (properties.get(_INDEX_CLASS) or properties.get(_INDEX_TYPE)):
        return None
    if properties.get("hoodie.bootstrap.index.enable", "true").lower() != "true":
        return _NO_INDEX
    kind = properties.get(_INDEX_TYPE, "").upper()
    return _NO_INDEX if kind == "NO_OP" else properties.get(_INDEX_CLASS) or _HFILE_INDEX


def _nine_to_ten(properties: _Properties) -> None:
    """Say which meta columns there are by a mode; the version alone says that new log files are native."""
    properties |= meta_field_properties(properties, has_mode=True)


def _ten_to_nine(properties: _Properties) -> None:
    properties.pop(STORAGE_LAYOUT, None)
    properties |= meta_field_properties(properties, has_mode=False)
    properties.pop(META_FIELDS_MODE, None)


_LOG_FILES_STAY: Final = {(9, 10)}

_STEPS: Final[Mapping[tuple[int, int], Callable[[_Properties], None]]] = {
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 10): _nine_to_ten,
    (10, 9): _ten_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
}


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
            f" {describe_instant(locked.context.storage, locked.context.clock, pending)}. Run it or wait"
            " for it, then"
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
            " the clustering first (drawstring services cluster, or table.services.cluster()), then change"
            " the version"
            " again.",
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
