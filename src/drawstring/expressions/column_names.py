"""Names of columns that a query mentions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import pyarrow as pa

from drawstring.base.errors import InvalidError


def check_columns(names: Iterable[str], schema: pa.Schema) -> None:
    """Check that a table has columns.

    Raises:
        InvalidError: it lacks one; the nearest name is suggested.
    """
    for name in names:
        if not isinstance(name, str):
            raise InvalidError(f"{name!r} is no name of a column: give texts")
        if name not in schema.names:
            spelled = {known.lower(): known for known in schema.names}
            near = difflib.get_close_matches(name.lower(), spelled, n=1)
            hint = f": did you mean {spelled[near[0]]}?" if near else f"; it has {', '.join(schema.names)}"
            raise InvalidError(f"the table has no column {name}{hint}")


def path_in(parts: Sequence[str], schema: pa.Schema) -> list[str]:
    """Return the name of a column, and of fields inside it, as the table spells it.

    Raises:
        InvalidError: there is no such column.
    """
    return [_spelled(parts[0], schema), *parts[1:]]


def path_in_sides(parts: Sequence[str], sides: pa.Schema) -> list[str]:
    """Return the column of one of several tables, and fields inside it.

    Args:
        parts: the table's name first, which may be left out where one table only has the column.
        sides: columns of all tables, each named `table.column`.

    Raises:
        InvalidError: no table has the column, or several do.
    """
    folded = {name.lower(): name for name in sides.names}
    if len(parts) > 1 and (whole := ".".join(parts[:2]).lower()) in folded:
        return [folded[whole], *parts[2:]]
    having = [name for name in sides.names if name.lower().partition(".")[2] == parts[0].lower()]
    if len(having) == 1:
        return [having[0], *parts[1:]]
    if having:
        raise InvalidError(f"column {parts[0]} may be that of several tables: write {' or '.join(having)}")
    near = difflib.get_close_matches(".".join(parts), sides.names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sides.names)}"
    raise InvalidError(f"there is no column {'.'.join(parts)} here: {hint}")


def _spelled(name: str, schema: pa.Schema) -> str:
    if name not in schema.names:
        name = {known.lower(): known for known in schema.names}.get(name.lower(), name)
    check_columns([name], schema)
    return name
