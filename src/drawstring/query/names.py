"""Names of columns that a query mentions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

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
