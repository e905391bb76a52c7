"""The facade: an open table, to write to and read from.

table = drawstring.open("/lake/flights")
table.upsert(batch)
table.scan(columns=["carrier", "delay"], where="month = 7").to_pandas()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drawstring.config.options import WriteOptions, check_call
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Rows
from drawstring.model.result import CommitResult
from drawstring.query.table_queries import TableQueries
from drawstring.services.compaction import Progress, compact
from drawstring.txn.state import TableState
from drawstring.write.run import write
from drawstring.write.source import batches_of


class Table(TableQueries):
    """An open Hudi table.

    Made by `drawstring.open` and `drawstring.create`. Every call looks at the table as it is then;
    a `Scan` is fixed at the moment it is made.

    Args:
        state: where the table is and who runs its tasks.
    """

    def __repr__(self) -> str:
        config = self.config
        return f"<Table {config.name} {config.table_type} version {config.version} at {self.uri}>"

    def insert(self, data: Any, **options: Any) -> CommitResult:
        """Add rows without looking for their keys, except where a bucket index has them together.

        A bucket that exists already is merged with the new rows like an upsert.

        Args:
            data: anything with the Arrow C stream interface, a pandas or polars DataFrame.
            **options: Hudi's write options, as in `**{"hoodie.index.type": "BUCKET"}`.

        Raises:
            ConflictError: another writer was there first.
            InvalidError: the rows or options do not fit; nothing was written.
        """
        return self._write("insert", data, options)

    def upsert(self, data: Any, **options: Any) -> CommitResult:
        """Add rows, and update those whose key is there already; see `insert` for arguments."""
        return self._write("upsert", data, options)

    def delete(self, data: Any, **options: Any) -> CommitResult:
        """Delete the rows with the keys of `data`, which needs key and partition columns only."""
        return self._write("delete", data, options)

    def bulk_insert(self, data: Any, **options: Any) -> CommitResult:
        """Add many rows as they come, for a first load; see `insert` for arguments."""
        return self._write("bulk_insert", data, options)

    def append(self, data: Any, **options: Any) -> CommitResult:
        """Add rows as new base files at once, whatever is there; see `insert` for arguments.

        No key is looked up and no small file filled, so a batch takes as long as writing its files does. For
        logs and events: rows that come once and never change.
        """
        return self._write("append", data, options)

    def insert_overwrite(self, data: Any, **options: Any) -> CommitResult:
        """Replace the partitions that `data` falls into by its rows; see `insert` for arguments."""
        return self._write("insert_overwrite", data, options)

    def insert_overwrite_table(self, data: Any, **options: Any) -> CommitResult:
        """Replace all rows of the table by those of `data`; see `insert` for arguments."""
        return self._write("insert_overwrite_table", data, options)

    def write(
        self,
        operation: str,
        rows: Rows,
        options: Mapping[str, Any],
        extra: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Carry out an operation on rows that live in this table's engine; the verbs end up here.

        Args:
            operation: `insert`, `upsert`, `delete`, `bulk_insert`, `append`, `insert_overwrite` or
                `insert_overwrite_table`.
            rows: the rows.
            options: Hudi's write options.
            extra: what else the commit says about itself.
        """
        with self._about():
            return write(self._state, operation, rows, WriteOptions.parse(options), extra)

    def compact(self, progress: Progress | None = None, **options: Any) -> CommitResult | None:
        """Fold log files into new base files.

        Args:
            progress: told how many file groups are done, and of how many.
            **options: Hudi's write options.

        Returns:
            What was done, None when there was nothing to compact.

        Raises:
            InvalidError: the table is COPY_ON_WRITE.
            ConflictError: another writer holds the table.
        """
        with self._about():
            check_call(options)
            return compact(self._state, WriteOptions.parse(options), progress)

    def _write(self, operation: str, data: Any, options: Mapping[str, Any]) -> CommitResult:
        with self._about():
            check_call(options, operation)
            schema, batches = batches_of(data)
        engine = self._state.engine
        local = engine if isinstance(engine, LocalEngine) else LocalEngine()
        table = self if local is engine else Table(TableState(self._state.storage, local))
        return table.write(operation, local.rows(schema, batches), options)
