"""Facade of the package: an open table with its writes, queries and table services.

table = drawstring.open("/lake/rides")
table.upsert(batch)
table.scan(columns=["city", "fare"], where="fare > 20").to_pandas()

`Table` is the table of contents of the package: each method has the full documentation and delegates the work
to the module that does it. So this file is longer than others may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa

from drawstring.base.errors import DrawstringError, no_text
from drawstring.base.lazy import import_later
from drawstring.model.instant import HOLD_HOURS
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.query.policies import NEWEST, Holes, OnCleaned, policy_of, start_of
from drawstring.timeline.properties import load_config
from drawstring.txn.table_context import TableContext

if TYPE_CHECKING:
    import polars
    import pyarrow.compute as pc

    from drawstring.base.clock import Clock
    from drawstring.config.keywords import with_defaults, with_keywords
    from drawstring.config.options.write_options import WriteOptions, check_call, check_place, options_of
    from drawstring.config.table_config import TableConfig
    from drawstring.engine.protocol import Rows
    from drawstring.formats.arrow_dataset import ScannedDataset
    from drawstring.metadata.contents import shown
    from drawstring.metadata.table import open_metadata_table
    from drawstring.model.files import FileSlice
    from drawstring.model.index import TableIndex
    from drawstring.model.instant import Hold, Instant, InstantStatus
    from drawstring.model.plans import CleanPlan, RestorePlan
    from drawstring.model.result import (
        ArchiveResult,
        CleanResult,
        CommitResult,
        Finding,
        PlannedRollback,
        RestoreResult,
        RollbackResult,
        TableLocks,
        Validation,
        VersionPlan,
        VersionResult,
    )
    from drawstring.query import stream as holding
    from drawstring.query.cdc import changes_scan
    from drawstring.query.clients import Following, Snapshot, follow_table
    from drawstring.query.incremental import RangeSpec, incremental_scan
    from drawstring.query.planner import latest_slices, snapshot_scan
    from drawstring.query.scan import Scan
    from drawstring.query.stream import Batch, FollowSpec, Limits
    from drawstring.query.table_state import TableFacts, facts_of, table_summary, with_shown_columns
    from drawstring.schema import internal_schema
    from drawstring.services import (
        archive,
        clean,
        clustering,
        compaction,
        indexing,
        rollback,
        savepoint,
        small_files,
        validate,
    )
    from drawstring.services import indexing as background_indexing
    from drawstring.services import indexing as shown_indexes
    from drawstring.services import partition_ttl as expire
    from drawstring.services import savepoint as restore
    from drawstring.services import upgrade as change_version
    from drawstring.services.alter import alter_columns
    from drawstring.services.background import wait_for_background
    from drawstring.services.bucket_rescaling import rescale_buckets
    from drawstring.services.locks import LockAudit, clean_lock_audit, lock_audit, table_locks
    from drawstring.services.progress import Progress
    from drawstring.services.report.page import Report, load_report
    from drawstring.services.rollback import instant_states
    from drawstring.services.schedule import (
        TaskOutcome,
        after_commit,
        check_direction,
        run_tasks,
        service_options,
    )
    from drawstring.services.streams import StreamWriter, stream_options
    from drawstring.services.upgrade import set_storage_layout
    from drawstring.services.validation import repair
    from drawstring.timeline.schema import table_comments
    from drawstring.timeline.store import TimelineStore
    from drawstring.timeline.timeline import Timeline
    from drawstring.txn.holds import Holds
    from drawstring.txn.locks import storage_lock as leases
    from drawstring.write import table_writes
    from drawstring.write.executor import write
    from drawstring.write.merge import MergeBuilder, RequestedClause
    from drawstring.write.source import local_rows
    from drawstring.write.table_writes import MergeSource

    Condition: TypeAlias = str | pc.Expression | None
    _Watch: TypeAlias = Progress | None
    _AtOnce: TypeAlias = Callable[[TableContext, WriteOptions, _Watch], CommitResult | None]
    _Planned: TypeAlias = Callable[[TableContext, str, WriteOptions, _Watch], CommitResult | None]
else:
    import_later(
        globals(),
        with_defaults="drawstring.config.keywords:with_defaults",
        check_place="drawstring.config.options.write_options:check_place",
        with_keywords="drawstring.config.keywords:with_keywords",
        WriteOptions="drawstring.config.options.write_options:WriteOptions",
        check_call="drawstring.config.options.write_options:check_call",
        options_of="drawstring.config.options.write_options:options_of",
        shown="drawstring.metadata.contents:shown",
        open_metadata_table="drawstring.metadata.table:open_metadata_table",
        ArchiveResult="drawstring.model.result:ArchiveResult",
        CleanResult="drawstring.model.result:CleanResult",
        CommitResult="drawstring.model.result:CommitResult",
        RestoreResult="drawstring.model.result:RestoreResult",
        RollbackResult="drawstring.model.result:RollbackResult",
        facts_of="drawstring.query.table_state:facts_of",
        with_shown_columns="drawstring.query.table_state:with_shown_columns",
        Following="drawstring.query.clients:Following",
        follow_table="drawstring.query.clients:follow_table",
        Snapshot="drawstring.query.clients:Snapshot",
        holding="drawstring.query.stream",
        Limits="drawstring.query.stream:Limits",
        changes_scan="drawstring.query.cdc:changes_scan",
        RangeSpec="drawstring.query.incremental:RangeSpec",
        FollowSpec="drawstring.query.stream:FollowSpec",
        incremental_scan="drawstring.query.incremental:incremental_scan",
        latest_slices="drawstring.query.planner:latest_slices",
        snapshot_scan="drawstring.query.planner:snapshot_scan",
        indexing="drawstring.services.indexing",
        background_indexing="drawstring.services.indexing",
        shown_indexes="drawstring.services.indexing",
        rollback="drawstring.services.rollback",
        expire="drawstring.services.partition_ttl",
        archive="drawstring.services.archive",
        internal_schema="drawstring.schema.internal_schema",
        alter_columns="drawstring.services.alter:alter_columns",
        wait_for_background="drawstring.services.background:wait_for_background",
        rescale_buckets="drawstring.services.bucket_rescaling:rescale_buckets",
        clean="drawstring.services.clean",
        small_files="drawstring.services.small_files",
        clustering="drawstring.services.clustering",
        compaction="drawstring.services.compaction",
        instant_states="drawstring.services.rollback:instant_states",
        after_commit="drawstring.services.schedule:after_commit",
        run_tasks="drawstring.services.schedule:run_tasks",
        load_report="drawstring.services.report.page:load_report",
        Report="drawstring.services.report.page:Report",
        restore="drawstring.services.savepoint",
        savepoint="drawstring.services.savepoint",
        check_direction="drawstring.services.schedule:check_direction",
        service_options="drawstring.services.schedule:service_options",
        StreamWriter="drawstring.services.streams:StreamWriter",
        stream_options="drawstring.services.streams:stream_options",
        repair="drawstring.services.validation.repair",
        validate="drawstring.services.validate",
        clean_lock_audit="drawstring.services.locks:clean_lock_audit",
        lock_audit="drawstring.services.locks:lock_audit",
        table_locks="drawstring.services.locks:table_locks",
        table_summary="drawstring.query.table_state:table_summary",
        change_version="drawstring.services.upgrade",
        set_storage_layout="drawstring.services.upgrade:set_storage_layout",
        TimelineStore="drawstring.timeline.store:TimelineStore",
        table_comments="drawstring.timeline.schema:table_comments",
        Holds="drawstring.txn.holds:Holds",
        leases="drawstring.txn.locks.storage_lock",
        table_writes="drawstring.write.table_writes",
        MergeBuilder="drawstring.write.merge:MergeBuilder",
        write="drawstring.write.executor:write",
        MergeSource="drawstring.write.table_writes:MergeSource",
        local_rows="drawstring.write.source:local_rows",
    )

Options: TypeAlias = Mapping[str, Any] | None
"""Options by Hudi's keys, with texts or Python values."""

Columns: TypeAlias = str | Sequence[str] | None
_T = TypeVar("_T")


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
        config = load_config(context.storage)
        if context.defaults:
            service_options(config, dict(context.defaults))

    def __repr__(self) -> str:
        config = self.config
        return f"<Table {config.name} {config.table_type} version {config.version} at {self.uri}>"

    def __str__(self) -> str:
        with self._errors():
            return table_summary(self._context).text()

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
        return self._context.storage.spec.uri

    @property
    def config(self) -> TableConfig:
        """The table's properties, read afresh.

        Raises:
            CorruptTableError: the properties are damaged beyond their backup.

        Example:
            >>> table.config.record_key_fields
            ('id',)
        """
        with self._errors():
            return load_config(self._context.storage)

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
            return TimelineStore(self._context.storage, self.config, self._context.clock).load()

    def instants(self, last: int | None = None) -> tuple[InstantStatus, ...]:
        """Return the instants of the active timeline, with what is known of them.

        Args:
            last: how many of the newest ones; None for all.

        Returns:
            The instants, oldest first.

        Raises:
            CorruptTableError: a file of the timeline has an invalid name.

        Example:
            >>> [each.is_worked_on for each in table.instants()]
            [None]
        """
        with self._errors():
            return instant_states(self._context, last)

    def locks(self, *, options: Options = None) -> TableLocks:
        """Return who holds the lock of the table or waits for it, and who works on its pending instants.

        It only reads, and waits for nobody. Processes have the names that they have in errors.

        Args:
            options: the options of the writes by Hudi's keys: their lock, and the interval of heartbeats.

        Returns:
            The locks on the whole table, and the instants that are requested or inflight.

        Raises:
            CorruptTableError: a file of the timeline has an invalid name.
            UnavailableError: the server of the lock does not answer.

        Example:
            >>> table.locks().pending
            ()
        """
        with self._errors():
            return table_locks(self._context, self._options("locks", options))

    def record_leases(self, on: bool) -> None:
        """Have the leases on the table recorded, or no longer, by all writers that lock it by leases.

        These are writers in object stores, and of `StorageBasedLockProvider`, those of Apache Hudi included
        (its procedure `set_audit_lock`). They look at the switch once a minute. The own lock of a table in
        local files is one of the operating system, of which nothing is recorded.

        Args:
            on: whether to record: True or False.

        Raises:
            InvalidError: `on` is neither.
            UnavailableError: the storage does not answer.

        Example:
            >>> table.record_leases(True)
            >>> table.lease_audit().enabled
            True
        """
        with self._errors():
            leases.switch_audit(self._context.storage, on)

    def lease_audit(self) -> LockAudit:
        """Return what the record of the leases on the table tells: leases that overlap, or were not released.

        Returns:
            Whether leases are recorded, how many there are, and which of them are conspicuous.

        Raises:
            UnavailableError: the storage does not answer.

        Example:
            >>> table.lease_audit().overlaps
            ()
        """
        with self._errors():
            return lock_audit(self._context.storage)

    def clean_lease_audit(self, *, age_days: int = 7, apply: bool = True) -> tuple[str, ...]:
        """Delete old records of the leases on the table; nothing else deletes them.

        Args:
            age_days: age in days beyond which a record goes, at least 1.
            apply: whether to delete them; if not, they are only named.

        Returns:
            The paths of the files that were, or would be, deleted, relative to the table.

        Raises:
            InvalidError: `age_days` is no whole number of at least 1.
            UnavailableError: the storage does not answer.

        Example:
            >>> table.clean_lease_audit(age_days=30)
            ()
        """
        with self._errors():
            return clean_lock_audit(
                self._context.storage, self._context.clock, age_days=age_days, apply=apply
            )

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
            facts = self._facts()
            return with_shown_columns(facts.schema, facts.config)

    @property
    def comments(self) -> dict[str, str]:
        """The comments of columns, by their names; with dots for fields of structs.

        Raises:
            CorruptTableError: the table's properties or timeline are damaged.

        Example:
            >>> table.comments
            {}
        """
        with self._errors():
            facts = self._facts()
            found = table_comments(facts.storage, facts.store, facts.timeline, facts.config)
            return {".".join(path): comment for path, comment in found.items()}

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

        A delete has no ordering value. If a row arrives late in a MERGE_ON_READ table, ordered before the
        record that was deleted, that record is visible again, in Hudi too, unless `compact` ran in between.
        Where late rows are to be expected, upsert the records with `_hoodie_is_deleted` set instead.

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
                    table_writes.delete_where(self._context, where, self._given("delete", options))
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
                table_writes.update_where(self._context, where, set, self._given("update", options))
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
            given = self._given("merge", options)
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
            given = self._given("delete_partition", options)
            return after_commit(table_writes.drop_partitions(self._context, partitions, given))

    # -------------------- columns

    def add_column(
        self,
        name: str,
        type: pa.DataType,
        *,
        first: bool = False,
        after: str | None = None,
        comment: str | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Add a column, which is null in the rows that are there, in a commit without rows.

        This and the other changes of columns need schema on read: files stay as they are, and columns are
        found in them by ids, so Apache Hudi reads the table right with `hoodie.schema.on.read.enable=true`
        only. A column at the end needs no such call: write rows that have it.

        Args:
            name: of the column; `"st.a"` is field a of the struct st, `"l.element.a"` of the items of a list,
                `"m.value.a"` of the values of a map.
            type: its type.
            first: whether it comes before all others.
            after: the column that it comes after; the last one by default.
            comment: what it means, for people.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is such a column, the name is one of the table format, or there is no column
                of the name in `after`.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.add_column("note", pa.string(), after="city")
            >>> table.schema.names
            ['id', 'city', 'note', 'fare', 'ts']
        """
        place = internal_schema.place_of(first, after)
        told = [internal_schema.commented(name, comment)] if comment else []
        return self._alter([internal_schema.added(name, type, place), *told], options)

    def comment_column(self, name: str, comment: str | None, *, options: Options = None) -> CommitResult:
        """Say what a column means, in a commit without rows.

        The comment is the `doc` of the column in the schema of the table: `Table.comments` and `DESCRIBE` in
        SQL show it. It stays with the column when other columns change, and when it is renamed.

        Args:
            name: of the column, with dots for a field of a struct.
            comment: its comment, for people; None takes it away.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, or it has this comment already.

        Example:
            >>> result = table.comment_column("fare", "in euros, tip included")
            >>> table.comments
            {'fare': 'in euros, tip included'}
        """
        return self._alter([internal_schema.commented(name, comment)], options)

    def rename_column(self, name: str, new_name: str, *, options: Options = None) -> CommitResult:
        """Rename a column with its values, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Args:
            name: of the column, with dots for a field of a struct. Columns of the record key, the partition
                path, the ordering and of indexes keep their names.
            new_name: its new name, without the names of structs around it.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, it keeps its name, or the new one belongs to another column
                or to the table format.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.rename_column("fare", "price")
            >>> table.scan(columns=["id", "price"], where="id = 1").to_arrow().to_pylist()
            [{'id': 1, 'price': 10.0}]
        """
        return self._alter([internal_schema.renamed(name, new_name)], options)

    def drop_column(self, name: str, *, options: Options = None) -> CommitResult:
        """Drop a column, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Its values stay in files until these are written anew. A column that is added under the name later is
        another one, and does not show them.

        Args:
            name: of the column, with dots for a field of a struct; not one of the record key, the partition
                path, the ordering or an index.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, or the table needs it.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.drop_column("fare")
            >>> table.schema.names
            ['id', 'city', 'ts']
        """
        return self._alter([internal_schema.dropped(name)], options)

    def change_column_type(self, name: str, type: pa.DataType, *, options: Options = None) -> CommitResult:
        """Give a column a wider type, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Integers become long, float, double or string; float becomes double; date becomes string; decimals get
        more digits of the same scale. Reads cast the values of older files.

        Args:
            name: of the column, with dots for a field of a struct; not one of the record key, the partition
                path, the ordering or an index.
            type: its new type.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, the table needs its type, or it cannot become the new one.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.add_column("tip", pa.int32())
            >>> result = table.change_column_type("tip", pa.int64())
            >>> table.schema.field("tip").type
            DataType(int64)
        """
        return self._alter([internal_schema.retyped(name, type)], options)

    def move_column(
        self, name: str, *, first: bool = False, after: str | None = None, options: Options = None
    ) -> CommitResult:
        """Give a column another place among the columns, in a commit without rows.

        Files stay as they are: columns are found in them by ids (schema on read). Apache Hudi reads the table
        right with `hoodie.schema.on.read.enable=true` only.

        Args:
            name: of the column, with dots for a field of a struct.
            first: whether it comes before all others.
            after: the column that it comes after; the last one by default.
            options: further write options by Hudi's keys.

        Returns:
            The result of the commit.

        Raises:
            ConflictError: another writer holds the table; nothing was written.
            InvalidError: there is no such column, or it is there already.
            UnsupportedError: the columns of such a table cannot be changed.

        Example:
            >>> result = table.move_column("ts", first=True)
            >>> table.schema.names
            ['ts', 'id', 'city', 'fare']
        """
        place = internal_schema.place_of(first, after)
        return self._alter([internal_schema.moved(name, place)], options)

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
                self._facts(), columns=columns, where=where, as_of=as_of, read_optimized=read_optimized
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
            return Snapshot(self._facts(), as_of).polars()

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
            return Snapshot(self._facts(), as_of).dataset()

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
            return incremental_scan(self._facts(), requested, columns=columns, where=where)

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
            return changes_scan(self._facts(), requested)

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
        return self._each(batches)

    def stream(self, name: str, *, operation: str | None = None, options: Options = None) -> StreamWriter:
        """Write batches of any source, each with the position behind it in the same commit.

        A source that goes on at the position of the stream has each batch in the table exactly once, also
        after a crash. Spark's `writeStream.format("hudi")` keeps its batch ids in the same place.

        Args:
            name: name of the stream in this table; one for each source.
            operation: `upsert` (default), `insert`, `bulk_insert`, `append`, `delete`, `insert_overwrite` or
                `insert_overwrite_table`.
            options: further write options by Hudi's keys. Compaction that is due runs in the background; see
                `wait_for_services`.

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
            parsed = stream_options(self._given("stream", options, operation=operation), name)
        return StreamWriter(self._context, self._rows_of, parsed, self._errors)

    def report(self, *, options: Options = None) -> Report:
        """Return a report: the timeline, files, partitions, what is due and why, and amplification.

        Args:
            options: options of table services by Hudi's keys; they say when a service is due.

        Returns:
            The report, with its `facts`, and `to_html()` for a page that stands alone.

        Raises:
            CorruptTableError: the table is damaged.
            InvalidError: an option makes no sense.

        Example:
            >>> facts = table.report().facts
            >>> len(facts.commits), len(facts.partitions)
            (1, 2)
        """
        with self._errors():
            return Report(load_report(self._context, self._options("report", options)))

    def file_slices(self) -> list[FileSlice]:
        """Return the latest file slice of every file group: what a scan reads.

        Returns:
            Slices with their partition, file id, base file and log files, sizes in bytes.

        Raises:
            CorruptTableError: a file of a committed write is missing.

        Example:
            >>> sorted(part.partition for part in table.file_slices())
            ['lima', 'oslo']
        """
        with self._errors():
            return latest_slices(self._facts())

    def metadata(self, partition: str | None = None, *, keys: Columns = None) -> pa.Table:
        """Return what the table's metadata table holds: file names, statistics, bloom filters and indexes.

        It is in `.hoodie/metadata`; both Apache Hudi and drawstring keep it.

        Args:
            partition: the partition to read, such as `files`, `column_stats`, `record_index` or
                `secondary_index_<name>`. A list of all partitions by default.
            keys: what to look up in the partition without reading all of it: record keys in the record index,
                values in a secondary index, columns in statistics, partition paths in `files` and in bloom
                filters; one or several. Everything by default.

        Returns:
            One row for each partition, with its number of file groups, base and log files and its size in
            bytes; or the decoded records of one partition: a file, the statistics of a column, a bloom
            filter, or a key and its place in each row. Smallest and greatest values are text.

        Raises:
            InvalidError: the table has no metadata table, the metadata table has no such partition, or there
                are keys without a partition.
            CorruptTableError: the metadata table is damaged; rows of the table are not affected.
            UnsupportedError: this release does not know the kind of the partition.

        Example:
            >>> table.metadata().column("partition").to_pylist()
            ['files']
        """
        with self._errors():
            facts = self._facts()
            opened = open_metadata_table(facts.storage, facts.config, facts.timeline, self._context.clock)
            names = [keys] if isinstance(keys, str) else keys
            return shown(opened, facts.config.timezone, partition, names)

    # -------------------- indexes

    def create_index(
        self,
        name: str,
        column: str | None = None,
        *,
        using: str | None = None,
        partitioned: bool = False,
        options: Options = None,
    ) -> TableIndex:
        """Build an index in the metadata table; all writes keep it from then on.

        Writes with `hoodie.index.type=RECORD_INDEX` and the like find records by the record index.
        Queries read fewer files by all of them, unless `hoodie.metadata.enable` is false.

        Args:
            name: `record_index`, `bloom_filters`, `column_stats`, or a name of your own for a secondary
                index, which tells the records with a value of a column, or for an expression index.
            column: the column of a secondary index, of a type with texts, whole numbers, floats, dates or
                timestamps (such an index needs the record index), or of an expression.
            using: `column_stats` for an index of the bounds of an expression, `bloom_filters` for one of
                filters of its values.
            partitioned: whether a record index has the keys of each partition by themselves.
            options: options by Hudi's keys, such as those of the table lock; of an expression index also its
                function (`expr`) and the settings of that, as in Hudi's `CREATE INDEX ... OPTIONS (...)`.

        Returns:
            The index, under the name that Hudi gives it: `secondary_index_<name>` or `expr_index_<name>`.

        Raises:
            InvalidError: there is such an index, no such column or function, or no record index for a
                secondary one.
            UnsupportedError: the table has version 6, or this release cannot compute the function.
            ConflictError: another writer holds the table, or is about to commit to it.
            CorruptTableError: a file of the table, or its metadata table, is damaged.

        Example:
            >>> index = table.create_index("record_index")
            >>> table.create_index("by_city", "city").name
            'secondary_index_by_city'
            >>> table.create_index("upper", "city", using="column_stats", options={"expr": "upper"}).name
            'expr_index_upper'
        """
        with self._errors():
            settings, others = indexing.index_settings(options)
            parsed = self._options("create_index", others)
            request = indexing.IndexRequest(name, column, using, partitioned, settings)
            return indexing.create_index(self._context, parsed, request)

    def schedule_index(
        self,
        name: str,
        column: str | None = None,
        *,
        using: str | None = None,
        partitioned: bool = False,
        options: Options = None,
    ) -> str:
        """Plan an index, which `run_indexing` builds in any process while writers go on.

        Args:
            name: `record_index`, `bloom_filters`, `column_stats`, or a name of your own.
            column: the column of a secondary index or of an expression.
            using: `column_stats` or `bloom_filters` for an index of an expression.
            partitioned: whether a record index has the keys of each partition by themselves.
            options: options by Hudi's keys, and the settings of an expression index (`expr` and others).

        Returns:
            The requested time of the indexing action.

        Raises:
            InvalidError: there is such an index, no such column or function, or no record index for a
                secondary one.
            UnsupportedError: the table has version 6, or this release cannot compute the function.
            ConflictError: another writer holds the table.

        Example:
            >>> instant = table.schedule_index("column_stats")
            >>> [index.name for index in table.run_indexing(instant)]
            ['column_stats', 'partition_stats']
        """
        with self._errors():
            settings, others = indexing.index_settings(options)
            parsed = self._options("create_index", others)
            request = indexing.IndexRequest(name, column, using, partitioned, settings)
            return background_indexing.schedule_index(self._context, parsed, request)

    def run_indexing(self, instant: str | None = None, *, options: Options = None) -> list[TableIndex]:
        """Build the indexes that are planned, while writers go on.

        Args:
            instant: requested time of one indexing action; None for all that no other process runs.
            options: options by Hudi's keys, such as those of the table lock.

        Returns:
            The indexes that were built.

        Raises:
            InvalidError: there is no such indexing action.
            ConflictError: another process runs it, the index was dropped meanwhile, or another engine wrote
                to the table without knowing of it: run it again.
            CorruptTableError: a file of the table, or its metadata table, is damaged.

        Example:
            >>> instant = table.schedule_index("record_index")
            >>> [index.name for index in table.run_indexing()]
            ['record_index']
        """
        with self._errors():
            parsed = self._options("create_index", options)
            return background_indexing.run_indexing(self._context, parsed, instant)

    def drop_index(self, name: str, *, options: Options = None) -> None:
        """Delete an index of the metadata table.

        Args:
            name: of the index, as `indexes` shows it; `secondary_index_` and `expr_index_` may be left out.
            options: options by Hudi's keys, such as those of the table lock.

        Raises:
            InvalidError: there is no such index, or a secondary index needs it.
            UnsupportedError: the table has version 6.
            ConflictError: another writer holds the table.

        Example:
            >>> index = table.create_index("bloom_filters")
            >>> table.drop_index("bloom_filters")
            >>> table.indexes()
            []
        """
        with self._errors():
            indexing.drop_index(self._context, self._options("drop_index", options), name)

    def indexes(self) -> list[TableIndex]:
        """Return the indexes in the metadata table, by name.

        Returns:
            Name, kind, columns and options of each, whether it is complete or only planned, and why queries
            do without it if they do.

        Raises:
            CorruptTableError: the properties of the table, or the definitions of its indexes, are damaged.

        Example:
            >>> index = table.create_index("record_index")
            >>> [index.name for index in table.indexes()]
            ['record_index']
        """
        with self._errors():
            return shown_indexes.table_indexes(self._context)

    # -------------------- holds

    def hold(self, name: str, position: Any = None, *, hours: float = HOLD_HOURS) -> Hold:
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
            >>> table.hold("reports", hours=48).name
            'reports'
        """
        with self._errors():
            return holding.hold(self._context, name, position, hours)

    def release(self, name: str) -> bool:
        """Give up the hold of a name.

        Args:
            name: of the reader.

        Returns:
            Whether there was a hold of that name.

        Example:
            >>> table.release("reports")
            False
        """
        with self._errors():
            return self._holds.release(name)

    def holds(self) -> list[Hold]:
        """Return the holds that last.

        Returns:
            The holds, the one that keeps most first.

        Example:
            >>> table.holds()
            []
        """
        with self._errors():
            return self._holds.active()

    @contextmanager
    def held(self, *, hours: float = HOLD_HOURS) -> Iterator[Hold]:
        """Retain the current files of the table during a block of code that scans for a long time.

        Args:
            hours: hours after which the hold ends in any case.

        Returns:
            A context manager with the hold, which is released at the end of the block.

        Raises:
            InvalidError: no number of hours greater than 0.

        Example:
            >>> with table.held(hours=2):
            ...     count = table.scan().to_arrow().num_rows
            >>> count
            3
        """
        with self._errors():
            hold = holding.hold_for_scan(self._context, hours)
        try:
            yield hold
        finally:
            self.release(hold.name)

    # -------------------- compaction, clustering

    def compact(
        self,
        instant: str | None = None,
        *,
        strategy: Columns = None,
        hybrid: bool | None = None,
        progress: Progress | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Merge the log files of a MERGE_ON_READ table into new base files; writers may continue meanwhile.

        Args:
            instant: requested time of the only scheduled compaction to run; by default run all scheduled ones
                that no other process runs, then compact the remaining file groups.
            strategy: which file groups are compacted, and which first: the name of a strategy of Hudi's, as
                in `"LogFileNumBased"`, or several that narrow each other's choice
                (`hoodie.compaction.strategy`). All with log files by default, the largest first.
            hybrid: whether each file group gets a new base file or one log file of its newest ones, or is
                left unchanged, by their sizes (`drawstring.compaction.hybrid`). By default all get one.
            progress: called with the number of finished file groups and the number of all.
            options: further options by Hudi's keys, as in `{"hoodie.compaction.target.io": 1024}` (MiB).

        Returns:
            The result of the commit; false if there was nothing to compact.

        Raises:
            InvalidError: the table is COPY_ON_WRITE, there is no such compaction, or an option is wrong.
            ConflictError: another process runs the compaction, or another writer holds the table.

        Example:
            >>> result = table.update("id = 1", {"fare": "11.0"})
            >>> table.compact().operation
            'compact'
            >>> bool(table.compact())
            False
        """
        with self._errors():
            parsed = self._options("compact", options, strategy=strategy, hybrid=hybrid)
            return self._run(
                "compact", compaction.compact, compaction.run_compaction, instant, parsed, progress
            )

    def schedule_compaction(
        self, *, strategy: Columns = None, hybrid: bool | None = None, options: Options = None
    ) -> str | None:
        """Plan a compaction and leave it on the timeline, for `compact` here or elsewhere to run.

        Args:
            strategy: which file groups are compacted, and which first: the name of a strategy of Hudi's, as
                in `"LogFileNumBased"`, or several that narrow each other's choice
                (`hoodie.compaction.strategy`). All with log files by default, the largest first.
            hybrid: whether each file group gets a new base file or one log file of its newest ones, or is
                left unchanged, by their sizes (`drawstring.compaction.hybrid`). By default all get one.
            options: further options by Hudi's keys, as in `{"hoodie.compaction.target.io": 1024}` (MiB).

        Returns:
            The requested time of the plan; None when there is nothing to compact.

        Raises:
            InvalidError: the table is COPY_ON_WRITE, or the strategy does not fit its partitions.
            ConflictError: another writer holds the table.

        Example:
            >>> result = table.update("id = 1", {"fare": "11.0"})
            >>> plan = table.schedule_compaction()
            >>> table.compact(plan).instant == plan
            True
        """
        with self._errors():
            parsed = self._options("compact", options, strategy=strategy, hybrid=hybrid)
            return compaction.schedule_compaction(self._context, parsed)

    def log_compact(
        self,
        instant: str | None = None,
        *,
        min_blocks: int | None = None,
        progress: Progress | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Make one log file of many, so that queries read less until the next compaction.

        The base files of the MERGE_ON_READ table do not change; writers may continue meanwhile.

        Args:
            instant: run the log compaction that was scheduled under this requested time, and nothing else; by
                default run all pending ones that no other process runs, then the remaining work.
            min_blocks: log blocks of a file group from which its log files are compacted, 2 or more
                (`hoodie.log.compaction.blocks.threshold`). 5 by default.
            progress: called with the number of finished file groups and the number of all.
            options: further options by Hudi's keys.

        Returns:
            The result of the commit; false if no file group has enough log blocks.

        Raises:
            InvalidError: the table is COPY_ON_WRITE, or there is no such log compaction.
            UnsupportedError: the table merges column by column or by code.
            ConflictError: another process runs it, or another writer holds the table.

        Example:
            >>> for fare in ("11.0", "12.0"):
            ...     result = table.update("id = 1", {"fare": fare})
            >>> table.log_compact(min_blocks=2).operation
            'log_compact'
        """
        with self._errors():
            parsed = self._options("log_compact", options, min_blocks=min_blocks)
            return self._run(
                "log_compact", compaction.log_compact, compaction.run_compaction, instant, parsed, progress
            )

    def schedule_log_compaction(
        self, *, min_blocks: int | None = None, options: Options = None
    ) -> str | None:
        """Plan a log compaction and leave it on the timeline, for `log_compact` here or elsewhere to run.

        Args:
            min_blocks: log blocks of a file group from which its log files are compacted, 2 or more
                (`hoodie.log.compaction.blocks.threshold`). 5 by default.
            options: further options by Hudi's keys.

        Returns:
            The requested time of the plan; None when no file group has enough log blocks.

        Raises:
            InvalidError: the table is COPY_ON_WRITE.
            UnsupportedError: the table merges column by column or by code.
            ConflictError: another writer holds the table.

        Example:
            >>> table.schedule_log_compaction(min_blocks=2) is None
            True
        """
        with self._errors():
            parsed = self._options("log_compact", options, min_blocks=min_blocks)
            return compaction.schedule_log_compaction(self._context, parsed)

    def compact_base_files(
        self,
        instant: str | None = None,
        *,
        small_file_bytes: int | None = None,
        target_file_bytes: int | None = None,
        progress: Progress | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Put small base files of a partition together into files of the target size.

        Their rows are copied as they are, without decoding them where files are alike: for tables that many
        small batches were appended to, of either type.

        Args:
            instant: run the base-file compaction that was scheduled under this requested time, and nothing
                else; by default one is planned and run.
            small_file_bytes: size below which a base file is put together with others, bytes
                (`hoodie.parquet.small.file.limit`). 100 MiB by default.
            target_file_bytes: size that new base files aim at, bytes (`hoodie.parquet.max.file.size`).
                120 MiB by default.
            progress: called with the number of new files that are done, and of all.
            options: further options by Hudi's keys.

        Returns:
            The result of the commit; false if there was nothing to do, or the file groups changed since.

        Raises:
            ConflictError: another writer holds the table, or wrote to a file group meanwhile.
            InvalidError: there is no such base-file compaction.
            UnsupportedError: the table has an index whose file groups cannot be brought together.

        Example:
            >>> for id in (7, 8):
            ...     ride = pa.table({"id": [id], "city": ["lima"], "fare": [1.0], "ts": [1]})
            ...     result = table.append(ride)
            >>> table.compact_base_files().files
            1
        """
        with self._errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            parsed = self._options("compact_base_files", options, **sizes)
            at_once = small_files.compact_base_files
            planned = small_files.run_base_file_compaction
            return self._run("compact_base_files", at_once, planned, instant, parsed, progress)

    def schedule_base_file_compaction(
        self,
        *,
        small_file_bytes: int | None = None,
        target_file_bytes: int | None = None,
        options: Options = None,
    ) -> str | None:
        """Plan to put small base files together, for `compact_base_files` or `cluster` to run.

        Args:
            small_file_bytes: size below which a base file is put together with others, bytes
                (`hoodie.parquet.small.file.limit`). 100 MiB by default.
            target_file_bytes: size that new base files aim at, bytes (`hoodie.parquet.max.file.size`).
                120 MiB by default.
            options: further options by Hudi's keys.

        Returns:
            The requested time of the plan; None when there is nothing to do.

        Raises:
            ConflictError: another writer holds the table.
            UnsupportedError: the table has an index whose file groups cannot be brought together.

        Example:
            >>> table.schedule_base_file_compaction(small_file_bytes=1 << 20) is None
            True
        """
        with self._errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            parsed = self._options("compact_base_files", options, **sizes)
            return small_files.schedule_base_file_compaction(self._context, parsed)

    def cluster(
        self,
        instant: str | None = None,
        *,
        sort_by: Columns = None,
        layout: str | None = None,
        partitions: Columns = None,
        small_file_bytes: int | None = None,
        target_file_bytes: int | None = None,
        progress: Progress | None = None,
        options: Options = None,
    ) -> CommitResult:
        """Bring small file groups together, and sort their rows; writers go on meanwhile.

        Args:
            instant: run the clustering that was scheduled under this requested time, and nothing else; by
                default run all pending ones that no other process runs, then cluster the rest.
            sort_by: columns to sort the rows of a group by (`hoodie.clustering.plan.strategy.sort.columns`).
            layout: how the columns of `sort_by` order rows: `LINEAR`, one column after the other, or along a
                curve through all of them, `ZORDER` or `HILBERT` (`hoodie.layout.optimize.strategy`).
                `LINEAR` by default.
            partitions: paths of the partitions to cluster
                (`hoodie.clustering.plan.strategy.partition.selected`). All by default.
            small_file_bytes: size below which the base file of a file group is clustered, bytes
                (`hoodie.clustering.plan.strategy.small.file.limit`). 300 MiB by default.
            target_file_bytes: size that new base files aim at, bytes
                (`hoodie.clustering.plan.strategy.target.file.max.bytes`). 1 GiB by default.
            progress: called with the number of groups that are done, and of all.
            options: further options by Hudi's keys, as in
                `{"hoodie.clustering.plan.strategy.max.num.groups": 10}`.

        Returns:
            The result of the commit; false if there was nothing to do, or the file groups changed since.

        Raises:
            ConflictError: another writer holds the table, or wrote to a file group that was being clustered.
            InvalidError: a sort column is not there, or there is no such clustering; nothing was written.
            UnsupportedError: the table has an index whose file groups cannot be clustered.

        Example:
            >>> result = table.cluster(sort_by=["fare"], layout="LINEAR")
            >>> result.operation, result.records_written
            ('cluster', 3)
        """
        with self._errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            keywords = {"sort_by": sort_by, "layout": layout, "partitions": partitions, **sizes}
            parsed = self._options("cluster", options, **keywords)
            return self._run(
                "cluster", clustering.cluster, clustering.run_clustering, instant, parsed, progress
            )

    def schedule_clustering(
        self,
        *,
        sort_by: Columns = None,
        layout: str | None = None,
        partitions: Columns = None,
        small_file_bytes: int | None = None,
        target_file_bytes: int | None = None,
        options: Options = None,
    ) -> str | None:
        """Plan a clustering and leave it on the timeline, for `cluster` here or elsewhere to run.

        Args:
            sort_by: columns to sort the rows of a group by (`hoodie.clustering.plan.strategy.sort.columns`).
            layout: how the columns of `sort_by` order rows: `LINEAR`, one column after the other, or along a
                curve through all of them, `ZORDER` or `HILBERT` (`hoodie.layout.optimize.strategy`).
                `LINEAR` by default.
            partitions: paths of the partitions to cluster
                (`hoodie.clustering.plan.strategy.partition.selected`). All by default.
            small_file_bytes: size below which the base file of a file group is clustered, bytes
                (`hoodie.clustering.plan.strategy.small.file.limit`). 300 MiB by default.
            target_file_bytes: size that new base files aim at, bytes
                (`hoodie.clustering.plan.strategy.target.file.max.bytes`). 1 GiB by default.
            options: further options by Hudi's keys, as in
                `{"hoodie.clustering.plan.strategy.max.num.groups": 10}`.

        Returns:
            The requested time of the plan; None when there is nothing to cluster.

        Raises:
            ConflictError: another writer holds the table.
            InvalidError: a sort column is not there.
            UnsupportedError: the table has an index whose file groups cannot be clustered.

        Example:
            >>> plan = table.schedule_clustering(sort_by="fare", partitions=["lima"])
            >>> table.cluster(plan).records_written
            2
        """
        with self._errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            keywords = {"sort_by": sort_by, "layout": layout, "partitions": partitions, **sizes}
            return clustering.schedule_clustering(
                self._context, self._options("cluster", options, **keywords)
            )

    def rescale_buckets(
        self, buckets: int, partitions: Columns = None, *, options: Options = None
    ) -> CommitResult:
        """Give partitions of a table with a simple bucket index another number of buckets.

        Partitions that have another number are rewritten in one commit (`BUCKET_RESCALE`); rows keep their
        commit times. Partitions that are yet to come begin with the new number. Writers wait meanwhile.

        Args:
            buckets: the number of buckets of each of the partitions.
            partitions: partition paths; `*` matches any text. All by default, also those to come.
            options: further options by Hudi's keys, as in `{"hoodie.parquet.compression.codec": "zstd"}`.

        Returns:
            The result of the commit; false if the partitions have this number already.

        Raises:
            ConflictError: another write is under way, or a partition has file groups in a pending compaction;
                nothing was written.
            InvalidError: the table has no simple bucket index, or no rows; nothing was written.

        Example:
            >>> hashed = drawstring.create(
            ...     "memory://hashed", rides.schema, record_key="id", partition_by="city", index="BUCKET",
            ...     bucket_count=1,
            ... )
            >>> hashed.insert(rides).files
            2
            >>> hashed.rescale_buckets(2, ["lima"]).files
            2
        """
        with self._errors():
            named = [partitions] if isinstance(partitions, str) else partitions
            return rescale_buckets(self._context, buckets, named, self._options("rescale_buckets", options))

    # -------------------- cleaning, archiving, expiry

    def clean(
        self,
        *,
        retain_commits: int | None = None,
        retain_versions: int | None = None,
        retain_hours: int | None = None,
        options: Options = None,
    ) -> CleanResult:
        """Delete versions of files that no reader of the retained time needs.

        Every write does this by default, see `hoodie.clean.automatic`. At most one of the three bounds may be
        given.

        Args:
            retain_commits: newest commits whose files stay (`hoodie.clean.commits.retained`). 10 by default.
            retain_versions: newest versions of each file group that stay, instead
                (`hoodie.clean.fileversions.retained`).
            retain_hours: hours for which files stay, instead (`hoodie.clean.hours.retained`).
            options: further options by Hudi's keys.

        Returns:
            What was deleted; false when there was nothing to delete.

        Raises:
            ConflictError: another writer holds the table.
            InvalidError: more than one bound is given, or an option makes no sense.

        Example:
            >>> for fare in ("11.0", "12.0"):
            ...     result = table.update("id = 1", {"fare": fare})
            ...     result = table.compact()
            >>> table.clean(retain_commits=1).files
            2
        """
        with self._errors():
            bounds = {"retain_versions": retain_versions, "retain_hours": retain_hours}
            parsed = self._options("clean", options, retain_commits=retain_commits, **bounds)
            return clean.clean(self._context, parsed) or CleanResult()

    def plan_clean(
        self,
        *,
        retain_commits: int | None = None,
        retain_versions: int | None = None,
        retain_hours: int | None = None,
        options: Options = None,
    ) -> CleanPlan | None:
        """Return what `clean` would delete now, without changing the table.

        Args:
            retain_commits: newest commits whose files stay (`hoodie.clean.commits.retained`). 10 by default.
            retain_versions: newest versions of each file group that stay, instead
                (`hoodie.clean.fileversions.retained`).
            retain_hours: hours for which files stay, instead (`hoodie.clean.hours.retained`).
            options: further options by Hudi's keys.

        Returns:
            The files that would go, by partition; None when there is nothing to delete.

        Raises:
            InvalidError: more than one bound is given, or an option makes no sense.

        Example:
            >>> table.plan_clean(retain_versions=1) is None
            True
        """
        with self._errors():
            bounds = {"retain_versions": retain_versions, "retain_hours": retain_hours}
            parsed = self._options("clean", options, retain_commits=retain_commits, **bounds)
            return clean.plan_clean(self._context, parsed)

    def expire_partitions(
        self, *, retain_days: int | None = None, partitions: Columns = None, options: Options = None
    ) -> CommitResult:
        """Drop the partitions whose time is over, at once and as one commit.

        Args:
            retain_days: days that a partition lives after the last write to it
                (`hoodie.partition.ttl.strategy.days.retain`). It has to be given, here or in `options`.
            partitions: paths of the partitions that may be dropped
                (`hoodie.partition.ttl.strategy.partition.selected`). All by default.
            options: further options by Hudi's keys, as in
                `{"hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME"}`.

        Returns:
            What was committed; false when the time of no partition was over.

        Raises:
            InvalidError: nothing says how long partitions live.
            ConflictError: another writer holds the table, or a partition stays part of a pending clustering.

        Example:
            >>> bool(table.expire_partitions(retain_days=30))
            False
        """
        with self._errors():
            keywords = {"retain_days": retain_days, "partitions": partitions}
            parsed = self._options("expire_partitions", options, **keywords)
            dropped = expire.expire_partitions(self._context, parsed)
            return after_commit(dropped) if dropped else CommitResult.nothing("delete_partition")

    def plan_expiry(
        self, *, retain_days: int | None = None, partitions: Columns = None, options: Options = None
    ) -> list[str]:
        """Return the partitions that `expire_partitions` would drop now; the table stays as it is.

        Args:
            retain_days: days that a partition lives after the last write to it
                (`hoodie.partition.ttl.strategy.days.retain`). It has to be given, here or in `options`.
            partitions: paths of the partitions that may be dropped
                (`hoodie.partition.ttl.strategy.partition.selected`). All by default.
            options: further options by Hudi's keys.

        Returns:
            Partition paths, none when the time of none is over.

        Raises:
            InvalidError: nothing says how long partitions live.

        Example:
            >>> table.plan_expiry(retain_days=30)
            []
        """
        with self._errors():
            keywords = {"retain_days": retain_days, "partitions": partitions}
            return expire.planned_expiry(
                self._context, self._options("expire_partitions", options, **keywords)
            )

    def archive(
        self, *, min_commits: int | None = None, max_commits: int | None = None, options: Options = None
    ) -> ArchiveResult:
        """Move old instants from the active timeline into the archived one.

        Every write does this by default, see `hoodie.archive.automatic`.

        Args:
            min_commits: newest writes that stay when older ones are archived (`hoodie.keep.min.commits`); as
                many as a clean retains and two more, if that is more. 20 by default.
            max_commits: writes on the active timeline before some are archived
                (`hoodie.keep.max.commits`), more than `min_commits`. 30 by default.
            options: further options by Hudi's keys.

        Returns:
            What was moved; false when there was nothing to archive.

        Raises:
            ConflictError: another writer holds the table.
            InvalidError: `max_commits` is not greater than `min_commits`.

        Example:
            >>> table.archive(min_commits=5, max_commits=6).instants
            0
        """
        with self._errors():
            parsed = self._options("archive", options, min_commits=min_commits, max_commits=max_commits)
            return archive.archive(self._context, parsed) or ArchiveResult()

    def plan_archive(
        self, *, min_commits: int | None = None, max_commits: int | None = None, options: Options = None
    ) -> list[Instant]:
        """Return the instants that `archive` would move now; the table stays as it is.

        Args:
            min_commits: newest writes that stay when older ones are archived (`hoodie.keep.min.commits`); as
                many as a clean retains and two more, if that is more. 20 by default.
            max_commits: writes on the active timeline before some are archived
                (`hoodie.keep.max.commits`), more than `min_commits`. 30 by default.
            options: further options by Hudi's keys.

        Returns:
            The instants, oldest first.

        Raises:
            InvalidError: `max_commits` is not greater than `min_commits`.

        Example:
            >>> table.plan_archive(min_commits=5, max_commits=6)
            []
        """
        with self._errors():
            parsed = self._options("archive", options, min_commits=min_commits, max_commits=max_commits)
            return list(archive.planned_instants(self._context, parsed))

    # -------------------- services as they fall due

    def run_services(
        self, *, progress: Callable[[str], Progress] | None = None, options: Options = None
    ) -> Iterator[TaskOutcome]:
        """Run the due table services (compact, cluster, expire, clean, archive) and the scheduled plans.

        Partitions expire if `hoodie.partition.ttl.inline` is set. The options determine which services are
        due.

        Args:
            progress: called with the name of a service; returns the callback for its progress (number of
                finished tasks, number of all tasks).
            options: options by Hudi's keys, as in `{"hoodie.compact.inline.max.delta.commits": 3}`.

        Returns:
            An iterator over the services that did something or failed, each when it is finished, and then
            over the plans that another process runs (`left_to`).

        Raises:
            InvalidError: an option is invalid. An error of a service is the `error` of its entry.

        Example:
            >>> result = table.update("id = 1", {"fare": "11.0"})
            >>> given = {"hoodie.compact.inline.max.delta.commits": 1}
            >>> [done.task for done in table.run_services(options=given)]
            ['compaction']
        """
        with self._errors():
            parsed = self._options("run_services", options)
        return self._each(run_tasks(self._context, parsed, progress))

    def wait_for_services(self, timeout: float | None = None) -> bool:
        """Wait for the services that run in threads of this process.

        `hoodie.datasource.compaction.async.enable` and `hoodie.clustering.async.enabled` start them.

        Args:
            timeout: seconds to wait at most; None for no bound.

        Returns:
            Whether nothing runs any more.

        Example:
            >>> table.wait_for_services(timeout=60)
            True
        """
        return wait_for_background(self._context.storage.spec.uri, timeout)

    # -------------------- validate and repair

    def validate(
        self, *, quick: bool = False, global_keys: bool = False, progress: Progress | None = None
    ) -> Validation:
        """Check the invariants of the table: files and sizes, timeline, orphans, keys, buckets.

        Args:
            quick: whether to compare names and sizes alone, without reading the keys of all records.
            global_keys: whether a key may be in one partition only, also where the table does not say that
                it has a global index: tables of Apache Hudi do not.
            progress: called with the number of file groups that were read, and of all.

        Returns:
            What was found, the worst first; damage raises nothing.

        Example:
            >>> table.validate().is_sound
            True
        """
        with self._errors():
            return validate.validate(
                self._context, contents=not quick, global_keys=global_keys, progress=progress
            )

    def repair(
        self, *, only: Columns = None, apply: bool = False, options: Options = None
    ) -> tuple[Finding, ...]:
        """Repair what can be repaired without a decision, or list these repairs.

        Args:
            only: one or more of `orphan`, `partition-metadata`, `properties`, `rollback`, `temporary`; all by
                default.
            apply: whether to apply the repairs; otherwise the table is not changed.
            options: further options by Hudi's keys.

        Returns:
            The findings that were, or would be, repaired.

        Raises:
            ConflictError: another writer holds the table, or its heartbeat is alive.
            InvalidError: a name in `only` is unknown.
            CorruptTableError: the properties and their backup are missing, or the timeline is invalid.

        Example:
            >>> table.repair(only=["orphan", "temporary"], apply=True)
            ()
        """
        with self._errors():
            given = self._given("repair", options)
            check_call(given)
            names = (only,) if isinstance(only, str) else tuple(only or ())
            parsed, remedies = WriteOptions.parse(given), repair.remedies_of(names)
            return repair.repair(self._context, parsed, apply=apply, remedies=remedies)

    # -------------------- savepoint, restore, rollback

    def savepoint(
        self, instant: str | None = None, *, comments: str = "", user: str = "", options: Options = None
    ) -> str:
        """Keep the table as it was after a write, whatever cleaning and archiving do.

        Args:
            instant: requested time of a completed write; None for the newest.
            comments: reason for the savepoint.
            user: who makes it, for those who read its file; `drawstring` by default.
            options: further options by Hudi's keys.

        Returns:
            The requested time of the write.

        Raises:
            InvalidError: there is no such write, or files of it were cleaned away.
            ConflictError: another writer holds the table.

        Example:
            >>> table.savepoint(comments="before the migration") == table.timeline.latest_write().requested
            True
        """
        with self._errors():
            parsed = self._options("savepoint", options)
            return savepoint.savepoint(self._context, parsed, instant, comments, user)

    def delete_savepoint(self, instant: str, *, options: Options = None) -> None:
        """Let cleaning and archiving pass a write again.

        Args:
            instant: requested time of the write, which `savepoint` returned.
            options: further options by Hudi's keys.

        Raises:
            InvalidError: there is no savepoint of that write.
            ConflictError: another writer holds the table.

        Example:
            >>> saved = table.savepoint()
            >>> table.delete_savepoint(saved)
        """
        with self._errors():
            savepoint.delete_savepoint(self._context, self._options("delete_savepoint", options), instant)

    def restore(self, instant: str, *, options: Options = None) -> RestoreResult:
        """Restore the table to its state after a write. Later changes are lost.

        Args:
            instant: requested time of a write with a savepoint, or of one whose files were not cleaned away.
            options: further options by Hudi's keys.

        Returns:
            The undone instants; false if there was no later instant.

        Raises:
            InvalidError: there is no such write, its files were cleaned, or a later savepoint prevents it.
            ConflictError: another writer holds the table.

        Example:
            >>> saved = table.savepoint()
            >>> result = table.delete(where="true")
            >>> len(table.restore(saved).undone)
            1
            >>> table.scan().to_arrow().num_rows
            3
        """
        with self._errors():
            done = restore.restore(self._context, self._options("restore", options), instant)
            return done or RestoreResult(restored_to=instant)

    def plan_restore(self, instant: str) -> RestorePlan:
        """Return what `restore` would undo, without changing the table.

        Args:
            instant: requested time of a write with a savepoint, or of one whose files were not cleaned away.

        Returns:
            The instants that would be undone, newest first; there may be none.

        Raises:
            InvalidError: there is no such write, its files were cleaned, or a later savepoint prevents it.

        Example:
            >>> table.plan_restore(table.savepoint()).instants
            ()
        """
        with self._errors():
            return restore.planned_restore(self._context, instant)

    def rollback(self, instant: str | None = None, *, options: Options = None) -> RollbackResult:
        """Roll back one pending instant and delete its files; committed rows stay.

        Use it for a failed write, or for an unneeded plan of a compaction, log compaction or clustering. To
        undo completed instants, use `restore`.

        Args:
            instant: requested time of the pending instant; None for the newest write. Required for plans.
            options: further options by Hudi's keys.

        Returns:
            What was rolled back; false when no write is pending.

        Raises:
            InvalidError: there is no such pending action, or it is completed.
            ConflictError: a live process works on it, log files were written on top of a compaction (version
                6), or another writer holds the table.

        Example:
            >>> plan = table.schedule_clustering()
            >>> table.rollback(plan).action
            'clustering'
            >>> bool(table.rollback())
            False
        """
        with self._errors():
            parsed = self._options("rollback", options)
            return rollback.roll_back(self._context, parsed, instant) or RollbackResult()

    def plan_rollback(self, instant: str | None = None, *, options: Options = None) -> PlannedRollback | None:
        """Return what `rollback` would delete, without changing the table.

        Args:
            instant: requested time of the pending instant; None for the newest write. Required for plans.
            options: further options by Hudi's keys.

        Returns:
            The action and its files; None when no write is pending.

        Raises:
            InvalidError: there is no such pending action, or it is completed.
            ConflictError: a live process works on it, or log files were written on top of a compaction
                (version 6).

        Example:
            >>> table.plan_rollback() is None
            True
        """
        with self._errors():
            parsed = self._options("plan_rollback", options)
            return rollback.planned_rollback(self._context, parsed, instant)

    # -------------------- table versions

    def upgrade(
        self, to: int = DEFAULT_VERSION, *, progress: Progress | None = None, options: Options = None
    ) -> VersionResult:
        """Upgrade the table to a higher version; rows and their history stay.

        A MERGE_ON_READ table is compacted first, except from 9 to 10. Stop writers during the upgrade;
        readers may continue. After a crash, the table is unchanged or upgraded: repeat the call.

        Args:
            to: table version 8, 9 or 10. The current version deletes the files of an interrupted change.
            progress: called with the number of compacted file groups and the number of all.
            options: further options by Hudi's keys.

        Returns:
            Both versions, and what was moved and compacted; false if there was nothing to do.

        Raises:
            InvalidError: the table has a higher version, or log files wait for a clustering.
            UnsupportedError: the version is unknown, or lacks a feature that the table uses.
            ConflictError: another writer holds the table, or another process compacts it.

        Example:
            >>> result = table.upgrade(9)
            >>> result.old, result.new, bool(result)
            (9, 9, False)
        """
        with self._errors():
            parsed = self._options("upgrade", options)
            check_direction(self.config, to, lower=False)
            return change_version.change_version(self._context, to, parsed, progress)

    def downgrade(
        self, to: int, *, progress: Progress | None = None, options: Options = None
    ) -> VersionResult:
        """Make the table one of a lower version, for older readers and writers; rows and their history stay.

        A MERGE_ON_READ table is compacted first. Nobody should write meanwhile; readers may go on. A process
        that dies leaves the table as it was or downgraded: call it again.

        Args:
            to: table version 6, 8 or 9. The current version deletes the files of an interrupted change.
            progress: called with the number of compacted file groups and the number of all.
            options: further options by Hudi's keys.

        Returns:
            Both versions, and what was moved and compacted; false if there was nothing to do.

        Raises:
            InvalidError: the table has a lower version, or log files wait for a clustering.
            UnsupportedError: the version is unknown, or lacks a feature that the table uses.
            ConflictError: another writer holds the table, or another process compacts it.

        Example:
            >>> result = table.downgrade(8)
            >>> result.old, result.new
            (9, 8)
        """
        with self._errors():
            parsed = self._options("downgrade", options)
            check_direction(self.config, to, lower=True)
            return change_version.change_version(self._context, to, parsed, progress)

    def set_storage_layout(self, layout: str, *, options: Options = None) -> bool:
        """Change the storage layout: from `lsm_tree` back to `default`; no file is rewritten.

        Args:
            layout: `default`. `lsm_tree` can only be chosen when a table is created.
            options: further options by Hudi's keys.

        Returns:
            Whether it changed.

        Raises:
            InvalidError: there is no such layout, or it is `lsm_tree` and the table does not have it.
            ConflictError: another writer holds the table.

        Example:
            >>> table.set_storage_layout("default")
            False
        """
        with self._errors():
            parsed = self._options("set_storage_layout", options)
            return set_storage_layout(self._context, layout, parsed)

    def plan_version(self, to: int) -> VersionPlan:
        """Return the properties that `upgrade` or `downgrade` would change, without changing the table.

        Args:
            to: table version 6, 8, 9 or 10.

        Returns:
            Both versions, whether the timeline moves to another layout, and properties now and then.

        Raises:
            UnsupportedError: the version is unknown, or lacks a feature that the table uses.

        Example:
            >>> table.plan_version(6).moves_timeline
            True
        """
        with self._errors():
            return change_version.planned_version(self._context, to)

    # -------------------- private

    def _write(self, operation: str, data: Any, options: Options, **keywords: Any) -> CommitResult:
        """Run an operation on rows of the caller."""
        with self._errors():
            has_options = options is not None or any(value is not None for value in keywords.values())
            given = (
                self._given(operation, options, **keywords) if has_options or self._context.defaults else {}
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
            given = with_defaults(self._context.defaults, options)
            check_place(given, self.uri)
            return after_commit(write(self._context, operation, rows, options_of(operation, given), extra))

    def _alter(self, changes: list[internal_schema.ColumnChange], options: Options) -> CommitResult:
        """Change columns."""
        with self._errors():
            given = options_of("insert", self._given("insert", options))
            return after_commit(alter_columns(self._context, changes, given))

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

    def _options(self, verb: str, options: Options, **keywords: Any) -> WriteOptions:
        """Return the options of a service."""
        return service_options(self.config, self._given(verb, options, **keywords))

    def _given(self, verb: str, options: Options, **keywords: Any) -> dict[str, Any]:
        """Return the options of a call: its own, and those that the table was opened with."""
        given = with_defaults(self._context.defaults, with_keywords(verb, options, keywords))
        check_place(given, self.uri)
        return given

    def _run(
        self,
        operation: str,
        at_once: _AtOnce,
        planned: _Planned,
        instant: str | None,
        parsed: WriteOptions,
        progress: _Watch,
    ) -> CommitResult:
        """Run the plan of an instant; without an instant, plan and run a service."""
        if instant is None:
            done = at_once(self._context, parsed, progress)
        else:
            done = planned(self._context, instant, parsed, progress)
        return done or CommitResult.nothing(operation)

    def _facts(self) -> TableFacts:
        return facts_of(self._context)

    @property
    def _holds(self) -> Holds:
        return Holds(self._context.storage, self._context.clock, self._context.ids)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Add the table to every error."""
        try:
            yield
        except DrawstringError as error:
            raise error.at(table=self.uri) from error.__cause__
        except UnicodeEncodeError as error:
            raise no_text(error).at(table=self.uri) from error

    def _each(self, items: Iterator[_T]) -> Iterator[_T]:
        """Yield items and add the table to the errors of the iteration."""
        with self._errors():
            yield from items
