"""Fields of structs as columns of their own, as Hudi's `FlatteningTransformer` makes them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from drawstring.ingestion.batch_engine import BatchEngine, BatchRows


def flattened(engine: BatchEngine, rows: BatchRows) -> BatchRows:
    """Return rows in which field `b` of struct `a` is column `a_b`, at every depth."""
    return engine.mapped(rows, _flat_batches, _flat(rows.schema.empty_table()).schema)


def _flat_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from _flat(pa.Table.from_batches([batch])).to_batches()


def _flat(rows: pa.Table) -> pa.Table:
    while structs := [each.name for each in rows.schema if pt.is_struct(each.type)]:
        whole = rows.flatten()
        renamed = {
            f"{name}.{each.name}": f"{name}_{each.name}"
            for name in structs
            for each in rows.schema.field(name).type.fields
        }
        rows = whole.rename_columns([renamed.get(name, name) for name in whole.column_names])
    return rows
