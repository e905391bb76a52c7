"""Building a metadata table for a table that has none, with the partition `files`, and further partitions.

    properties ──> base files of a partition ──> delta commit 00000000000000000 ──> table properties

Until the last step no reader uses it, so what a dead process left is deleted and built again. Files of
pending instants are left out: their delta commits add them when they complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.base.clock import Clock, Ids
from drawstring.config.table.config import TableConfig
from drawstring.config.table.properties import table_checksum
from drawstring.formats.metadata.index_definitions import DEFINITIONS_KEY, INDEX_DEFINITIONS
from drawstring.metadata.encoding import encode_base_file, encode_log_file
from drawstring.metadata.maintained.files import FilesMaintainer
from drawstring.metadata.maintained.protocol import (
    GroupChange,
    InitialPartition,
    PartitionMaintainer,
    TableFacts,
)
from drawstring.metadata.partitions import FILES, KEY, METADATA_FOLDER, PARTITIONS_KEY
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, LogFile, TaskContext, join_path
from drawstring.model.instant import Action
from drawstring.storage.protocol import Storage
from drawstring.storage.subfolder import Subfolder
from drawstring.timeline.properties_store import create_table, load_config, save_properties
from drawstring.timeline.timeline import Timeline

FIRST: Final = "00000000000000000"
"""Requested time of the delta commit that builds `files`."""

_INITIAL: Final = FIRST[:14]
_EMPTY_TOKEN: Final = "0-0-0"
_PAYLOAD: Final = "org.apache.hudi.metadata.HoodieMetadataPayload"
_NO_STRATEGY: Final = "00000000-0000-0000-0000-000000000000"
_NO_ROWS: Final = pa.table({KEY: pa.array([], pa.string())})
_NO_KEYS: Final = pa.array([], pa.string())
_log = logging.getLogger("drawstring")


def can_build(config: TableConfig, timeline: Callable[[], Timeline]) -> bool:
    """Return whether a metadata table can be built for a table now.

    Args:
        config: the table's settings.
        timeline: loads the table's timeline. While buckets are resized, log files with committed blocks have
            the name of the pending clustering.
    """
    return config.layout.has_completion_times and not timeline().pending_of(Action.CLUSTERING)


def build(storage: Storage, config: TableConfig, clock: Clock, ids: Ids) -> TableConfig:
    """Build the metadata table of a table, whose lock the caller holds.

    Args:
        storage: the table's files.
        config: the table's settings, without a metadata table.
        clock: creation times.
        ids: makes the names of files distinct.

    Returns:
        The settings of the table with the metadata table.
    """
    storage.delete_tree(METADATA_FOLDER)
    own = Subfolder(storage, METADATA_FOLDER)
    create_table(own, _properties(config), clock)
    facts = TableFacts(storage, config, clock)
    _write_partition(MetadataWriter.of(storage, clock, ids), FILES, FIRST, FilesMaintainer().initial(facts))
    save_properties(storage, {**config.properties, PARTITIONS_KEY: FILES}, clock)
    _log.info("Built the metadata table of %s.", config.name)
    return load_config(storage)


def add_partition(
    facts: TableFacts,
    ids: Ids,
    partition: str,
    maintainer: PartitionMaintainer,
    check: Callable[[], None] | None = None,
) -> TableConfig:
    """Add a partition to the metadata table of a table, whose lock the caller holds.

    Args:
        facts: the table as it is.
        ids: makes the names of files distinct.
        partition: of the metadata table, which does not have it.
        maintainer: what keeps it.
        check: raises an error if the table lock was lost; called before the partition counts.

    Returns:
        The settings of the table with the partition.

    Raises:
        CorruptTableError: a file of the table is missing or damaged.
    """
    storage, config = facts.storage, facts.config
    writer = MetadataWriter.of(storage, facts.clock, ids)
    storage.delete_tree(join_path(METADATA_FOLDER, partition))
    _write_partition(writer, partition, _new_build(writer), maintainer.initial(facts))
    if check is not None:
        check()
    maintainer.define(storage, config)
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
    built = [each for each in writer.store.load().instants if each.requested.startswith(_INITIAL)]
    for instant in built:
        if not instant.is_completed:
            writer.discard(instant)  # one that stalled is fenced
    return f"{max((int(each.requested) for each in built), default=-1) + 1:017}"


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
    facts: TableFacts, ids: Ids, partition: str, maintainer: PartitionMaintainer
) -> BegunPartition:
    """Make an empty partition in the metadata table of a table, whose lock the caller holds.

    What a dead process left of the partition is deleted.

    Args:
        facts: the table as it is; read later for the records that the partition begins with.
        ids: makes the names of files distinct.
        partition: of the metadata table, which does not have it.
        maintainer: what keeps it.

    Raises:
        CorruptTableError: a file of the table is missing or damaged.
    """
    writer = MetadataWriter.of(facts.storage, facts.clock, ids)
    facts.storage.delete_tree(join_path(METADATA_FOLDER, partition))
    initial = maintainer.initial(facts)
    requested = _new_build(writer)
    _write_partition(writer, partition, requested, InitialPartition(initial.file_ids, iter(())))
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
    stats = [_write_base(writer, each, begun.requested) for each in begun.initial.changes]
    writer.storage.sync([begun.name])
    return [join_path(METADATA_FOLDER, each.path) for each in stats]


def _write_partition(
    writer: MetadataWriter, partition: str, requested: str, initial: InitialPartition
) -> None:
    """Write the files of a partition and complete their delta commit.

    Each file group begins with an empty log file, so that it is there even without a record.
    """
    instant = writer.begin(Action.DELTA_COMMIT, requested)
    writer.make_partition(partition, requested)
    content = encode_log_file(requested, partition, _NO_ROWS, _NO_KEYS, writer.clock.now_ms())
    paths = {}
    for file_id in initial.file_ids:
        name = LogFile.name_of(file_id, requested, 1, _EMPTY_TOKEN)
        paths[file_id] = join_path(partition, name)
        writer.storage.put(paths[file_id], content)
    stats = [_write_base(writer, each, requested) for each in initial.changes]
    writer.storage.sync([partition, ""])
    empty = paths.keys() - {each.file_id for each in stats} if partition != FILES else ()
    logs = [_empty_log(partition, file_id, paths[file_id], len(content)) for file_id in sorted(empty)]
    writer.complete(instant, [*stats, *logs], {})


def _empty_log(partition: str, file_id: str, path: str, size_bytes: int) -> WriteStat:
    """Return the statistics of a file group without records, which supersede those of an earlier one."""
    name = path.rpartition("/")[2]
    return WriteStat(
        partition=partition,
        file_id=file_id,
        path=path,
        size_bytes=size_bytes,
        base_file="",
        log_version=1,
        log_files=(name,),
    )


def _write_base(writer: MetadataWriter, change: GroupChange, requested: str) -> WriteStat:
    token = TaskContext(0, 0, int(writer.ids.uuid()[:6], 16)).write_token
    name = BaseFile.name_of(change.file_id, token, requested, ".hfile")
    path = join_path(change.partition, name)
    content = encode_base_file(change.rows, name, writer.clock.now_ms())
    writer.storage.put(path, content)
    return WriteStat(
        partition=change.partition,
        file_id=change.file_id,
        path=path,
        num_writes=change.rows.num_rows,
        num_inserts=change.rows.num_rows,
        size_bytes=len(content),
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
        "hoodie.table.initial.version": str(config.version),
        "hoodie.timeline.layout.version": str(config.layout.number),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": KEY,
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.compaction.payload.class": _PAYLOAD,
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": _NO_STRATEGY,
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.checksum": str(table_checksum(name, "")),
        **({"hoodie.table.timeline.timezone": timezone} if timezone else {}),
    }
