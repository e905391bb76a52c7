"""Inspection of an open table: `table.inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from drawstring.base.lazy import lazy_import
from drawstring.table_api.calls import Columns, Options, TableGroup

if TYPE_CHECKING:
    from drawstring.metadata.record_tables import shown
    from drawstring.metadata.table import open_metadata_table
    from drawstring.model.files import FileSlice
    from drawstring.model.instant import InstantStatus
    from drawstring.model.result import TableLocks
    from drawstring.query.planner import latest_slices, partition_sizes
    from drawstring.services.lock_report import LockAudit, lock_audit, table_locks
    from drawstring.services.rollback import instant_states
    from drawstring.services.table_report import Report, load_report
else:
    lazy_import(
        globals(),
        latest_slices="drawstring.query.planner:latest_slices",
        partition_sizes="drawstring.query.planner:partition_sizes",
        shown="drawstring.metadata.record_tables:shown",
        instant_states="drawstring.services.rollback:instant_states",
        lock_audit="drawstring.services.lock_report:lock_audit",
        Report="drawstring.services.table_report:Report",
        load_report="drawstring.services.table_report:load_report",
        open_metadata_table="drawstring.metadata.table:open_metadata_table",
        table_locks="drawstring.services.lock_report:table_locks",
    )


class TableInspection(TableGroup):
    """The state of a table: instants, files, metadata table and locks. No call changes the table."""

    __slots__ = ()

    def instants(self, *, last: int | None = None) -> tuple[InstantStatus, ...]:
        """Return the instants of the active timeline, with what is known of them.

        Args:
            last: how many of the newest ones; None for all.

        Returns:
            The instants, oldest first.

        Raises:
            CorruptTableError: a file of the timeline has an invalid name.

        Example:
            >>> [each.is_worked_on for each in table.inspect.instants()]
            [None]
        """
        with self._calls.errors():
            return instant_states(self._calls.context, last)

    def files(self) -> list[FileSlice]:
        """Return the latest file slice of every file group: what a scan reads.

        Returns:
            Slices with their partition, file id, base file and log files, sizes in bytes.

        Raises:
            CorruptTableError: a file of a committed write is missing.

        Example:
            >>> sorted(part.partition for part in table.inspect.files())
            ['lima', 'oslo']
        """
        with self._calls.errors():
            return latest_slices(self._calls.facts())

    def partitions(self) -> pa.Table:
        """Return the partitions that a snapshot reads, with their file groups, files and sizes.

        Returns:
            One row for each partition, sorted by `partition` (its path): `file_groups`, `base_files`,
            `log_files` and `size_bytes`, the size of these files.

        Raises:
            CorruptTableError: a file of a committed write is missing.

        Example:
            >>> table.inspect.partitions().select(["partition", "file_groups"]).to_pylist()
            [{'partition': 'lima', 'file_groups': 1}, {'partition': 'oslo', 'file_groups': 1}]
        """
        with self._calls.errors():
            return partition_sizes(self._calls.facts())

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
            >>> table.inspect.metadata().column("partition").to_pylist()
            ['files']
        """
        with self._calls.errors():
            facts = self._calls.facts()
            opened = open_metadata_table(
                facts.storage, facts.config, facts.timeline, self._calls.context.clock
            )
            names = [keys] if isinstance(keys, str) else keys
            return shown(opened, facts.config.timezone, partition, names)

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
            >>> table.inspect.locks().pending
            ()
        """
        with self._calls.errors():
            return table_locks(self._calls.context, self._calls.options("locks", options))

    def lease_audit(self) -> LockAudit:
        """Return what the record of the leases on the table tells: leases that overlap, or were not released.

        Returns:
            Whether leases are recorded, how many there are, and which of them are conspicuous.

        Raises:
            UnavailableError: the storage does not answer.

        Example:
            >>> table.inspect.lease_audit().overlaps
            ()
        """
        with self._calls.errors():
            return lock_audit(self._calls.context.storage)

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
            >>> facts = table.inspect.report().facts
            >>> len(facts.commits), len(facts.partitions)
            (1, 2)
        """
        with self._calls.errors():
            return Report(load_report(self._calls.context, self._calls.options("report", options)))
