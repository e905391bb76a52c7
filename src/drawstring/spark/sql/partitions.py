"""Partitions in statements: values of partition columns as Spark has them, and partition paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.keygen.keys import KeyGenerator

_EQUAL: Final = ("=", "<=>")
_AND: Final = "AND"
_IS_NULL: Final = "IS_NULL"
_STORED: Final[dict[pa.DataType, pa.DataType]] = {
    pa.date32(): pa.int32(),
    pa.timestamp("us", "UTC"): pa.int64(),
    pa.timestamp("us"): pa.int64(),
}
"""Types whose values Spark stores as numbers."""


def value_of(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """Return a value of Spark as one of Arrow.

    Args:
        text: the value as text: of dates the days, of timestamps the microseconds since 1970.
        kind: type of the column.
    """
    if text is None:
        return pa.scalar(None, kind)
    stored = pa.array([text], pa.string()).cast(_STORED.get(kind, kind))
    return stored.cast(kind)[0]


def static_values(where: Sequence[Mapping[str, Any]], schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the values of the partition columns that an overwrite names.

    Args:
        where: what it overwrites, as trees of columns, values and operators.
        schema: columns of the table.

    Raises:
        UnsupportedError: it is no conjunction of equalities of columns.
    """
    values: dict[str, pa.Scalar] = {}
    for each in where:
        operands = each.get("of", ())
        if each.get("name") == _AND:
            values |= static_values(operands, schema)
            continue
        column = next((".".join(one["column"]) for one in operands if "column" in one), None)
        literal = next((one for one in operands if "value" in one), None)
        is_null = each.get("name") == _IS_NULL
        if column is None or not (is_null or (each.get("name") in _EQUAL and literal is not None)):
            raise UnsupportedError(
                "An overwrite replaces whole partitions, named by equalities such as city = 'oslo'. Use"
                " DELETE and INSERT for other conditions."
            )
        field = schema.field(next(name for name in schema.names if name.lower() == column.lower()))
        values[field.name] = value_of(None if literal is None else literal["value"], field.type)
    return values


def path_of_values(config: TableConfig, values: Mapping[str, pa.Scalar], schema: pa.Schema) -> str:
    """Return the partition path of values of the partition columns, or of the first ones of them.

    Args:
        config: the table.
        values: values by column.
        schema: columns of the table.

    Raises:
        UnsupportedError: a column before one with a value has none, or the column is no partition column.
    """
    fields = config.partition_fields
    named = fields[: len(values)]
    if set(named) != set(values):
        raise UnsupportedError(
            f"The partition columns are {', '.join(fields) or 'none'}, in this order, but the statement names"
            f" {', '.join(values)}. Name all of them, or the first ones."
        )
    row = pa.RecordBatch.from_arrays(
        [
            pa.array([values[name]], schema.field(name).type)
            if name in values
            else pa.nulls(1, schema.field(name).type)
            for name in fields
        ],
        names=list(fields),
    )
    whole = KeyGenerator(config).partition_paths(row)[0].as_py()
    return "/".join(str(whole).split("/")[: len(named)]) if len(named) < len(fields) else str(whole)
