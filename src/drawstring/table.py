"""Facade of the package: an open table with its writes, queries and table services.

table = drawstring.open("/lake/rides")
table.upsert(batch)
table.scan(columns=["city", "fare"], where="fare > 20").to_pandas()

`Table` is the table of contents of the package: each method has the full documentation and delegates the work
to the module that does it. So this file is longer than others may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from drawstring.base.errors import DrawstringError, no_text
from drawstring.base.lazy import lazy_import
from drawstring.model.instant import HOLD_HOURS
from drawstring.query.policies import NEWEST, Holes, OnCleaned, policy_of, start_of
from drawstring.table_api.calls import Columns, Options, TableCalls
from drawstring.timeline.properties import load_config
from drawstring.txn.table_context import TableContext

if TYPE_CHECKING:
    import polars
    import pyarrow.compute as pc

    from drawstring.base.clock import Clock
    from drawstring.config.options.write_options import check_call, options_of
    from drawstring.config.table_config import TableConfig
    from drawstring.engine.protocol import Rows
    from drawstring.formats.arrow_dataset import ScannedDataset
    from drawstring.model.result import (
        CommitResult,
    )
    from drawstring.query.cdc import changes_scan
    from drawstring.query.incremental import RangeSpec, incremental_scan
    from drawstring.query.lazy_tables import Following, Snapshot, follow_table
    from drawstring.query.planner import snapshot_scan
    from drawstring.query.scan import Scan
    from drawstring.query.stream import Batch, FollowSpec, Limits
    from drawstring.query.table_state import table_summary, with_shown_columns
    from drawstring.services.streams import StreamWriter, stream_options
    from drawstring.services.table_services import after_commit, service_options
    from drawstring.table_api.columns import TableColumns
    from drawstring.table_api.holds import TableHolds
    from drawstring.table_api.indexes import TableIndexes
    from drawstring.table_api.inspection import TableInspection
    from drawstring.table_api.savepoints import TableSavepoints
    from drawstring.table_api.services import TableServices
    from drawstring.table_api.versions import TableVersions
    from drawstring.timeline.timeline import Timeline
    from drawstring.write import table_writes
    from drawstring.write.executor import write
    from drawstring.write.merge import MergeBuilder, RequestedClause
    from drawstring.write.source import local_rows
    from drawstring.write.table_writes import MergeSource

    Condition: TypeAlias = str | pc.Expression | None
else:
    lazy_import(
        globals(),
        TableServices="drawstring.table_api.services:TableServices",
        TableIndexes="drawstring.table_api.indexes:TableIndexes",
        TableSavepoints="drawstring.table_api.savepoints:TableSavepoints",
        TableInspection="drawstring.table_api.inspection:TableInspection",
        TableHolds="drawstring.table_api.holds:TableHolds",
        TableColumns="drawstring.table_api.columns:TableColumns",
        TableVersions="drawstring.table_api.versions:TableVersions",
        check_call="drawstring.config.options.write_options:check_call",
        options_of="drawstring.config.options.write_options:options_of",
        CommitResult="drawstring.model.result:CommitResult",
        with_shown_columns="drawstring.query.table_state:with_shown_columns",
        Following="drawstring.query.lazy_tables:Following",
        follow_table="drawstring.query.lazy_tables:follow_table",
        Snapshot="drawstring.query.lazy_tables:Snapshot",
        Limits="drawstring.query.stream:Limits",
        changes_scan="drawstring.query.cdc:changes_scan",
        RangeSpec="drawstring.query.incremental:RangeSpec",
        FollowSpec="drawstring.query.stream:FollowSpec",
        incremental_scan="drawstring.query.incremental:incremental_scan",
        snapshot_scan="drawstring.query.planner:snapshot_scan",
        after_commit="drawstring.services.table_services:after_commit",
        service_options="drawstring.services.table_services:service_options",
        StreamWriter="drawstring.services.streams:StreamWriter",
        stream_options="drawstring.services.streams:stream_options",
        table_summary="drawstring.query.table_state:table_summary",
        table_writes="drawstring.write.table_writes",
        MergeBuilder="drawstring.write.merge:MergeBuilder",
        write="drawstring.write.executor:write",
        MergeSource="drawstring.write.table_writes:MergeSource",
        local_rows="drawstring.write.source:local_rows",
    )


_GROUPS: Final = ("services", "indexes", "savepoints", "inspect", "holds", "columns", "versions")
"""The attributes of a table that group its other calls."""


class Table:
    """An open Hudi table.

    Created by `drawstring.open` and `drawstring.create`. Every call reads the current state of the table; a
    `Scan` is fixed when it is created.

    A call that may change the table returns a result. The result is false when there was nothing to do, and
    its counts are 0 then. A call that only plans returns the plan, or None when there is nothing to plan.

    The methods' examples begin with a new table of three rides, of which 1 and 2 are in Lima:

        >>> import drawstring, pyarrow as pa
        >>> rides = pa.table({
        ...     "id": [1, 2, 3],
        ...     "city": ["lima", "lima", "oslo"],
        ...     "fare": [10.0, 20.0, 30.0],
        ...     "ts": [1, 1, 1],
        ... })
        >>> table = drawstring.create(
        ...     "memory://rides", rides.schema, record_key="id", partition_by="city", ordering="ts",
        ...     table_type="MERGE_ON_READ",
        ... )
        >>> table.insert(rides).inserts
        3

    Args:
        context: storage, engine and clock of the table.
    """

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._calls = TableCalls(context, self._errors)
        config = load_config(context.storage)
        if context.defaults:
            service_options(config, dict(context.defaults))

    def __repr__(self) -> str:
        config = self.config
        return f"<Table {config.name} {config.table_type} version {config.version} at {self.uri}>"

    def __str__(self) -> str:
        with self._errors():
            return table_summary(self._context).text()

    if not TYPE_CHECKING:  # type checkers refuse unknown names already

        def __getattr__(self, name: str) -> Any:
            found = (
                [] if name.startswith("_") else [each for each in _GROUPS if name in dir(getattr(self, each))]
            )
            hint = f" Call table.{found[0]}.{name} instead." if found else ""
            raise AttributeError(f"A table has no attribute {name!r}.{hint}", name=name, obj=self)

    def _repr_html_(self) -> str:
        with self._errors():
            return table_summary(self._context).html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the text in IPython's terminal."""
        printer.text(str(self))

    # -------------------- properties

    @property
    def uri(self) -> str:
        """The address of the table's root.

        Example:
            >>> table.uri
            'memory://rides'
        """
        return self._calls.uri

    @property
    def config(self) -> TableConfig:
        """The table's properties, read afresh.

        Raises:
            CorruptTableError: the properties are damaged beyond their backup.

        Example:
            >>> table.config.record_key_fields
            ('id',)
        """
        return self._calls.config

    @property
    def timeline(self) -> Timeline:
        """The active timeline, read afresh.

        Raises:
            CorruptTableError: a file of the timeline has an invalid name.

        Example:
            >>> len(table.timeline.writes())
            1
        """
        with self._errors():
            return self._calls.timeline()

    @property
    def schema(self) -> pa.Schema:
        """The table's columns as queries show them, without the meta columns.

        A column that a timestamp-based key generator formats is text here, as in Hudi's queries; rows to
        write have it as it was declared.

        Raises:
            CorruptTableError: the table's properties or timeline are damaged.

        Example:
            >>> table.schema.names
            ['id', 'city', 'fare', 'ts']
        """
        with self._errors():
            facts = self._calls.facts()
            return with_shown_columns(facts.schema, facts.config)

    # -------------------- writes

    def insert(
        self,
        data: Any,
        *,
        duplicates: str | None = None,
        null_for_missing: bool | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Add rows without looking up their keys.

        With a bucket index, and where small files are filled, rows go into file groups that exist already.
        A bucket is then merged with the new rows as by an upsert, and so is a file group of a table that
        keeps its files sorted by key (`hoodie.table.storage.layout=lsm_tree`).

        Args:
            data: the rows: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame,
                or anything else with the Arrow C stream interface. They have the table's columns by name;
                further columns are added to the table.
            duplicates: what to do with a row whose key is in the table already: `none` keeps both, `drop`
                drops the new row, `fail` writes nothing (`hoodie.datasource.insert.dup.policy`). `none` by
                default.
            null_for_missing: whether columns of the table that the rows lack become null; otherwise such
                rows are refused (`hoodie.write.set.null.for.missing.columns`). False by default.
            options: further write options by Hudi's keys, as in `{"hoodie.parquet.max.file.size": 1 << 27}`.

        Returns:
            The result of the commit: its instant, and numbers of rows, files and bytes.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the rows or the options do not fit the table; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write.
            CorruptTableError: a file of the table that the write needs is damaged or missing.

        Example:
            >>> more = pa.table({"id": [3, 4], "city": ["oslo", "oslo"], "fare": [31.0, 40.0], "ts": [2, 2]})
            >>> table.insert(more, duplicates="drop").inserts
            1
        """
        return self._write("insert", data, options, duplicates=duplicates, null_for_missing=null_for_missing)

    def upsert(
        self,
        data: Any,
        *,
        partial_update: bool | None = None,
        null_for_missing: bool | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Add rows, and update the rows of the table that have the same key.

        The same key means within the partition, with a global index in the whole table. Which version of a
        row wins is decided by the table's ordering columns (the greater value), or by the order of commits
        when it has none. Of several rows of one key in `data` one is kept by the same rule. In a table
        without a record key rows are only added, except those that a scan returned with their meta columns.

        A row whose boolean column `_hoodie_is_deleted` is true deletes the row with its key. Services that
        are due, such as compaction and cleaning, follow the commit; it stands, whatever becomes of them.

        Args:
            data: the rows: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame,
                or anything else with the Arrow C stream interface. They have the table's columns by name;
                further columns are added to the table.
            partial_update: whether only the columns that the rows have are set, and all others of a row stay
                as they are (`drawstring.write.partial_update`); not with `null_for_missing`. The rows need
                key, partition and ordering columns. False by default.
            null_for_missing: whether columns of the table that the rows lack become null; otherwise such
                rows are refused (`hoodie.write.set.null.for.missing.columns`). False by default.
            options: further write options by Hudi's keys, as in `{"hoodie.index.type": "BLOOM"}`.

        Returns:
            The result of the commit: its instant, and numbers of rows, files and bytes.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the rows or the options do not fit the table; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write.
            CorruptTableError: a file of the table that the write needs is damaged or missing.
            UnavailableError: the storage failed, or the disk is full; nothing was written.

        Example:
            >>> changed = pa.table({"id": [1], "city": ["lima"], "fare": [12.5], "ts": [2]})
            >>> result = table.upsert(changed)
            >>> result.updates
            1
            >>> table.scan(columns=["id", "fare"], where="id = 1").to_arrow().to_pylist()
            [{'id': 1, 'fare': 12.5}]
        """
        return self._write(
            "upsert", data, options, partial_update=partial_update, null_for_missing=null_for_missing
        )

    def bulk_insert(
        self,
        data: Any,
        *,
        sort_by: Columns = None,
        null_for_missing: bool | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Add many rows as new files, without looking up keys or filling small files; for a first load.

        Args:
            data: the rows: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame,
                or anything else with the Arrow C stream interface. They have the table's columns by name;
                further columns are added to the table.
            sort_by: columns to sort all rows by, after the partition path
                (`hoodie.bulkinsert.user.defined.partitioner.sort.columns`). In the order of `data` by
                default.
            null_for_missing: whether columns of the table that the rows lack become null; otherwise such
                rows are refused (`hoodie.write.set.null.for.missing.columns`). False by default.
            options: further write options by Hudi's keys, as in
                `{"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}`.

        Returns:
            The result of the commit: its instant, and numbers of rows, files and bytes.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the rows or the options do not fit the table; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write.

        Example:
            >>> load = pa.table({"id": [5, 4], "city": ["lima", "oslo"], "fare": [50.0, 40.0], "ts": [1, 1]})
            >>> table.bulk_insert(load, sort_by=["fare"]).inserts
            2
        """
        return self._write("bulk_insert", data, options, sort_by=sort_by, null_for_missing=null_for_missing)

    def append(
        self,
        data: Any,
        *,
        merge_small_files: bool | None = None,
        null_for_missing: bool | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Add rows as new base files, without looking up keys or filling small files.

        So a batch takes only the time to write its files. Use it for logs and events: rows that arrive once
        and never change.

        Args:
            data: the rows: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame,
                or anything else with the Arrow C stream interface. They have the table's columns by name;
                further columns are added to the table.
            merge_small_files: whether small files of the partitions that were written to are put together
                after the commit, once there are enough of them (`drawstring.append.merge`). True by default.
            null_for_missing: whether columns of the table that the rows lack become null; otherwise such
                rows are refused (`hoodie.write.set.null.for.missing.columns`). False by default.
            options: further write options by Hudi's keys, as in
                `{"hoodie.parquet.compression.codec": "snappy"}`.

        Returns:
            The result of the commit: its instant, and numbers of rows, files and bytes.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the rows or the options do not fit the table; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write, as
                appending to a table with a bucket index.

        Example:
            >>> event = pa.table({"id": [9], "city": ["oslo"], "fare": [5.0], "ts": [3]})
            >>> table.append(event, merge_small_files=False).files
            1
        """
        return self._write(
            "append", data, options, merge_small_files=merge_small_files, null_for_missing=null_for_missing
        )

    def insert_overwrite(
        self, data: Any, *, null_for_missing: bool | None = None, options: Options = None
    ) -> CommitResult:
        """Replace the rows of the partitions that `data` falls into by the rows of `data`.

        Args:
            data: the rows: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame,
                or anything else with the Arrow C stream interface. Partitions that none of them falls into
                stay as they are.
            null_for_missing: whether columns of the table that the rows lack become null; otherwise such
                rows are refused (`hoodie.write.set.null.for.missing.columns`). False by default.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit: its instant, and numbers of rows, files and bytes.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the rows or the options do not fit the table; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write.

        Example:
            >>> lima = pa.table({"id": [7], "city": ["lima"], "fare": [70.0], "ts": [2]})
            >>> result = table.insert_overwrite(lima)
            >>> sorted(table.scan(columns="id").to_arrow()["id"].to_pylist())
            [3, 7]
        """
        return self._write("insert_overwrite", data, options, null_for_missing=null_for_missing)

    def insert_overwrite_table(
        self, data: Any, *, null_for_missing: bool | None = None, options: Options = None
    ) -> CommitResult:
        """Replace all rows of the table by the rows of `data`.

        Args:
            data: the rows: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame,
                or anything else with the Arrow C stream interface.
            null_for_missing: whether columns of the table that the rows lack become null; otherwise such
                rows are refused (`hoodie.write.set.null.for.missing.columns`). False by default.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit: its instant, and numbers of rows, files and bytes.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the rows or the options do not fit the table; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write.

        Example:
            >>> only = pa.table({"id": [7], "city": ["lima"], "fare": [70.0], "ts": [2]})
            >>> result = table.insert_overwrite_table(only)
            >>> table.scan(columns="id").to_arrow()["id"].to_pylist()
            [7]
        """
        return self._write("insert_overwrite_table", data, options, null_for_missing=null_for_missing)

    def delete(self, data: Any = None, *, where: Condition = None, options: Options = None) -> CommitResult:
        """Delete rows: those that have the keys of `data`, or those that fulfil a condition.

        A delete has no ordering value. The next row of the key is an insert, also with a lower ordering
        value than before. In a MERGE_ON_READ table Apache Hudi 1.2.0 then shows the deleted record again.
        If rows may arrive late, upsert the records with `_hoodie_is_deleted` set instead.

        Args:
            data: rows with the key and partition columns at least: a pyarrow Table, RecordBatch or
                RecordBatchReader, a pandas or polars DataFrame, or anything else with the Arrow C stream
                interface.
            where: instead of `data`: a SQL predicate in Spark's dialect, as in `"fare > 60"`, or a pyarrow
                expression.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit; `deletes` is the number of deleted rows.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the rows, the condition or the options do not fit the table; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write.
            CorruptTableError: a file of the table that the write needs is damaged or missing.

        Example:
            >>> table.delete(where="city = 'lima' and fare < 15").deletes
            1
            >>> table.delete(pa.table({"id": [3], "city": ["oslo"]})).deletes
            1
        """
        with self._errors():
            table_writes.check_delete(data, where)
            if where is not None:
                return after_commit(
                    table_writes.delete_where(self._context, where, self._calls.given("delete", options))
                )
        return self._write("delete", data, options)

    def update(self, where: Condition, set: Mapping[str, Any], *, options: Options = None) -> CommitResult:
        """Set columns of the rows that fulfil a condition.

        A row whose ordering column is set to less than it was stays as it was, as in Hudi's UPDATE, and is
        not counted.

        Args:
            where: a SQL predicate in Spark's dialect, as in `"fare > 60"`, or a pyarrow expression; None for
                all rows.
            set: by column, what it is set to: SQL over the row's columns (a text in quotes of its own, as in
                `"'late'"`), a pyarrow expression, or any other value as it is. Key and partition columns
                cannot be set.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit; `updates` is the number of changed rows.

        Raises:
            ConflictError: another writer committed or holds the table; nothing was written.
            InvalidError: the condition, a column or a type does not fit; nothing was written.
            UnsupportedError: the table or an option asks for something that this release cannot write.
            CorruptTableError: a file of the table that the write needs is damaged or missing.

        Example:
            >>> table.update("city = 'lima'", {"fare": "fare * 2"}).updates
            2
            >>> sorted(table.scan(columns="fare").to_arrow()["fare"].to_pylist())
            [20.0, 30.0, 40.0]
        """
        with self._errors():
            return after_commit(
                table_writes.update_where(self._context, where, set, self._calls.given("update", options))
            )

    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | Mapping[str, str] | None = None,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        options: Options = None,
    ) -> MergeBuilder:
        """Merge rows into the table: update and delete what they match, insert what they do not match.

        Args:
            source: the rows, read by `execute`: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas
                or polars DataFrame, or anything else with the Arrow C stream interface.
            on: columns that match: names that both have, source columns by target column, or equalities
                joined by `and`, as in `"target.id = source.id"`. By default the columns that identify a row:
                record key and partition columns, with a global index the record key alone.
            source_alias: name of the source in conditions and values.
            target_alias: name of the table in conditions and values.
            options: further write options by Hudi's keys.

        Returns:
            A builder, which clauses are added to; its `execute` carries the merge out as one commit.

        Raises:
            InvalidError: the source cannot be read as rows, or the options are invalid.

        Example:
            >>> changes = pa.table({"id": [1, 4], "city": ["lima", "oslo"], "fare": [2.5, 8.0], "ts": [2, 2]})
            >>> result = (
            ...     table.merge(changes, "target.id = source.id")
            ...     .when_matched_update({"fare": "target.fare + source.fare"})
            ...     .when_not_matched_insert_all()
            ...     .execute()
            ... )
            >>> result.updates, result.inserts
            (1, 1)
        """
        with self._errors():
            given = self._calls.given("merge", options)
            table_writes.check_merge(given)
            context, rows = self._rows_of(source)
            merging = MergeSource(rows, on, (source_alias, target_alias))
        return MergeBuilder(partial(self._merge, context, merging, given))

    def delete_partition(self, *partitions: str, options: Options = None) -> CommitResult:
        """Drop whole partitions, at once and whatever their size.

        Args:
            partitions: partition paths, as in `"lima"`, `"city=lima"` or `"2024/01"`, each an argument of its
                own; `*` stands for any text, so `"rome/*"` does not match `"rome"`. What matches no partition
                is passed over, with a warning.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit: its instant, `partitions_dropped` and `groups_dropped` (file groups).

        Raises:
            ConflictError: another writer committed or holds the table; nothing was dropped.
            InvalidError: no partition is named, or the table has none.

        Example:
            >>> table.delete_partition("lima").partitions_dropped
            1
        """
        with self._errors():
            given = self._calls.given("delete_partition", options)
            return after_commit(table_writes.drop_partitions(self._context, partitions, given))

    # -------------------- queries

    def scan(
        self,
        columns: Columns = None,
        *,
        where: Condition = None,
        as_of: Any = None,
        read_optimized: bool = False,
    ) -> Scan:
        """Return the table's rows as a lazy scan.

        Args:
            columns: columns to read, or one column; all by default, meta columns included.
            where: a SQL predicate in Spark's dialect, as in `"month = 7 and delay > 60"` (columns plain
                or in backticks, texts in quotes), or a pyarrow expression.
            as_of: an instant or a date-time: the table as it was then. The newest state by default.
            read_optimized: whether to read base files only; changes that are not compacted yet do not show.

        Returns:
            A lazy scan of the rows; `to_arrow`, `to_pandas` and `to_batches` read them.

        Raises:
            InvalidError: a column that is not there, a condition that does not fit the columns, or a
                time that makes no sense or whose files were cleaned away. The condition may also fail on a
                row, when the scan is read; a time whose files a clean by file versions took, or that were
                cleaned away since, fails then as well.
            CorruptTableError: a file of the table is damaged or missing; data files are looked at
                when the scan is read.
            UnavailableError: when the scan is read: files of it were cleaned away while it was read, after
                rows had been handed out. Scan again, within `held()` perhaps.
            UnsupportedError: the table has a feature that this release cannot read.

        Example:
            >>> table.scan(columns=["id", "fare"], where="city = 'oslo'").to_arrow().to_pylist()
            [{'id': 3, 'fare': 30.0}]
        """
        with self._errors():
            return snapshot_scan(
                self._calls.facts(), columns=columns, where=where, as_of=as_of, read_optimized=read_optimized
            )

    def to_polars(self, *, as_of: Any = None) -> polars.LazyFrame:
        """Return the table as a lazy frame of polars, as of the time of the call.

        polars' optimizer pushes columns, conditions and limits down: files, row groups and columns that a
        query does not need are not read.

        Args:
            as_of: an instant or a date-time: the table as it was then. The newest state by default.

        Returns:
            A lazy frame with all columns, meta columns included.

        Raises:
            InvalidError: polars is not installed, or the time makes no sense.
            UnsupportedError: the table has a feature that this release cannot read.

        Example:
            >>> import polars as pl
            >>> table.to_polars().filter(pl.col("city") == "oslo").select("fare").collect().rows()
            [(30.0,)]
        """
        with self._errors():
            return Snapshot(self._calls.facts(), as_of).polars()

    def to_arrow_dataset(self, *, as_of: Any = None) -> ScannedDataset:
        """Return the table as an Arrow dataset, as of the time of the call; for DuckDB and others.

        DuckDB pushes columns and conditions down into a dataset: `duckdb.from_arrow(dataset)` is a relation,
        and a query may name a variable that holds one.

        Args:
            as_of: an instant or a date-time: the table as it was then. The newest state by default.

        Returns:
            A `pyarrow.dataset.Dataset` with all columns, meta columns included.

        Raises:
            InvalidError: the time makes no sense.
            UnsupportedError: the table has a feature that this release cannot read.

        Example:
            >>> import pyarrow.compute as pc
            >>> table.to_arrow_dataset().to_table(columns=["fare"], filter=pc.field("id") == 3).to_pylist()
            [{'fare': 30.0}]
        """
        with self._errors():
            return Snapshot(self._calls.facts(), as_of).dataset()

    def incremental(
        self,
        start: Any = NEWEST,
        end: Any = None,
        *,
        columns: Columns = None,
        where: Condition = None,
        include_start: bool = False,
        holes: str = Holes.FAIL,
        full_scan: bool = True,
        path_glob: str = "",
    ) -> Scan:
        """Return the rows that commits after `start`, up to and including `end`, left behind.

        Args:
            start: exclusive; a completion time (a requested time in table version 6), a date-time, or
                `"earliest"`; `"newest"`, the default, for the newest commit up to `end` alone.
            end: inclusive, as `start`; the newest commit by default.
            columns: columns to read, or one column; all by default, meta columns included.
            where: a SQL predicate in Spark's dialect, as in `"fare > 60"`, or a pyarrow expression.
            include_start: whether commits of the very start are included.
            holes: in table version 6, what to do about a pending write before completed ones: `FAIL`,
                `BLOCK` (stop before it) or `USE_TRANSITION_TIME` (ranges in modification times).
            full_scan: whether the whole table may be read, by commit times, when commits of the range were
                archived or their files cleaned away; later commits hide earlier ones then.
            path_glob: a pattern of the end of the paths of files to read, as in `"/year=2026/*"`; `*` stands
                for any text, also across folders. The pattern is compared with the whole address of a file.
                If a folder above the table could match, begin the pattern with the name of the table's
                folder. All files by default.

        Returns:
            A lazy scan of the rows.

        Raises:
            InvalidError: a column or time that is not there, a condition that does not fit the columns, an
                end before the start, or files that are gone without `full_scan`.
            CorruptTableError: a file of the table is damaged or missing; data files are looked at
                when the scan is read.
            UnavailableError: a pending write would be missed.
            UnsupportedError: the table keeps no commit times, or has a feature that this release cannot
                read.

        Example:
            >>> since = table.timeline.latest_write().completed
            >>> result = table.upsert(pa.table({"id": [3], "city": ["oslo"], "fare": [33.0], "ts": [2]}))
            >>> table.incremental(since, columns=["id", "fare"]).to_arrow().to_pylist()
            [{'id': 3, 'fare': 33.0}]
        """
        with self._errors():
            policy = policy_of(Holes, holes)
            requested = RangeSpec(start_of(start), end, include_start, policy, full_scan, path_glob=path_glob)
            return incremental_scan(self._calls.facts(), requested, columns=columns, where=where)

    def changes(
        self, start: Any = NEWEST, end: Any = None, *, include_start: bool = False, holes: str = Holes.FAIL
    ) -> Scan:
        """Return every change of the commits after `start`, up to and including `end`.

        The columns are `op` (`i`, `u` or `d`), `ts_ms` (the requested time of the commit), and the record
        `before` and `after` the change as JSON. They come commit by commit, and of a commit the deletes
        first: a record that moved to another partition is deleted there before it is inserted here. On
        Spark the rows of a DataFrame have no order; sort them by `ts_ms`, deletes first.

        Args:
            start: exclusive; a completion time (a requested time in table version 6), a date-time,
                `"earliest"`, or the commit time of a row (`_hoodie_commit_time`), which leaves that commit
                out; `"newest"`, the default, for the newest commit up to `end` alone.
            end: inclusive, as `start`; the commit time of a row includes that commit, as in Hudi's change
                queries. The newest commit by default.
            include_start: whether commits of the very start are included.
            holes: in table version 6, what to do about a pending write before completed ones: `FAIL`,
                `BLOCK` (stop before it) or `USE_TRANSITION_TIME` (ranges in modification times).

        Returns:
            A lazy scan of the changes.

        Raises:
            InvalidError: a time is invalid, or the files of commits were cleaned.
            CorruptTableError: a file of the table is damaged or missing.
            UnavailableError: a pending write would be missed.
            UnsupportedError: the table has a feature that this release cannot read.

        Example:
            >>> result = table.delete(where="id = 3")
            >>> table.changes().to_arrow()["op"].to_pylist()
            ['d']
        """
        with self._errors():
            requested = RangeSpec(start_of(start), end, include_start, policy_of(Holes, holes))
            return changes_scan(self._calls.facts(), requested)

    def follow(
        self,
        start: Any = None,
        *,
        columns: Columns = None,
        where: Condition = None,
        changes: bool = False,
        poll_seconds: float | None = 10.0,
        max_commits: int | None = None,
        max_bytes: int | None = None,
        on_cleaned: str = OnCleaned.FAIL,
        clock: Clock | None = None,
        hold: str | None = None,
        hold_hours: float = HOLD_HOURS,
    ) -> Iterator[Batch]:
        """Yield the rows of new commits in batches, and wait for more commits.

        A `Batch` has `rows`, a lazy scan, and `position`, a text to store together with the results derived
        from the rows: a loop that starts at a stored position sees every commit exactly once.

        Args:
            start: a stored position, a time (exclusive), `"latest"`, or `"earliest"` (same as None): first
                all rows of the table, then those of new commits.
            columns: columns to read, or one column; all by default, meta columns included.
            where: a SQL predicate in Spark's dialect, as in `"fare > 60"`, or a pyarrow expression.
            changes: whether to return every change with its images, as `changes` does, rather than rows.
            poll_seconds: seconds between polls if there is no new commit; None to end instead.
            max_commits: maximum number of commits in a batch; no bound by default.
            max_bytes: maximum bytes that the commits of a batch wrote; a batch has at least one commit. No
                bound by default.
            on_cleaned: if commits after the position were archived or their files cleaned: `fail`, continue
                with the whole table (`snapshot`), or continue with the earliest readable commit (`earliest`)
                and skip the cleaned ones.
            clock: clock that sleeps between polls; by default that of the table.
            hold: name of a hold that follows the position of this reader, so that cleaning and archiving by
                drawstring retain unread commits; None for none.
            hold_hours: hours after which the hold expires without progress.

        Returns:
            An iterator over batches; it does not end unless `poll_seconds` is None.

        Raises:
            InvalidError: a position, column, condition or bound is invalid, or commits were cleaned.
            CorruptTableError: a file of the table is damaged or missing; data files are checked when the
                rows of a batch are read.
            UnsupportedError: the table keeps no commit times, or has a feature that this release cannot
                read.

        Example:
            >>> for batch in table.follow("earliest", poll_seconds=None):
            ...     count, position = batch.rows.to_arrow().num_rows, batch.position
            >>> count
            3
        """
        with self._errors():
            policy = policy_of(OnCleaned, on_cleaned)
            spec = FollowSpec(columns, where, changes, Limits(max_commits, max_bytes), policy)
            requested = Following(spec, start, poll_seconds, clock, hold, hold_hours)
            batches = follow_table(self._context, requested)
        return self._calls.each(batches)

    def stream(self, name: str, *, operation: str | None = None, options: Options = None) -> StreamWriter:
        """Write batches of any source, each with the position behind it in the same commit.

        A source that goes on at the position of the stream has each batch in the table exactly once, also
        after a crash. Spark's `writeStream.format("hudi")` keeps its batch ids in the same place.

        Args:
            name: name of the stream in this table; one for each source.
            operation: `upsert` (default), `insert`, `bulk_insert`, `append`, `delete`, `insert_overwrite` or
                `insert_overwrite_table`.
            options: further write options by Hudi's keys. Compaction that is due runs in the background; see
                `table.services.wait`.

        Returns:
            The writer, with the `position` of the last batch.

        Raises:
            InvalidError: an option makes no sense, or a stream cannot do this operation.
            CorruptTableError: a commit is damaged.

        Example:
            >>> stream = table.stream("rides-topic")
            >>> stream.position is None
            True
            >>> more = pa.table({"id": [4], "city": ["oslo"], "fare": [40.0], "ts": [1]})
            >>> stream.write(more, position="offset 1").inserts
            1
            >>> table.stream("rides-topic").position
            'offset 1'
        """
        with self._errors():
            parsed = stream_options(self._calls.given("stream", options, operation=operation), name)
        return StreamWriter(self._context, self._rows_of, parsed, self._errors)

    # -------------------- groups of calls

    @property
    def services(self) -> TableServices:
        """The table services of a table: compaction, clustering, cleaning, archiving, and repairs.

        Example:
            >>> table.services
            <TableServices of memory://rides>
        """
        return TableServices(self._calls)

    @property
    def indexes(self) -> TableIndexes:
        """The indexes of a table, in its metadata table.

        Example:
            >>> table.indexes
            <TableIndexes of memory://rides>
        """
        return TableIndexes(self._calls)

    @property
    def savepoints(self) -> TableSavepoints:
        """The savepoints of a table, and restoring to an instant.

        Example:
            >>> table.savepoints
            <TableSavepoints of memory://rides>
        """
        return TableSavepoints(self._calls)

    @property
    def inspect(self) -> TableInspection:
        """The state of a table: instants, files, metadata table and locks. No call changes the table.

        Example:
            >>> table.inspect
            <TableInspection of memory://rides>
        """
        return TableInspection(self._calls)

    @property
    def holds(self) -> TableHolds:
        """The holds of a table: names of readers whose unread commits cleaning and archiving retain.

        Example:
            >>> table.holds
            <TableHolds of memory://rides>
        """
        return TableHolds(self._calls)

    @property
    def columns(self) -> TableColumns:
        """The columns of a table: changes of its schema, and comments.

        Example:
            >>> table.columns
            <TableColumns of memory://rides>
        """
        return TableColumns(self._calls)

    @property
    def versions(self) -> TableVersions:
        """The table version and the storage layout of a table.

        Example:
            >>> table.versions
            <TableVersions of memory://rides>
        """
        return TableVersions(self._calls)

    # -------------------- private

    def _write(self, operation: str, data: Any, options: Options, **keywords: Any) -> CommitResult:
        """Run an operation on rows of the caller."""
        with self._errors():
            has_options = options is not None or any(value is not None for value in keywords.values())
            given = (
                self._calls.given(operation, options, **keywords)
                if has_options or self._context.defaults
                else {}
            )
            check_call(given, operation)
            context, rows = self._rows_of(data)
            return after_commit(write(context, operation, rows, options_of(operation, given)))

    def _write_rows(
        self,
        operation: str,
        rows: Rows,
        options: Mapping[str, Any],
        extra: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Run an operation on rows of the engine of the table."""
        with self._errors():
            given = self._calls.given(operation, options)
            return after_commit(write(self._context, operation, rows, options_of(operation, given), extra))

    def _merge(
        self,
        context: TableContext,
        source: MergeSource,
        options: Mapping[str, Any],
        clauses: tuple[RequestedClause, ...],
    ) -> CommitResult:
        """Run a merge on the table with the engine that holds the rows of its source."""
        with self._errors():
            return after_commit(table_writes.merge_rows(context, source, clauses, options))

    def _rows_of(self, data: Any) -> tuple[TableContext, Rows]:
        """Return the rows of the caller, and the table with the engine that holds them."""
        return local_rows(self._context, data)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Add the table to every error."""
        try:
            yield
        except DrawstringError as error:
            raise error.at(table=self.uri) from error.__cause__
        except UnicodeEncodeError as error:
            raise no_text(error).at(table=self.uri) from error
