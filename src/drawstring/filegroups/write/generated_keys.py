"""Record keys of tables without key columns: `<instant>_<task>_<counter>`, as Hudi makes them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.write.sequence import counted_texts
from drawstring.filegroups.write.settings import FileSettings
from drawstring.schema.meta import RECORD_KEY


def with_keys(
    batches: Iterator[pa.RecordBatch], settings: FileSettings, task: int
) -> Iterator[pa.RecordBatch]:
    """Yield prepared rows, each with a key: those whose key is not empty keep it.

    Args:
        batches: prepared rows of one task.
        settings: of the write.
        task: number of the task, which tells its keys from those of the others.
    """
    if settings.config.record_key_fields:
        yield from batches
        return
    prefix, made = f"{settings.instant}_{task}_", 0
    for batch in batches:
        keys = batch.column(RECORD_KEY)
        is_missing = pc.equal(keys, "")
        if pc.any(is_missing).as_py():
            keys = pc.if_else(is_missing, counted_texts(prefix, made, batch.num_rows), keys)
            made += batch.num_rows
        yield batch.set_column(batch.schema.get_field_index(RECORD_KEY), RECORD_KEY, keys)
