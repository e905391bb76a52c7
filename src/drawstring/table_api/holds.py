"""Holds of an open table: `table.holds`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from drawstring.base.errors import InvalidError
from drawstring.base.lazy import lazy_import
from drawstring.model.instant import HOLD_HOURS
from drawstring.table_api.calls import TableGroup

if TYPE_CHECKING:
    from drawstring.model.instant import Hold
    from drawstring.query import stream as holding
    from drawstring.txn.holds import Holds
else:
    lazy_import(globals(), Holds="drawstring.txn.holds:Holds", holding="drawstring.query.stream")


class TableHolds(TableGroup):
    """The holds of a table: names of readers whose unread commits cleaning and archiving retain."""

    __slots__ = ()

    def add(self, name: str, position: Any = None, *, hours: float = HOLD_HOURS) -> Hold:
        """Retain the files that a reader needs from a position on.

        Cleaning and archiving by drawstring retain them until the hold is released or expires. Apache Hudi
        ignores holds.

        Args:
            name: name of the reader; an existing hold of that name moves to the position, also backwards.
            position: position of a batch of `follow`, a completion time (in table version 6 a requested
                time), a date-time, or `"earliest"`; None for now.
            hours: hours after which the hold expires.

        Returns:
            The hold: its name, its position, and its expiry.

        Raises:
            InvalidError: the name, position or time is invalid, or files after the position were cleaned.

        Example:
            >>> table.holds.add("reports", hours=48).name
            'reports'
        """
        with self._calls.errors():
            return holding.hold(self._calls.context, name, position, hours)

    def release(self, name: str) -> None:
        """Give up the hold of a name.

        Args:
            name: of the reader.

        Raises:
            InvalidError: there is no hold of that name.

        Example:
            >>> hold = table.holds.add("exports", hours=1)
            >>> table.holds.release("exports")
        """
        with self._calls.errors():
            if not self._holds.release(name):
                names = ", ".join(sorted({each.name for each in self._holds.active()}))
                there = f"The holds of the table are {names}." if names else "The table has no hold."
                raise InvalidError(f"There is no hold {name!r}, or it has ended. {there}")

    def list(self) -> list[Hold]:
        """Return the holds that last.

        Returns:
            The holds, the one that keeps most first.

        Example:
            >>> table.holds.list()
            []
        """
        with self._calls.errors():
            return self._holds.active()

    @contextmanager
    def temporary(self, *, hours: float = HOLD_HOURS) -> Iterator[Hold]:
        """Retain the current files of the table during a block of code that scans for a long time.

        Args:
            hours: hours after which the hold ends in any case.

        Returns:
            A context manager with the hold, which is released at the end of the block.

        Raises:
            InvalidError: no number of hours greater than 0.

        Example:
            >>> with table.holds.temporary(hours=2):
            ...     count = table.scan().to_arrow().num_rows
            >>> count
            3
        """
        with self._calls.errors():
            hold = holding.hold_for_scan(self._calls.context, hours)
        try:
            yield hold
        finally:
            self._holds.release(hold.name)

    @property
    def _holds(self) -> Holds:
        return Holds(self._calls.context.storage, self._calls.context.clock, self._calls.context.ids)
