"""Support for tests of code that works with tables: context of a table, limits of a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drawstring.base import limits

if TYPE_CHECKING:
    from drawstring.table import Table
    from drawstring.txn.table_context import TableContext


def context_of(table: Table) -> TableContext:
    """Return the context of an open table: its storage, engine, clock and default options.

    Programs do not need it. A test opens the same table with another storage or clock by it:
    `Table(replace(context_of(table), clock=clock))`.

    Args:
        table: an open table.
    """
    return table._context


@contextmanager
def with_limits(**changes: Any) -> Iterator[None]:
    """Set limits of this process during a `with` block: a few rows then take the paths of many rows.

    For all threads, and not for workers in other processes.

    Args:
        changes: names and values of `drawstring.base.limits.Limits`.
    """
    before = limits.in_force
    limits.in_force = replace(before, **changes)
    try:
        yield
    finally:
        limits.in_force = before
