"""Building a metadata table for a table that has none, with the partition `files`, and further partitions.

    properties ──> base files of a partition ──> delta commit 00000000000000000 ──> table properties

Until the last step no reader uses it, so what a dead process left is deleted and built again. Files of
pending instants are left out: their delta commits add them when they complete.

A builder may stand still until it has lost the table lock, and another one builds. It checks the lock before
each step, so it takes one step more at most, and the other one has to bear that: its delta commit has another
time if anything of the first one was there, its files have other names, and the first one's properties, which
are the same, may stay. Table properties that others changed meanwhile are not put.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import TABLE_DISK, ConflictError, disk_errors
from drawstring.config.table.properties import table_checksum
from drawstring.config.table.storage_layout import LSM_TREE, STORAGE_LAYOUT
from drawstring.config.table_config import TableConfig
from drawstring.formats.metadata.index_definitions import DEFINITIONS_KEY, INDEX_DEFINITIONS
from drawstring.metadata.instant_times import next_build
from drawstring.metadata.log_format import encode_base_file, write_base_file
from drawstring.metadata.partitions.files import FilesMaintainer
from drawstring.metadata.partitions.maintainer import (
    GroupChange,
    InitialPartition,
    PartitionMaintainer,
    SortedGroup,
    TableFacts,
)
from drawstring.metadata.table import FILES, KEY, METADATA_FOLDER, PARTITIONS_KEY
from drawstring.metadata.writer import LogFileLocation, LogTarget, MetadataWriter, encode_logs
from drawstring.model.commit import WriteStat
from drawstring.model.files import (
    HFILE,
    HOODIE_FOLDER,
    PARTITION_METADATA,
    BaseFile,
    join_path,
)
from drawstring.model.instant import PLANNED_ACTIONS, Action, Instant, is_build
from drawstring.storage.protocol import Storage, Subfolder
from drawstring.timeline.claims import are_claimed
from drawstring.timeline.properties import (
    PROPERTIES_PATH,
    load_config,
    properties_version,
    save_properties,
    take_over_table,
)
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_SHARED: Final = frozenset(
    f"{METADATA_FOLDER}/{path}" for path in (PROPERTIES_PATH, f"{FILES}/{PARTITION_METADATA}")
)
"""Files that every builder puts under the same names."""

_WITHOUT_FILES: Final = frozenset((Action.SAVEPOINT, Action.INDEXING))

_INITIAL_VERSION: Final = "hoodie.table.initial.version"
_EMPTY_TOKEN: Final = "0-0-0"
_PAYLOAD: Final = "org.apache.hudi.metadata.HoodieMetadataPayload"
_NO_STRATEGY: Final = "00000000-0000-0000-0000-000000000000"
_NO_ROWS: Final = pa.table({KEY: pa.array([], pa.string())})
_NO_KEYS: Final = pa.array([], pa.string())
_log = logging.getLogger("drawstring")


def can_build(storage: Storage, config: TableConfig, timeline: Timeline, completing: Instant | None) -> bool:
    """Return whether a metadata table can be built for a table now.

    A process that stands still may have decided to complete an instant without a metadata table. Savepoints
    and indexing actions change no files of the table: those that nobody completes are in nobody's way.

    Log files with committed blocks may have the name of a pending clustering, while buckets are resized, and
    in layout 1 that of a pending compaction. There a log file may also have blocks of a pending write.

    Args:
        storage: the table's files.
        config: the table's settings.
        timeline: the table's timeline.
        completing: the instant that is about to complete, if there is one.
    """
    own = None if completing is None else completing.requested
    pending = (each for each in timeline.pending() if each.action not in _WITHOUT_FILES)
    others = [each for each in pending if each.requested != own]
    if config.rules.names_logs_by_slice:
        return not others and not timeline.pending_of(*PLANNED_ACTIONS)
    if timeline.pending_of(Action.CLUSTERING):
        return False
    return not are_claimed(storage, others)


def build(storage: Storage, clock: Clock, ids: Ids, check: Callable[[], None]) -> None:
    """Build the metadata table of a table that has none, whose lock the caller holds.

    Args:
        storage: the table's files.
        clock: creation times.
        ids: makes the names of files distinct.
        check: raises an error if the table lock was lost; called before each step that others could see.

    Raises:
        ConflictError: the table lock was lost.
        CorruptTableError: a file of the table is missing or damaged.
    """
    version = properties_version(storage)
    config = load_config(storage)
    leftovers = storage.list_tree(METADATA_FOLDER)
    facts = TableFacts(storage, config, clock)
    names = (status.name.partition(".")[0] for status in leftovers)
    requested = next_build(names, config.layout, lambda: facts.timeline)
    check()
    storage.delete(each.path for each in leftovers if each.path not in _SHARED)
    if not leftovers:
        _clear_place(storage)
    check()
    take_over_table(Subfolder(storage, METADATA_FOLDER), _properties(config), clock)
    writer = MetadataWriter.of(storage, clock, ids)
    # It completes after all that it lists, also where the clock of this machine is behind.
    writer.store.new_time(facts.timeline)
    initial = FilesMaintainer().initial(facts)
    _write_partition(writer, FILES, requested, initial, check)
    check()
    save_properties(storage, {**config.properties, PARTITIONS_KEY: FILES}, clock, version)
    _log.info("Built the metadata table of %s.", config.name)


def _clear_place(storage: Storage) -> None:
    """Delete a file that has the name of the folder of the metadata table."""
    in_the_way = [each.path for each in storage.list_files(HOODIE_FOLDER) if each.path == METADATA_FOLDER]
    if in_the_way:
        storage.delete(in_the_way)
        _log.warning("Deleted the file %s, where the metadata table belongs.", METADATA_FOLDER)


def add_partition(
    facts: TableFacts,
    ids: Ids,
    partition: str,
    maintainer: PartitionMaintainer,
    check: Callable[[], None],
) -> TableConfig:
    """Add a partition to the metadata table of a table, whose lock the caller holds.

    Args:
        facts: the table as it is.
        ids: makes the names of files distinct.
        partition: of the metadata table, which does not have it.
        maintainer: what keeps it.
        check: raises an error if the table lock was lost; called before each step that others could see.

    Returns:
        The settings of the table with the partition.

    Raises:
        ConflictError: the table lock was lost.
        CorruptTableError: a file of the table is missing or damaged.
    """
    storage, config = facts.storage, facts.config
    writer = MetadataWriter.of(storage, facts.clock, ids)
    check()
    storage.delete_tree(join_path(METADATA_FOLDER, partition))
    initial = maintainer.initial(facts)
    _write_partition(writer, partition, _new_build(writer), initial, check)
    check()
    maintainer.define(storage, config)
    initial.complete(facts, None)
    partitions = ",".join(sorted({*config.metadata_partitions, partition}))
    save_properties(
        storage,
        {**config.properties, PARTITIONS_KEY: partitions, DEFINITIONS_KEY: INDEX_DEFINITIONS},
        facts.clock,
    )
    _log.info("Added %s to the metadata table of %s.", partition, config.name)
    return load_config(storage)


def _new_build(writer: MetadataWriter) -> str:
    """Take back the builds of dead processes; return the requested time for another delta commit."""
    instants = writer.store.load().instants
    for instant in instants:
        if is_build(instant.requested) and not instant.is_completed:
            writer.discard(instant)  # one that stalled is fenced
    times = (each.requested for each in instants)
    return next_build(times, writer.config.layout, lambda: _timeline_of(writer.table, writer.clock))


def _timeline_of(table: Storage, clock: Clock) -> Timeline:
    return TimelineStore(table, load_config(table), clock).load()


@dataclass(frozen=True, slots=True)
class BegunPartition:
    """A partition of the metadata table with empty file groups, which writers fill from now on.

    Attributes:
        name: of the partition.
        requested: requested time of its delta commit.
        initial: its records as of its begin.
    """

    name: str
    requested: str
    initial: InitialPartition


def begin_partition(
    facts: TableFacts,
    ids: Ids,
    partition: str,
    maintainer: PartitionMaintainer,
    check: Callable[[], None],
) -> BegunPartition:
    """Make an empty partition in the metadata table of a table, whose lock the caller holds.

    What a dead process left of the partition is deleted.

    Args:
        facts: the table as it is; read later for the records that the partition begins with.
        ids: makes the names of files distinct.
        partition: of the metadata table, which does not have it.
        maintainer: what keeps it.
        check: raises an error if the table lock was lost; called before each step that others could see.

    Raises:
        ConflictError: the table lock was lost.
        CorruptTableError: a file of the table is missing or damaged.
    """
    check()
    writer = MetadataWriter.of(facts.storage, facts.clock, ids)
    facts.storage.delete_tree(join_path(METADATA_FOLDER, partition))
    initial = maintainer.initial(facts)
    requested = _new_build(writer)
    empty = InitialPartition(initial.file_ids, iter(()))
    _write_partition(writer, partition, requested, empty, check)
    return BegunPartition(partition, requested, initial)


def fill_partition(storage: Storage, clock: Clock, ids: Ids, begun: BegunPartition) -> list[str]:
    """Write the records that a partition begins with, and return the paths of the files.

    Log files that writers added meanwhile come after them, whenever this is done.

    Args:
        storage: the table's files.
        clock: creation times.
        ids: makes the names of files distinct.
        begun: the partition.

    Raises:
        CorruptTableError: a file of the table is missing or damaged.
    """
    writer = MetadataWriter.of(storage, clock, ids)
    stats = [_write_base(writer, each, begun.requested, _unlocked) for each in begun.initial.changes]
    writer.storage.sync([begun.name])
    return [join_path(METADATA_FOLDER, each.path) for each in stats]


def _write_partition(
    writer: MetadataWriter,
    partition: str,
    requested: str,
    initial: InitialPartition,
    check: Callable[[], None],
) -> None:
    """Write the files of a partition and complete their delta commit.

    Each file group begins with an empty log file, so that it is there even without a record.
    """
    instant, requested = _begin(writer, requested, check)
    check()
    writer.make_partition(partition, requested)
    logs = {}
    for file_id in initial.file_ids:
        log, content = _empty_log(writer, partition, file_id, requested)
        check()
        writer.storage.put(log.path, content)
        logs[file_id] = log
    stats = [_write_base(writer, each, requested, check) for each in initial.changes]
    writer.storage.sync([partition, ""])
    empty = logs.keys() - {each.file_id for each in stats} if partition != FILES else ()
    check()
    writer.complete(instant, [*stats, *(logs[file_id] for file_id in sorted(empty))], {})


def _begin(writer: MetadataWriter, requested: str, check: Callable[[], None]) -> tuple[Instant, str]:
    """Put the delta commit of a build on the timeline, at a later time if one that stood still is there."""
    check()
    try:
        instant = writer.store.request(Action.DELTA_COMMIT, requested)
    except ConflictError:
        check()
        requested = _new_build(writer)
        instant = writer.store.request(Action.DELTA_COMMIT, requested)
    check()
    return writer.store.start(instant, is_flushed=False), requested


def _empty_log(
    writer: MetadataWriter, partition: str, file_id: str, requested: str
) -> tuple[WriteStat, bytes]:
    """Return the log file of a file group without records, and the statistics, as of an earlier one."""
    now_ms = writer.clock.now_ms()
    target = LogTarget(partition, file_id, requested, LogFileLocation(requested), _EMPTY_TOKEN, now_ms)
    ((log, content),) = encode_logs(writer.config.rules.log_format, target, _NO_ROWS, _NO_KEYS)
    return target.stat_of(log), content


def _unlocked() -> None:
    """Check nothing: the partition is being built without the table lock, and its claim decides."""


def _write_base(
    writer: MetadataWriter, change: GroupChange | SortedGroup, requested: str, check: Callable[[], None]
) -> WriteStat:
    name = BaseFile.name_of(change.file_id, writer.new_token(), requested, HFILE)
    path = join_path(change.partition, name)
    if isinstance(change, SortedGroup):
        check()
        with disk_errors(TABLE_DISK, path), writer.storage.create(path) as file:
            records, size_bytes = write_base_file(file, change.parts, name, writer.clock.now_ms())
    else:
        content = encode_base_file(change.rows, name, writer.clock.now_ms())
        check()
        writer.storage.put(path, content)
        records, size_bytes = change.rows.num_rows, len(content)
    return WriteStat(
        partition=change.partition,
        file_id=change.file_id,
        path=path,
        num_writes=records,
        num_inserts=records,
        size_bytes=size_bytes,
        created=True,
    )


def _properties(config: TableConfig) -> dict[str, str]:
    """Return the properties of the metadata table of a table (wire format 8.1)."""
    name = f"{config.name}_metadata"
    timezone = config.properties.get("hoodie.table.timeline.timezone")
    return {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version),
        "hoodie.timeline.layout.version": str(config.layout.number),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": KEY,
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.compaction.payload.class": _PAYLOAD,
        "hoodie.record.merge.strategy.id": _NO_STRATEGY,
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": config.rules.archive_folder,
        "hoodie.table.checksum": str(table_checksum(name, "")),
        **({"hoodie.record.merge.mode": "CUSTOM"} if config.rules.stores_merge_mode else {}),
        **({_INITIAL_VERSION: str(config.version)} if config.rules.stores_initial_version else {}),
        **({"hoodie.table.timeline.timezone": timezone} if timezone else {}),
        **({STORAGE_LAYOUT: LSM_TREE} if config.has_sorted_files else {}),
    }
