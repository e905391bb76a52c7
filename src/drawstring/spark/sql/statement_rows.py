"""Rows that a statement makes of the table that it writes to: read again for each attempt of the write.

The plan of a statement has a snapshot of every table, taken when the statement was analyzed. Others may
commit before the write begins, so of the table that is written to the state under the write counts: its reads
in the plan show the newest snapshot, and the write conflicts with every commit that it may have missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.engine.protocol import Rows
from drawstring.query.scan import Scan
from drawstring.txn.reach import Groups, Reads, anywhere
from drawstring.txn.transaction import LockedTable
from drawstring.write.write_source import BoundSource, InputRows


class Attempt:
    """The snapshot that an attempt of a write reads from the table that it writes to.

    Args:
        path: root of the table.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._scan: Scan | None = None

    def begin(self) -> None:
        """Forget the snapshot of an earlier attempt."""
        self._scan = None

    def scan(self, path: str, read: Callable[[], Scan]) -> Scan | None:
        """Return the snapshot, taken when it is first asked for; None for other tables."""
        if path != self._path:
            return None
        if self._scan is None:
            self._scan = read()
        return self._scan


_attempt: Final[ContextVar[Attempt | None]] = ContextVar("attempt", default=None)


def current_attempt() -> Attempt | None:
    """Return the attempt that runs in this thread, if any."""
    return _attempt.get()


@contextmanager
def attempting(path: str) -> Iterator[Attempt]:
    """Let reads of a table show its newest state, at the beginning of each attempt of a write."""
    attempt = Attempt(path)
    token = _attempt.set(attempt)
    try:
        yield attempt
    finally:
        _attempt.reset(token)


@dataclass(frozen=True, slots=True)
class StatementRows:
    """Rows to write that depend on rows of the table.

    Attributes:
        rows: the rows, which are computed again for each attempt.
        attempt: the snapshot that they are computed from.
    """

    rows: Rows
    attempt: Attempt

    @property
    def reads_once(self) -> bool:
        """Return False: Spark computes them again."""
        return False

    def repeatable(self) -> StatementRows:
        """Return these rows."""
        return self

    def bind(self, locked: LockedTable) -> BoundSource:
        """Begin an attempt."""
        self.attempt.begin()
        return _BoundStatementRows(self.rows)


class _BoundStatementRows(InputRows):
    """`StatementRows` bound to a table."""

    def reads(self, written: Groups) -> Reads:
        """Return the whole table: which rows the plan read is Spark's."""
        return Reads(anywhere, anywhere)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.rows.schema
