"""What the tasks of a service need to know of the files that they write."""

from __future__ import annotations

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.write.settings import FileSettings
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import with_meta_fields, without_meta
from drawstring.timeline.table_schema import table_schema_json
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


def file_settings(
    session: LockedTable, timeline: Timeline, requested: str, options: WriteOptions
) -> tuple[FileSettings, str]:
    """Return how a service writes files, and the Avro text of the table schema.

    Args:
        session: the table.
        timeline: as it is.
        requested: the service's own time.
        options: codec and sizes.

    Raises:
        InvalidError: the table has no data yet.
    """
    schema_json = table_schema_json(session.state.storage, session.store, timeline, session.config)
    if schema_json is None:
        raise InvalidError("the table has no data yet: there is nothing to rearrange")
    settings = FileSettings(
        storage=session.state.storage.spec,
        config=session.config,
        instant=requested,
        schema=without_meta(avro_to_arrow(schema_json)),
        avro_schema=with_meta_fields(schema_json),
        compression=options.compression,
        bloom=options.bloom_enabled,
        base_file_bytes_max=options.sizing.base_file_size_max_bytes,
        log_format=options.log_block_format,
    )
    return settings, schema_json
