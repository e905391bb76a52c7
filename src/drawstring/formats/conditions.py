"""Conditions on rows: which columns they look at, with which types, and which rows of a batch they keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from drawstring.base.errors import InvalidError

_INDEX: Final = "\0row"
_NO_MATCH: Final = re.compile(r"No match for FieldRef\.(?:Nested\(FieldRef\.)?Name\((.*?)\)[ )]")


def where_columns(where: pc.Expression, types: pa.Schema) -> list[str]:
    """Return the top-level columns that an expression looks at, whether or not `types` has them.

    Arrow has no call for this, but binding names the first column that it misses: bind to a growing
    schema until it fits.

    Args:
        where: the expression.
        types: types of the columns known; others are taken as null.

    Raises:
        InvalidError: the expression does not fit the types.
    """
    return list(bound_columns(where, types).names)


def matching_rows(rows: pa.Table, where: pc.Expression) -> pa.Table:
    """Return the rows that an expression keeps.

    Args:
        rows: rows with the expression's columns.
        where: the expression.

    Raises:
        InvalidError: it fails on a value, a sum too large for its type for instance.
    """
    try:
        return rows.filter(where)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"The condition {where} fails on a row: {' '.join(str(error).split())}; change it."
        ) from error


def with_table_types(present: pa.Schema, types: pa.Schema | None) -> pa.Schema:
    """Return the file's columns with the table's types, and the table's columns that it lacks."""
    if types is None:
        return present
    extra = [field for field in present if field.name not in types.names]
    return pa.schema([*types, *extra])


def bound_columns(where: pc.Expression, types: pa.Schema) -> pa.Schema:
    """Return the columns of an expression, typed; those without a known type are null."""
    fields: dict[str, pa.Field] = {}
    while True:
        schema = pa.schema(fields.values())
        try:
            ds.dataset([], schema=schema).scanner(filter=where)
            return schema
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            missing = _NO_MATCH.match(str(error))
            if missing is None or missing[1] in fields:
                raise InvalidError(f"The condition {where} does not fit the columns: {error}") from error
            name = missing[1]
            fields[name] = types.field(name) if name in types.names else pa.field(name, pa.null())


def keep_rows(
    batch: pa.RecordBatch, where: pc.Expression, bound: pa.Schema, constants: Mapping[str, pa.Scalar]
) -> pa.RecordBatch:
    """Return the rows that match, with null for the columns that the file lacks."""
    columns = [
        pa.repeat(constants[field.name], batch.num_rows)
        if field.name in constants
        else _condition_column(batch, field)
        for field in bound
    ]
    index = pa.array(np.arange(batch.num_rows, dtype=np.int32))
    facts = pa.table([*columns, index], names=[*bound.names, _INDEX])
    kept = matching_rows(facts, where).column(_INDEX).combine_chunks()
    return batch if len(kept) == batch.num_rows else batch.take(kept)


def _condition_column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    return column if column.type == field.type else column.cast(field.type)
