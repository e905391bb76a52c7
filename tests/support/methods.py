"""Methods of tables by name, for tests with the name as a parameter."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from drawstring.table import Table


def method(table: Table, name: str) -> Callable[..., Any]:
    """Return a method of a table.

    Args:
        table: the table.
        name: as in `upsert`, `compact` (a service) or `indexes.create` (of another group).
    """
    is_service = "." not in name and not hasattr(table, name)
    found: Callable[..., Any] = attrgetter(name)(table.services if is_service else table)
    return found
