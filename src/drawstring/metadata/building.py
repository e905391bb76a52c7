"""Building a metadata table for a table that has none, with the partition `files`, and further partitions.

    properties ──> base files of a partition ──> delta commit 00000000000000000 ──> table properties

Until the last step no reader uses it, so what a dead process left is deleted and built again. Files of
pending instants are left out: their delta commits add them when they complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
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
    built = [each for each in writer.store.load().instants if each.requested.startswith(_INITIAL)]
    for instant in built:
        if not instant.is_completed:
            writer.discard(instant)  # of a dead process; one that stalled is fenced
    number = max((int(each.requested) for each in built), default=-1) + 1
    _write_partition(writer, partition, f"{number:017}", maintainer.initial(facts))
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


def _write_partition(
    writer: MetadataWriter, partition: str, requested: str, initial: InitialPartition
) -> None:
    """Write the files of a partition and complete their delta commit.

    Each file group begins with an empty log file, so that it is there even without a record.
    """
    instant = writer.begin(Action.DELTA_COMMIT, requested)
    writer.make_partition(partition, requested)
    content = encode_log_file(requested, partition, _NO_ROWS, _NO_KEYS, writer.clock.now_ms())
    for file_id in initial.file_ids:
        name = LogFile.name_of(file_id, requested, 1, _EMPTY_TOKEN)
        writer.storage.put(join_path(partition, name), content)
    stats = [_write_base(writer, each, requested) for each in initial.changes]
    writer.storage.sync([partition, ""])
    writer.complete(instant, stats, {})


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
