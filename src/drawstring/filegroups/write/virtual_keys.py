"""Virtual keys: rows of tables whose meta columns are null; record keys come from the key columns."""

from __future__ import annotations

import pyarrow as pa

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.open_logs import record_keys
from drawstring.filegroups.write.meta_columns import renamed
from drawstring.schema.meta import FILE_NAME, RECORD_KEY


def keyed(batch: pa.RecordBatch, config: TableConfig) -> pa.RecordBatch:
    """Return stored rows with record keys, for merging.

    Args:
        batch: rows of a file.
        config: the table.
    """
    if config.populate_meta_fields:
        return batch
    return _with(batch, RECORD_KEY, record_keys(batch, config))


def as_stored(batch: pa.RecordBatch, file_name: str, config: TableConfig) -> pa.RecordBatch:
    """Return rows of another file as they are stored in their new file.

    Args:
        batch: the rows.
        file_name: name of the new file.
        config: the table.
    """
    if config.populate_meta_fields:
        return renamed(batch, file_name)
    nothing = pa.nulls(batch.num_rows, pa.string())
    return _with(_with(batch, RECORD_KEY, nothing), FILE_NAME, nothing)


def _with(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, values)
