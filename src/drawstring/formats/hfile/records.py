"""Records in HFiles: Avro datums, whose empty field `key` is filled with the entry's key."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.formats.avro.decode import DAMAGE, RowDecoder, Spans
from drawstring.formats.hfile.entries import HFileEntries
from drawstring.schema.avro import avro_to_arrow

KEY_FIELD: Final = "key"
_SCHEMAS_CACHED: Final = 32
"""Number of schemas and choices of columns whose decoders are cached: all files have the same few."""


def read_hfile_records(
    entries: Iterable[HFileEntries], schema_json: str, columns: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of entries.

    Args:
        entries: entries of one HFile.
        schema_json: Avro schema of the values.
        columns: names of the columns to read; None for all.

    Raises:
        CorruptTableError: the values are damaged.
        UnsupportedError: a type is not supported.
    """
    wanted = None if columns is None else frozenset(columns)
    for each in entries:
        spans = Spans(each.block, each.starts, each.ends)
        done = 0
        try:
            for batch in _decoder(schema_json, wanted).decode(spans):
                yield _with_keys(batch, each.keys.slice(done, batch.num_rows))
                done += batch.num_rows
        except DAMAGE as error:
            raise CorruptTableError(
                f"A record of an HFile is damaged ({error}). To repair the table, {REPAIR}."
            ) from error


@lru_cache(maxsize=_SCHEMAS_CACHED)
def _decoder(schema_json: str, columns: frozenset[str] | None) -> RowDecoder:
    schema = avro_to_arrow(schema_json, with_unions=True)
    return RowDecoder.of(json.loads(schema_json), schema, columns)


def _with_keys(batch: pa.RecordBatch, keys: pa.StringArray) -> pa.RecordBatch:
    """Fill empty fields `key` with the keys of the entries."""
    index = batch.schema.get_field_index(KEY_FIELD)
    if index < 0 or not pa.types.is_string(batch.schema.field(index).type):
        return batch
    stored = batch.column(index)
    filled = pc.if_else(pc.equal(stored, ""), keys, stored)
    return batch.set_column(index, batch.schema.field(index), filled)
