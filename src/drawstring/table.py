"""The facade: an open table, to write to and read from.

table = drawstring.open("/lake/flights")
table.upsert(batch)
table.scan(columns=["carrier", "delay"], where="month = 7").to_pandas()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import OPERATION_KEY, WriteOptions, check_call
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Rows
from drawstring.model.result import CommitResult
from drawstring.services.clustering.run import cluster, run_clustering, schedule_clustering
from drawstring.services.compaction.run import (
    compact,
    log_compact,
    run_compaction,
    schedule_compaction,
    schedule_log_compaction,
)
from drawstring.services.maintenance_tasks import after_commit
from drawstring.services.progress import Progress
from drawstring.table_services import TableServices
from drawstring.txn.table_context import TableContext
from drawstring.write.delete_partition import DELETE_PARTITION, delete_partitions
from drawstring.write.merge.builder import MergeBuilder
from drawstring.write.merge.clauses import AskedClause
from drawstring.write.merge.matched_rows import MatchedRows
from drawstring.write.merge.merge_rows import MergeRows
from drawstring.write.run import write, write_feed
from drawstring.write.source import batches_of
from drawstring.write.verbs import MERGE, UPDATE, VERBS, Verb
from drawstring.write.write_source import WriteSource


class Table(TableServices):
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

        Returns:
            What was committed: its instant, and how many rows, files and bytes.

        Raises:
            ConflictError: another writer was there first.
            InvalidError: the rows or options do not fit; nothing was written.
            UnsupportedError: the table or an option asks for what this release cannot write.
            CorruptTableError: a file of the table that the write needs is damaged or missing.
        """
        return self._write("insert", data, options)

    def upsert(self, data: Any, **options: Any) -> CommitResult:
        """Add rows, and update those whose key is there already; see `insert` for arguments."""
        return self._write("upsert", data, options)

    def delete(
        self, data: Any = None, *, where: str | pc.Expression | None = None, **options: Any
    ) -> CommitResult:
        """Delete rows: those with the keys of `data`, or those that fulfil a condition.

        A delete has no ordering value. If a late row follows it in a MERGE_ON_READ table, one ordered before
        the record that was deleted, that record shows again, to Hudi too, unless `compact` ran in between.
        Where late rows are to be expected, upsert the records with `_hoodie_is_deleted` set instead.

        Args:
            data: rows that need key and partition columns only.
            where: a SQL predicate, or a pyarrow expression, as in `scan`; instead of `data`.
            **options: Hudi's write options.

        Raises:
            ConflictError, UnsupportedError, CorruptTableError: as for `insert`.
            InvalidError: the rows, the condition or the options do not fit; nothing was written.
        """
        if (data is None) == (where is None):
            raise InvalidError("delete needs rows or a condition (where=), and not both", table=self.uri)
        if where is None:
            return self._write("delete", data, options)
        return self._change(MatchedRows(where), VERBS["delete"], options)

    def update(
        self, where: str | pc.Expression | None, set: Mapping[str, Any], **options: Any
    ) -> CommitResult:
        """Set columns of the rows that fulfil a condition.

        A row whose ordering column is set to less than it was stays as it was, as in Hudi's UPDATE, and is
        not counted.

        Args:
            where: a SQL predicate, or a pyarrow expression, as in `scan`; None for all rows.
            set: by column, what it is set to: SQL over the row's columns (a text in quotes of its own, as in
                `"'late'"`), a pyarrow expression, or any other value as it is. Key and partition columns
                cannot be set.
            **options: Hudi's write options.

        Raises:
            ConflictError, UnsupportedError, CorruptTableError: as for `insert`.
            InvalidError: the condition, a column or a type does not fit; nothing was written.
        """
        if not isinstance(set, Mapping):
            raise InvalidError(
                f"update sets values by column, and {type(set).__name__} has none: hand over"
                ' a dictionary such as {"fare": "fare * 2"}',
                table=self.uri,
            )
        return self._change(MatchedRows(where, dict(set)), UPDATE, options)

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

    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | Mapping[str, str] | None = None,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        **options: Any,
    ) -> MergeBuilder:
        """Merge rows into the table: update and delete what they match, insert what they do not.

        table.merge(changes, "target.id = source.id")
            .when_matched_delete("source.gone")
            .when_matched_update({"fare": "source.fare + target.fare"})
            .when_not_matched_insert_all()
            .execute()

        Args:
            source: the rows, as for `insert`; they are read by `execute`.
            on: columns that match: names that both have, source columns by target column, or equalities
                joined by `and`; the record key by default.
            source_alias, target_alias: what conditions and values call the two.
            **options: Hudi's write options.

        Returns:
            A builder, which clauses are added to; `execute` carries the merge out.

        Raises:
            InvalidError: the source has no rows to read, or the options make no sense.
        """
        with self._about():
            check_call(options, MERGE.operation.lower())
            table, rows = self._taken_in(source)

        def run(clauses: tuple[AskedClause, ...]) -> CommitResult:
            merging = MergeRows(rows, on, (source_alias, target_alias), clauses)
            return table._change(merging, MERGE, options)

        return MergeBuilder(run)

    def delete_partition(self, *partitions: str, **options: Any) -> CommitResult:
        """Drop whole partitions, at once and whatever their size.

        Args:
            *partitions: partition paths, as in `"lima"`, `"city=lima"` or `"2024/01"`; `*` stands for any
                text. A path that is not there is passed over, with a warning.
            **options: Hudi's write options.

        Raises:
            ConflictError: another writer was there first.
            InvalidError: no partition is named, or the table has none.
        """
        with self._about():
            for each in partitions:
                if not isinstance(each, str):
                    raise InvalidError(
                        f"a partition is a path, not {type(each).__name__}: hand over each as an argument of"
                        " its own, a list as delete_partition(*paths)"
                    )
            check_call(options, DELETE_PARTITION)
            parsed = WriteOptions.parse({**options, OPERATION_KEY: DELETE_PARTITION})
            named = replace(parsed, partitions_to_delete=(*partitions, *parsed.partitions_to_delete))
            return after_commit(delete_partitions(self._state, None, named))

    def write(
        self,
        operation: str,
        rows: Rows,
        options: Mapping[str, Any],
        extra: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Carry out an operation on rows that live in this table's engine; the verbs end up here.

        Args:
            operation: `insert`, `upsert`, `delete`, `bulk_insert`, `append`, `insert_overwrite`,
                `insert_overwrite_table` or `delete_partition`.
            rows: the rows.
            options: Hudi's write options.
            extra: what else the commit says about itself.

        Raises as `insert` does.
        """
        with self._about():
            parsed = WriteOptions.parse({**options, OPERATION_KEY: operation})
            return after_commit(write(self._state, operation, rows, parsed, extra))

    def compact(
        self, progress: Progress | None = None, *, instant: str | None = None, **options: Any
    ) -> CommitResult | None:
        """Fold log files into new base files; writers go on meanwhile.

        Args:
            progress: told how many file groups are done, and of how many.
            instant: run the compaction that was scheduled under this time, and nothing else; by default
                all that are pending and free, and then what is left to compact.
            **options: Hudi's write options.

        Returns:
            What was done, None when there was nothing to compact.

        Raises:
            InvalidError: the table is COPY_ON_WRITE, or there is no such compaction.
            ConflictError: another process runs the compaction, or another writer holds the table.
        """
        with self._about():
            parsed = self._told(options)
            if instant is None:
                return compact(self._state, parsed, progress)
            return run_compaction(self._state, instant, parsed, progress)

    def schedule_compaction(self, **options: Any) -> str | None:
        """Plan a compaction and leave it on the timeline, for `compact` here or elsewhere to run.

        Args:
            **options: Hudi's write options, `hoodie.compaction.strategy` for instance.

        Returns:
            Its instant, None when there is nothing to compact.

        Raises:
            InvalidError: the table is COPY_ON_WRITE, or the strategy does not fit its partitions.
            ConflictError: another writer holds the table.
        """
        with self._about():
            return schedule_compaction(self._state, self._told(options))

    def log_compact(
        self, progress: Progress | None = None, *, instant: str | None = None, **options: Any
    ) -> CommitResult | None:
        """Make one log file of many, for queries to read less until the next compaction; see `compact`.

        Args:
            progress: told how many file groups are done, and of how many.
            instant: run the log compaction that was scheduled under this time, and nothing else.
            **options: Hudi's write options, `hoodie.log.compaction.blocks.threshold` for instance.

        Returns:
            What was done, None when no file group has enough log blocks.

        Raises:
            InvalidError: the table is COPY_ON_WRITE, or there is no such log compaction.
            UnsupportedError: the table merges column by column or by code.
            ConflictError: another process runs it, or another writer holds the table.
        """
        with self._about():
            parsed = self._told(options)
            if instant is None:
                return log_compact(self._state, parsed, progress)
            return run_compaction(self._state, instant, parsed, progress)

    def schedule_log_compaction(self, **options: Any) -> str | None:
        """Plan a log compaction and leave it on the timeline; see `schedule_compaction`.

        Returns:
            Its instant, None when no file group has enough log blocks.

        Raises:
            InvalidError: the table is COPY_ON_WRITE.
            UnsupportedError: the table merges column by column or by code.
            ConflictError: another writer holds the table.
        """
        with self._about():
            return schedule_log_compaction(self._state, self._told(options))

    def cluster(
        self, progress: Progress | None = None, *, instant: str | None = None, **options: Any
    ) -> CommitResult | None:
        """Bring small file groups together, and sort their rows; writers go on meanwhile.

        table.cluster(**{"hoodie.clustering.plan.strategy.sort.columns": "city,ts"})

        Args:
            progress: told how many groups are done, and of how many.
            instant: run the clustering that was scheduled under this time, and nothing else; by default all
                that are pending and free, and then what is left to cluster.
            **options: Hudi's write options, those of clustering among them.

        Returns:
            What was done, None when there was nothing to do, or its file groups were written to since.

        Raises:
            ConflictError: another writer holds the table, or wrote to a file group that was being clustered.
            InvalidError: a sort column is not there; nothing was written.
            UnsupportedError: the table has an index whose file groups cannot be clustered.
        """
        with self._about():
            parsed = self._told(options)
            if instant is None:
                return cluster(self._state, parsed, progress)
            return run_clustering(self._state, instant, parsed, progress)

    def schedule_clustering(self, **options: Any) -> str | None:
        """Plan a clustering and leave it on the timeline, for `cluster` here or elsewhere to run.

        Args:
            **options: Hudi's write options, those of clustering among them.

        Returns:
            Its instant, None when there is nothing to cluster.

        Raises:
            ConflictError: another writer holds the table.
            InvalidError: a sort column is not there.
            UnsupportedError: the table has an index whose file groups cannot be clustered.
        """
        with self._about():
            return schedule_clustering(self._state, self._told(options))

    def _change(self, feed: WriteSource, verb: Verb, options: Mapping[str, Any]) -> CommitResult:
        with self._about():
            operation = verb.operation.lower()
            check_call(options, operation)
            parsed = WriteOptions.parse({**options, OPERATION_KEY: operation})
            return after_commit(write_feed(self._state, feed, verb, parsed))

    def _write(self, operation: str, data: Any, options: Mapping[str, Any]) -> CommitResult:
        with self._about():
            check_call(options, operation)
            table, rows = self._taken_in(data)
        return table.write(operation, rows, options)

    def _taken_in(self, data: Any) -> tuple[Table, Rows]:
        """Return rows that a caller hands over, and the table with the engine that has them."""
        schema, batches = batches_of(data)
        engine = self._state.engine
        local = engine if isinstance(engine, LocalEngine) else LocalEngine()
        table = self if local is engine else Table(TableContext(self._state.storage, local))
        return table, local.rows(schema, batches)
