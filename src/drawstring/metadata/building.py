"""Building a metadata table for a table that has none, with the partition `files`.

    properties ──> base file with all committed files ──> delta commit 00000000000000000 ──> table properties

Until the last step no reader uses it, so what a dead process left is deleted and built again. Files of
pending instants are left out: their delta commits add them when they complete.
"""

from __future__ import annotations

import logging
from typing import Final

from drawstring.base.clock import Clock, Ids
from drawstring.config.table.config import TableConfig
from drawstring.config.table.properties import table_checksum
from drawstring.filegroups.view.file_groups import table_view
from drawstring.filegroups.view.listing import Listing
from drawstring.metadata.encoding import encode_base_file, encode_log_file
from drawstring.metadata.file_changes import FileChanges
from drawstring.metadata.partitions import FILES, KEY, METADATA_FOLDER, PARTITIONS_KEY
from drawstring.metadata.writer import FILES_GROUP, MetadataWriter
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, LogFile, TaskContext, join_path, parse_data_file
from drawstring.model.instant import Action
from drawstring.storage.protocol import Storage
from drawstring.storage.subfolder import Subfolder
from drawstring.timeline.properties_store import create_table, load_config, save_properties
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

FIRST: Final = "00000000000000000"
"""Requested time of the delta commit that builds `files`."""

_EMPTY_TOKEN: Final = "0-0-0"
_PAYLOAD: Final = "org.apache.hudi.metadata.HoodieMetadataPayload"
_NO_STRATEGY: Final = "00000000-0000-0000-0000-000000000000"
_log = logging.getLogger("drawstring")


def can_build(config: TableConfig, timeline: Timeline) -> bool:
    """Return whether a metadata table can be built for a table now.

    Args:
        config: the table's settings.
        timeline: the table's timeline. While buckets are resized, log files with committed blocks have the
            name of the pending clustering.
    """
    return config.layout.has_completion_times and not timeline.pending_of(Action.CLUSTERING)


def build(storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock, ids: Ids) -> TableConfig:
    """Build the metadata table of a table, whose lock the caller holds.

    Args:
        storage: the table's files.
        config: the table's settings, without a metadata table.
        timeline: the table's timeline.
        clock: creation times.
        ids: makes the names of files distinct.

    Returns:
        The settings of the table with the metadata table.
    """
    storage.delete_tree(METADATA_FOLDER)
    own = Subfolder(storage, METADATA_FOLDER)
    create_table(own, _properties(config), clock)
    writer = MetadataWriter.of(storage, clock, ids)
    instant = writer.begin(Action.DELTA_COMMIT, FIRST)
    writer.make_partition(FILES, FIRST)
    view = table_view(storage, config, timeline, TimelineStore(storage, config, clock))
    changes = committed_files(view.listing, timeline)
    empty = LogFile.name_of(FILES_GROUP, FIRST, 1, _EMPTY_TOKEN)
    nothing = FileChanges()
    content = encode_log_file(FIRST, FILES, nothing.rows(), nothing.removed(), clock.now_ms())
    own.put(join_path(FILES, empty), content)
    stats = _write_base(writer, changes) if changes.files else []
    own.sync([FILES, ""])
    writer.complete(instant, stats, {})
    save_properties(storage, {**config.properties, PARTITIONS_KEY: FILES}, clock)
    _log.info("Built the metadata table of %s.", config.name)
    return load_config(storage)


def committed_files(listing: Listing, timeline: Timeline) -> FileChanges:
    """Return the files of the completed writes of a table.

    Args:
        listing: lists the storage.
        timeline: the table's timeline.
    """
    files: dict[str, dict[str, int | None]] = {}
    for partition in listing.partitions():
        sizes = files.setdefault(partition, {})
        for status in listing.files(partition):
            file = parse_data_file(status)
            if file is not None and timeline.completion_of(file.instant) is not None:
                sizes[status.name] = status.size_bytes
    return FileChanges(files)


def _write_base(writer: MetadataWriter, changes: FileChanges) -> list[WriteStat]:
    token = TaskContext(0, 0, int(writer.ids.uuid()[:6], 16)).write_token
    name = BaseFile.name_of(FILES_GROUP, token, FIRST, ".hfile")
    rows = changes.rows()
    content = encode_base_file(rows, name, writer.clock.now_ms())
    writer.storage.put(join_path(FILES, name), content)
    return [
        WriteStat(
            partition=FILES,
            file_id=FILES_GROUP,
            path=join_path(FILES, name),
            num_writes=len(rows.column(KEY)),
            num_inserts=len(rows.column(KEY)),
            size_bytes=len(content),
            created=True,
        )
    ]


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
