"""File settings for the tasks of table services."""

from __future__ import annotations

from dataclasses import replace

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.write.settings import FileSettings, check_installed
from drawstring.index.choose import bloom_rate
from drawstring.metadata.definitions import summarized_columns
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import with_meta_fields, without_meta
from drawstring.timeline.table_schema import table_schema_json, with_history
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


def file_settings(
    locked: LockedTable, timeline: Timeline, requested: str, options: WriteOptions
) -> tuple[FileSettings, str]:
    """Return the settings of the files that a service writes, and the table schema as Avro JSON.

    Args:
        locked: the locked table.
        timeline: the current timeline.
        requested: requested time of the service's instant.
        options: compression codec and file sizes.

    Raises:
        InvalidError: the table has no data yet, or a package is not installed that writes its files.
    """
    check_installed(locked.config)
    storage, store = locked.context.storage, locked.store
    config = with_history(locked.config, storage, store, timeline)
    as_of = None
    if (
        config.history is not None and requested
    ):  # files have the version of their instant, whatever came after it
        config, as_of = replace(config, history=config.history.at(requested)), requested
    schema_json = table_schema_json(storage, store, timeline, config, as_of)
    if schema_json is None:
        raise InvalidError("The table has no data yet, so there is nothing to do. Write to it first.")
    settings = FileSettings(
        storage=storage.spec,
        config=config,
        instant=requested,
        schema=without_meta(avro_to_arrow(schema_json)),
        avro_schema=with_meta_fields(schema_json),
        compression=options.compression,
        bloom=bloom_rate(options, config),
        base_file_bytes_max=options.sizing.base_file_size_max_bytes,
        log_format=options.log_block_format,
        summarized=summarized_columns(storage, config),
    )
    return settings, schema_json
