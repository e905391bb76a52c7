"""Resolve the column names of a query against a schema, and convert literals to the types of columns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.expressions.numbers import is_number


def check_columns(names: Iterable[str], schema: pa.Schema) -> None:
    """Check that a table has all given columns.

    Raises:
        InvalidError: it lacks one; the error suggests the most similar name.
    """
    for name in names:
        if not isinstance(name, str):
            raise InvalidError(f"{name!r} is not a column name. Pass names as strings.")
        if name not in schema.names:
            by_lower_case = {column.lower(): column for column in schema.names}
            similar = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
            columns = ", ".join(schema.names)
            hint = f"Did you mean {by_lower_case[similar[0]]}?" if similar else f"It has {columns}."
            raise InvalidError(f"The table has no column {name}. {hint}")


def resolve_column(parts: Sequence[str], schema: pa.Schema) -> list[str]:
    """Return the path of a column or a nested field, with the column name as the schema spells it.

    Raises:
        InvalidError: there is no such column.
    """
    return [_stored_name(parts[0], schema), *parts[1:]]


def resolve_join_column(parts: Sequence[str], sides: pa.Schema) -> list[str]:
    """Return the path of a column of one of several tables, or of a nested field in it.

    Args:
        parts: name of the table, optional if only one table has the column, then column and field names.
        sides: columns of all tables, each named `table.column`.

    Raises:
        InvalidError: no table has the column, or several do.
    """
    by_lower_case = {name.lower(): name for name in sides.names}
    if len(parts) > 1 and (qualified := ".".join(parts[:2]).lower()) in by_lower_case:
        return [by_lower_case[qualified], *parts[2:]]
    candidates = [name for name in sides.names if name.lower().partition(".")[2] == parts[0].lower()]
    if len(candidates) == 1:
        return [candidates[0], *parts[1:]]
    if candidates:
        raise InvalidError(f"Several tables have a column {parts[0]}. Write {' or '.join(candidates)}.")
    similar = difflib.get_close_matches(".".join(parts), sides.names, n=1)
    hint = f"Did you mean {similar[0]}?" if similar else f"The columns are {', '.join(sides.names)}."
    raise InvalidError(f"There is no column {'.'.join(parts)} here. {hint}")


def _stored_name(name: str, schema: pa.Schema) -> str:
    if name not in schema.names:
        name = {column.lower(): column for column in schema.names}.get(name.lower(), name)
    check_columns([name], schema)
    return name


def typed(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a literal as an Arrow scalar that compares with a column, or that can be stored in it.

    A number keeps a type that holds it: whether the column can store it is known only then.

    Args:
        value: a Python value or a scalar.
        kind: type of the column.

    Raises:
        InvalidError: the literal does not fit the type.
    """
    is_exact = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if is_exact and pa.types.is_integer(kind) and not _fits_long(value):
        return _exact(value, kind)
    if is_exact and not pa.types.is_decimal(kind) and not _fits_long(value):
        value = float(value)
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    if pa.types.is_integer(kind) and isinstance(value, int | float):
        return scalar
    if pa.types.is_floating(kind) and isinstance(value, int | float):
        return pa.scalar(float(value))
    if pa.types.is_decimal(kind) and is_exact:
        return _exact(value, kind)
    if isinstance(value, pa.Scalar) and is_number(value.type) and is_number(kind):
        return scalar
    is_text = pa.types.is_string(scalar.type)
    if pa.types.is_string(kind) and not is_text:
        raise _mismatch(scalar, kind)
    if not pa.types.is_temporal(kind) and pa.types.is_temporal(scalar.type):
        raise _mismatch(scalar, kind)
    try:
        return scalar.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if not pa.types.is_temporal(kind):
            raise _mismatch(scalar, kind) from None
    try:
        # A string without an offset is a time in UTC.
        return scalar.cast(pa.timestamp("us")).cast(pa.timestamp("us", getattr(kind, "tz", None))).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _mismatch(scalar, kind) from None


def _fits_long(value: int | Decimal) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _exact(value: int | Decimal, kind: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(Decimal(value))
    except pa.ArrowInvalid:
        raise InvalidError(
            f"The value {value} has too many digits for a column of type {kind}. Use a smaller value."
        ) from None


def _mismatch(scalar: pa.Scalar, kind: pa.DataType) -> InvalidError:
    return InvalidError(
        f"The {scalar.type} {str(scalar)!r} does not fit a column of type {kind}. Use a value of that type."
    )
