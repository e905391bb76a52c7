"""Native log files of change images: the rows of a CDC log as a file of the format of base files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from drawstring.formats.file_sinks import FileForm, open_sink, schema_entry
from drawstring.formats.log_inline import BlockType, HeaderKey
from drawstring.formats.log_native.footer import encode_footer
from drawstring.schema.avro import avro_to_arrow
from drawstring.storage.protocol import Storage


def write_change_file(
    storage: Storage,
    path: str,
    batches: Sequence[pa.RecordBatch],
    schema_json: str,
    header: Mapping[HeaderKey, str],
    compression: str,
) -> int:
    """Write a native log file of change images, and return its size in bytes.

    Args:
        storage: storage of the table.
        path: path of the file, whose extension tells the format.
        batches: the images.
        schema_json: Avro schema of the images.
        header: headers of the block that the file is.
        compression: Parquet codec by name.
    """
    schema = avro_to_arrow(schema_json)
    entries = encode_footer(BlockType.CDC_DATA, header) | schema_entry(path, schema_json)
    sink = open_sink(storage, path, FileForm(schema, schema_json, compression, 0.0))
    try:
        for batch in batches:
            sink.write(batch)
        sink.add_entries(entries)
        return sink.close()
    except BaseException:
        sink.abort()
        raise
