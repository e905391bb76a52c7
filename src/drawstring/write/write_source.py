"""What a write puts into the table: rows that a caller hands over, or rows made of those that are there.

A feed is bound to the table while the table is locked, so that what was read is what is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.txn.transaction import LockedTable
from drawstring.write.plan import WritePlan
from drawstring.write.verbs import Verb


class WriteSource(Protocol):
    """Rows to write, before the table is known."""

    def bind(self, session: LockedTable) -> BoundSource:
        """Check against the table what is to be done; nothing on it changes.

        Raises:
            InvalidError: it cannot be done.
        """
        ...


class BoundSource(Protocol):
    """Rows to write to a table as it was found under its lock."""

    @property
    def schema(self) -> pa.Schema:
        """Columns that the rows bring."""
        ...

    @property
    def sets(self) -> tuple[str, ...]:
        """The only columns that updates set, while others stay; none where rows say all."""
        ...

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return what an operation comes to with these rows on a table."""
        ...

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows with keys, partition paths and what else is known: locations, actions."""
        ...

    def release(self) -> None:
        """Let go of what was kept."""
        ...


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows that a caller hands over.

    Attributes:
        rows: in the engine.
    """

    rows: Rows

    @property
    def schema(self) -> pa.Schema:
        """Columns that the rows bring."""
        return self.rows.schema

    @property
    def sets(self) -> tuple[str, ...]:
        """None: rows say all."""
        return ()

    def bind(self, session: LockedTable) -> InputRows:
        """Return the rows: they are what they are, whatever the table."""
        return self

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return what an operation comes to: without key columns, rows that say no key are new."""
        return verb.on(config, self.schema.names)

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows with their keys and partition paths, and locations from an index that hashes."""
        return self.rows.map_batches(plan.prepare, plan.prepare.output_schema)

    def release(self) -> None:
        """Keep nothing."""
