"""Partial updates: rows with some of the columns of the table, which leave the others unchanged.

MERGE_ON_READ, version 8 and later, event-time ordering
                  log blocks with these columns only; readers merge them into the record
everything else   a merge: the record is read and written as a whole
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.config.table.kinds import columns_of
from drawstring.engine.protocol import Rows
from drawstring.expressions.column_names import check_columns
from drawstring.filegroups.write.changes import RowAction
from drawstring.schema.meta import without_meta
from drawstring.timeline.table_schema import table_schema
from drawstring.txn.transaction import LockedTable
from drawstring.write.merge.clauses import RequestedClause, When
from drawstring.write.merge.matched_rows import check_whole_rows
from drawstring.write.merge.merge_rows import MergeRows
from drawstring.write.plan import partial_columns
from drawstring.write.write_source import BoundSource, InputRows

_ALIASES = ("source", "target")


@dataclass(frozen=True, slots=True)
class PartialRows:
    """Rows of a partial update.

    Attributes:
        rows: rows with key, partition and ordering columns, and the columns to set.
    """

    rows: Rows

    @property
    def reads_once(self) -> bool:
        """Whether the rows can be read only once."""
        return self.rows.reads_once

    def repeatable(self) -> PartialRows:
        """Return the source with rows that can be read several times."""
        return PartialRows(self.rows.repeatable())

    def bind(self, locked: LockedTable) -> BoundSource:
        """Choose how the rows are written.

        Raises:
            InvalidError: the rows have a column that the table lacks, lack a key, partition or ordering
                column, or set no column.
            UnsupportedError: the files of the table lack columns.
        """
        config, incoming = locked.config, without_meta(self.rows.schema)
        if not config.record_key_fields:
            raise InvalidError("The table has no key columns. Update its rows by a condition.")
        check_whole_rows(config)
        set_columns = _set_columns(incoming, config)
        _check_identified(incoming, config)
        current = table_schema(locked.context.storage, locked.store, locked.store.load(), config)
        if len(current):
            check_columns(incoming.names, current)
        if not len(current) or partial_columns(incoming, current, config):
            return InputRows(self.rows)
        fixed = dict.fromkeys((*config.record_key_fields, *config.partition_fields))
        clauses = (
            RequestedClause(When.MATCHED, RowAction.UPDATE, None, _from_source(set_columns)),
            RequestedClause(When.NOT_MATCHED, RowAction.INSERT, None, _from_source(incoming.names)),
        )
        return MergeRows(self.rows, tuple(fixed), _ALIASES, clauses, is_upsert=True).bind(locked)


def _check_identified(incoming: pa.Schema, config: TableConfig) -> None:
    """Check that rows say which record they change, and how new they are."""
    roles = {
        **dict.fromkeys(columns_of(config.ordering_fields), "the ordering column"),
        **dict.fromkeys(columns_of(config.partition_fields), "a partition column"),
        **dict.fromkeys(columns_of(config.record_key_fields), "a record key column"),
    }
    there = {name.lower() for name in incoming.names}
    missing = [name for name in roles if name.lower() not in there]
    if missing:
        lacked = ", and ".join(f"{name}, {roles[name]}" for name in missing[::-1])
        raise InvalidError(f"The rows lack {lacked}. Add {'it' if len(missing) == 1 else 'them'}.")


def _set_columns(incoming: pa.Schema, config: TableConfig) -> list[str]:
    names = [name for name in incoming.names if name not in config.key_columns]
    if not names:
        raise InvalidError("The rows have only key and partition columns. Add the columns to update.")
    return names


def _from_source(names: list[str]) -> dict[str, str]:
    return {name: f"`{_ALIASES[0]}`.`{name}`" for name in names}
