"""Table services of an open table: `table.services`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from drawstring.base.lazy import lazy_import
from drawstring.table_api.calls import Columns, Options, TableGroup
from drawstring.txn.table_context import TableContext

if TYPE_CHECKING:
    import pyarrow as pa

    from drawstring.config.options.write_options import WriteOptions, check_call
    from drawstring.model.instant import Instant
    from drawstring.model.plans import CleanPlan
    from drawstring.model.result import (
        ArchiveResult,
        CleanResult,
        CommitResult,
        Finding,
        PlannedRollback,
        RollbackResult,
        Validation,
    )
    from drawstring.services import (
        archive,
        clean,
        clustering,
        compaction,
        kept_files,
        rollback,
        small_files,
        validate,
    )
    from drawstring.services import partition_ttl as expire
    from drawstring.services.background import wait_for_background
    from drawstring.services.bucket_rescaling import rescale_buckets
    from drawstring.services.lock_report import clean_lock_audit
    from drawstring.services.progress import Progress
    from drawstring.services.table_services import TaskOutcome, after_commit, run_tasks
    from drawstring.services.validation import repair
    from drawstring.txn.locks import storage_lock as leases

    _Watch: TypeAlias = Progress | None
    _AtOnce: TypeAlias = Callable[[TableContext, WriteOptions, _Watch], CommitResult | None]
    _Planned: TypeAlias = Callable[[TableContext, str, WriteOptions, _Watch], CommitResult | None]
else:
    lazy_import(
        globals(),
        after_commit="drawstring.services.table_services:after_commit",
        wait_for_background="drawstring.services.background:wait_for_background",
        small_files="drawstring.services.small_files",
        CleanResult="drawstring.model.result:CleanResult",
        clean="drawstring.services.clean",
        kept_files="drawstring.services.kept_files",
        check_call="drawstring.config.options.write_options:check_call",
        validate="drawstring.services.validate",
        compaction="drawstring.services.compaction",
        repair="drawstring.services.validation.repair",
        run_tasks="drawstring.services.table_services:run_tasks",
        leases="drawstring.txn.locks.storage_lock",
        WriteOptions="drawstring.config.options.write_options:WriteOptions",
        clean_lock_audit="drawstring.services.lock_report:clean_lock_audit",
        rescale_buckets="drawstring.services.bucket_rescaling:rescale_buckets",
        ArchiveResult="drawstring.model.result:ArchiveResult",
        expire="drawstring.services.partition_ttl",
        RollbackResult="drawstring.model.result:RollbackResult",
        archive="drawstring.services.archive",
        rollback="drawstring.services.rollback",
        clustering="drawstring.services.clustering",
        CommitResult="drawstring.model.result:CommitResult",
    )


class TableServices(TableGroup):
    """The table services of a table: compaction, clustering, cleaning, archiving, and repairs."""

    __slots__ = ()

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
            >>> table.services.compact().operation
            'compact'
            >>> bool(table.services.compact())
            False
        """
        with self._calls.errors():
            parsed = self._calls.options("compact", options, strategy=strategy, hybrid=hybrid)
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
            >>> plan = table.services.schedule_compaction()
            >>> table.services.compact(plan).instant == plan
            True
        """
        with self._calls.errors():
            parsed = self._calls.options("compact", options, strategy=strategy, hybrid=hybrid)
            return compaction.schedule_compaction(self._calls.context, parsed)

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
            >>> table.services.log_compact(min_blocks=2).operation
            'log_compact'
        """
        with self._calls.errors():
            parsed = self._calls.options("log_compact", options, min_blocks=min_blocks)
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
            >>> table.services.schedule_log_compaction(min_blocks=2) is None
            True
        """
        with self._calls.errors():
            parsed = self._calls.options("log_compact", options, min_blocks=min_blocks)
            return compaction.schedule_log_compaction(self._calls.context, parsed)

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
            >>> table.services.compact_base_files().files
            1
        """
        with self._calls.errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            parsed = self._calls.options("compact_base_files", options, **sizes)
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
            >>> table.services.schedule_base_file_compaction(small_file_bytes=1 << 20) is None
            True
        """
        with self._calls.errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            parsed = self._calls.options("compact_base_files", options, **sizes)
            return small_files.schedule_base_file_compaction(self._calls.context, parsed)

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
            >>> result = table.services.cluster(sort_by=["fare"], layout="LINEAR")
            >>> result.operation, result.records_written
            ('cluster', 3)
        """
        with self._calls.errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            keywords = {"sort_by": sort_by, "layout": layout, "partitions": partitions, **sizes}
            parsed = self._calls.options("cluster", options, **keywords)
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
            >>> plan = table.services.schedule_clustering(sort_by="fare", partitions=["lima"])
            >>> table.services.cluster(plan).records_written
            2
        """
        with self._calls.errors():
            sizes = {"small_file_bytes": small_file_bytes, "target_file_bytes": target_file_bytes}
            keywords = {"sort_by": sort_by, "layout": layout, "partitions": partitions, **sizes}
            return clustering.schedule_clustering(
                self._calls.context, self._calls.options("cluster", options, **keywords)
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
            >>> hashed.services.rescale_buckets(2, ["lima"]).files
            2
        """
        with self._calls.errors():
            named = [partitions] if isinstance(partitions, str) else partitions
            return rescale_buckets(
                self._calls.context, buckets, named, self._calls.options("rescale_buckets", options)
            )

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
            ...     result = table.services.compact()
            >>> table.services.clean(retain_commits=1).files
            2
        """
        with self._calls.errors():
            parsed = self._clean_options(retain_commits, retain_versions, retain_hours, options)
            return clean.clean(self._calls.context, parsed) or CleanResult()

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
            >>> table.services.plan_clean(retain_versions=1) is None
            True
        """
        with self._calls.errors():
            parsed = self._clean_options(retain_commits, retain_versions, retain_hours, options)
            return clean.plan_clean(self._calls.context, parsed)

    def kept_files(
        self,
        *,
        retain_commits: int | None = None,
        retain_versions: int | None = None,
        retain_hours: int | None = None,
        options: Options = None,
    ) -> pa.Table:
        """Return the files that `clean` would leave now, and why, without changing the table.

        Args:
            retain_commits: newest commits whose files stay (`hoodie.clean.commits.retained`). 10 by default.
            retain_versions: newest versions of each file group that stay, instead
                (`hoodie.clean.fileversions.retained`).
            retain_hours: hours for which files stay, instead (`hoodie.clean.hours.retained`).
            options: further options by Hudi's keys.

        Returns:
            A row for each file and reason, with the columns `partition`, `file`, `size_bytes`, `reason`,
            `instant` and `name`. The reasons: `latest version`; `policy` (instant: the earliest one
            retained); `pending instant` (name: its action); `hold` (instant: the first write that the reader
            needs; name: of the hold); `savepoint` (instant: its write); `commit limit`; `partition filter`;
            `not checked`.

        Raises:
            InvalidError: more than one bound is given, or an option makes no sense.

        Example:
            >>> set(table.services.kept_files(retain_versions=1)["reason"].to_pylist())
            {'latest version'}
        """
        with self._calls.errors():
            parsed = self._clean_options(retain_commits, retain_versions, retain_hours, options)
            return kept_files.kept_files(self._calls.context, parsed)

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
            >>> bool(table.services.expire_partitions(retain_days=30))
            False
        """
        with self._calls.errors():
            keywords = {"retain_days": retain_days, "partitions": partitions}
            parsed = self._calls.options("expire_partitions", options, **keywords)
            dropped = expire.expire_partitions(self._calls.context, parsed)
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
            >>> table.services.plan_expiry(retain_days=30)
            []
        """
        with self._calls.errors():
            keywords = {"retain_days": retain_days, "partitions": partitions}
            return expire.planned_expiry(
                self._calls.context, self._calls.options("expire_partitions", options, **keywords)
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
            >>> table.services.archive(min_commits=5, max_commits=6).instants
            0
        """
        with self._calls.errors():
            parsed = self._calls.options("archive", options, min_commits=min_commits, max_commits=max_commits)
            return archive.archive(self._calls.context, parsed) or ArchiveResult()

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
            >>> table.services.plan_archive(min_commits=5, max_commits=6)
            []
        """
        with self._calls.errors():
            parsed = self._calls.options("archive", options, min_commits=min_commits, max_commits=max_commits)
            return list(archive.planned_instants(self._calls.context, parsed))

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
            >>> table.services.validate().is_sound
            True
        """
        with self._calls.errors():
            return validate.validate(
                self._calls.context, contents=not quick, global_keys=global_keys, progress=progress
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
            >>> table.services.repair(only=["orphan", "temporary"], apply=True)
            ()
        """
        with self._calls.errors():
            given = self._calls.given("repair", options)
            check_call(given)
            names = (only,) if isinstance(only, str) else tuple(only or ())
            parsed, remedies = WriteOptions.parse(given), repair.remedies_of(names)
            return repair.repair(self._calls.context, parsed, apply=apply, remedies=remedies)

    def rollback(self, instant: str | None = None, *, options: Options = None) -> RollbackResult:
        """Roll back one pending instant and delete its files; committed rows stay.

        Use it for a failed write, or for an unneeded plan of a compaction, log compaction or clustering. To
        undo completed instants, use `table.savepoints.restore`.

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
            >>> plan = table.services.schedule_clustering()
            >>> table.services.rollback(plan).action
            'clustering'
            >>> bool(table.services.rollback())
            False
        """
        with self._calls.errors():
            parsed = self._calls.options("rollback", options)
            return rollback.roll_back(self._calls.context, parsed, instant) or RollbackResult()

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
            >>> table.services.plan_rollback() is None
            True
        """
        with self._calls.errors():
            parsed = self._calls.options("plan_rollback", options)
            return rollback.planned_rollback(self._calls.context, parsed, instant)

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
            >>> table.services.record_leases(True)
            >>> table.inspect.lease_audit().enabled
            True
        """
        with self._calls.errors():
            leases.switch_audit(self._calls.context.storage, on)

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
            >>> table.services.clean_lease_audit(age_days=30)
            ()
        """
        with self._calls.errors():
            return clean_lock_audit(
                self._calls.context.storage, self._calls.context.clock, age_days=age_days, apply=apply
            )

    def run(
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
            >>> [done.task for done in table.services.run(options=given)]
            ['compaction']
        """
        with self._calls.errors():
            parsed = self._calls.options("run_services", options)
        return self._calls.each(run_tasks(self._calls.context, parsed, progress))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the services that run in threads of this process.

        `hoodie.datasource.compaction.async.enable` and `hoodie.clustering.async.enabled` start them.

        Args:
            timeout: seconds to wait at most; None for no bound.

        Returns:
            Whether nothing runs any more.

        Example:
            >>> table.services.wait(timeout=60)
            True
        """
        return wait_for_background(self._calls.uri, timeout)

    def _clean_options(
        self, commits: int | None, versions: int | None, hours: int | None, options: Options
    ) -> WriteOptions:
        bounds = {"retain_versions": versions, "retain_hours": hours}
        return self._calls.options("clean", options, retain_commits=commits, **bounds)

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
            done = at_once(self._calls.context, parsed, progress)
        else:
            done = planned(self._calls.context, instant, parsed, progress)
        return done or CommitResult.nothing(operation)
