"""Resolution of the column names in a query against a schema."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import pyarrow as pa

from drawstring.base.errors import InvalidError


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


def path_in(parts: Sequence[str], schema: pa.Schema) -> list[str]:
    """Return the path of a column or a nested field, with the column name as the schema spells it.

    Raises:
        InvalidError: there is no such column.
    """
    return [_spelled(parts[0], schema), *parts[1:]]


def path_in_sides(parts: Sequence[str], sides: pa.Schema) -> list[str]:
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


def _spelled(name: str, schema: pa.Schema) -> str:
    if name not in schema.names:
        name = {column.lower(): column for column in schema.names}.get(name.lower(), name)
    check_columns([name], schema)
    return name
