"""Support for tests of code that works with tables: the context of an open table."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
