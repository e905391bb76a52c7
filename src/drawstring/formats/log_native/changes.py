"""Native log files of change images: the rows of a CDC log as a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from drawstring.formats.log_inline import BlockType, HeaderKey
from drawstring.formats.log_native.footer import AVRO_SCHEMA, encode_footer
from drawstring.formats.parquet import encode_parquet_block
from drawstring.schema.avro import avro_to_arrow


def encode_change_file(
    batches: Sequence[pa.RecordBatch], schema_json: str, header: Mapping[HeaderKey, str], compression: str
) -> bytes:
    """Return a native log file of change images.

    Args:
        batches: the images.
        schema_json: Avro schema of the images.
        header: headers of the block that the file is.
        compression: Parquet codec by name.
    """
    entries = encode_footer(BlockType.CDC_DATA, header) | {AVRO_SCHEMA: schema_json}
    return encode_parquet_block(batches, avro_to_arrow(schema_json), schema_json, compression, entries)
