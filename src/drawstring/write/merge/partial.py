"""Partial updates: rows that have some of the table's columns, and say nothing about the others.

MERGE_ON_READ, version 8 and later, by event time
                  log blocks with these columns alone; readers lay them over the record
everything else   a merge: the record is read, and written whole
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.expressions.column_names import check_columns
from drawstring.filegroups.write.changes import RowAction
from drawstring.schema.meta import without_meta
from drawstring.timeline.table_schema import table_schema
from drawstring.txn.transaction import LockedTable
from drawstring.write.merge.clauses import AskedClause, When
from drawstring.write.merge.matched_rows import check_whole_rows
from drawstring.write.merge.merge_rows import MergeRows
from drawstring.write.plan import partial_columns
from drawstring.write.write_source import BoundSource, InputRows

_ALIASES = ("source", "target")


@dataclass(frozen=True, slots=True)
class PartialRows:
    """Rows of a partial update.

    Attributes:
        rows: with key, partition and ordering columns, and those that are set.
    """

    rows: Rows

    def bind(self, session: LockedTable) -> BoundSource:
        """Choose how the rows are written.

        Raises:
            InvalidError: the rows have a column that the table lacks, or set none.
            UnsupportedError: the table's files lack columns.
        """
        config, incoming = session.config, without_meta(self.rows.schema)
        if not config.record_key_fields:
            raise InvalidError("the table has no key columns: update its rows by a condition")
        check_whole_rows(config)
        set_columns = _set_columns(incoming, config)
        current = table_schema(session.state.storage, session.store, session.store.load(), config)
        if len(current):
            check_columns(incoming.names, current)
        if not len(current) or partial_columns(incoming, current, config):
            return InputRows(self.rows)
        fixed = dict.fromkeys((*config.record_key_fields, *config.partition_fields))
        clauses = (
            AskedClause(When.MATCHED, RowAction.UPDATE, None, _from_source(set_columns)),
            AskedClause(When.NOT_MATCHED, RowAction.INSERT, None, _from_source(incoming.names)),
        )
        return MergeRows(self.rows, tuple(fixed), _ALIASES, clauses, is_upsert=True).bind(session)


def _set_columns(incoming: pa.Schema, config: TableConfig) -> list[str]:
    fixed = (*config.record_key_fields, *config.partition_fields)
    found = [name for name in incoming.names if name not in fixed]
    if not found:
        raise InvalidError("the rows have key and partition columns only: there is nothing to update")
    return found


def _from_source(names: list[str]) -> dict[str, str]:
    return {name: f"`{_ALIASES[0]}`.`{name}`" for name in names}
