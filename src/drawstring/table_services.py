"""What an open table does to stay fast and bounded: the services that its owner may call by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions, check_against, check_call
from drawstring.config.table.version_changes import leads_elsewhere
from drawstring.model.clean import CleanPlan
from drawstring.model.instant import Instant
from drawstring.model.result import (
    ArchiveResult,
    CleanResult,
    CommitResult,
    PlannedRollback,
    RestoreResult,
    RollbackResult,
    VersionPlan,
    VersionResult,
)
from drawstring.model.savepoint import RestorePlan
from drawstring.model.table_version import NEWEST_VERSION
from drawstring.model.validation import Finding, Validation
from drawstring.query.table_queries import TableQueries
from drawstring.services.archiving.run import archive, planned_instants
from drawstring.services.background import wait_for_background
from drawstring.services.cleaning.run import clean, plan_clean
from drawstring.services.clustering.base_file_compaction import (
    compact_base_files,
    run_base_file_compaction,
    schedule_base_file_compaction,
)
from drawstring.services.maintenance_tasks import TaskOutcome, after_commit, run_tasks
from drawstring.services.manual_rollback import planned_rollback, roll_back
from drawstring.services.partition_ttl import expire_partitions, planned_expiry
from drawstring.services.progress import Progress
from drawstring.services.savepoints.savepoint import delete_savepoint, planned_restore, restore, savepoint
from drawstring.services.validation.repair import remedies_of, repair
from drawstring.services.validation.run import validate
from drawstring.services.versions.run import change_version, planned_version


class TableServices(TableQueries):
    """The services of a table that writes run by themselves, for calling by hand."""

    def compact_base_files(
        self, progress: Progress | None = None, *, instant: str | None = None, **options: Any
    ) -> CommitResult | None:
        """Put small base files of a partition together into files of the size aimed at.

        Their rows are copied as they are, without decoding them where files are alike: for tables that many
        small batches were appended to.

        Args:
            progress: told how many new files are done, and of how many.
            instant: run the base-file compaction that was scheduled under this time, and nothing else; by
                default one is planned and run.
            **options: Hudi's write options: `hoodie.parquet.small.file.limit` says which files are small,
                `hoodie.parquet.max.file.size` how large new ones are to be.

        Returns:
            What was done, None when there was nothing to do, or its file groups were written to since.

        Raises:
            ConflictError: another writer holds the table, or wrote to a file group meanwhile.
            InvalidError: there is no such base-file compaction.
            UnsupportedError: the table has an index whose file groups cannot be brought together.
        """
        with self._about():
            parsed = self._told(options)
            if instant is None:
                return compact_base_files(self._state, parsed, progress)
            return run_base_file_compaction(self._state, instant, parsed, progress)

    def schedule_base_file_compaction(self, **options: Any) -> str | None:
        """Plan to put small base files together, for `compact_base_files` or `cluster` to run.

        Args:
            **options: as in `compact_base_files`.

        Returns:
            Its instant, None when there is nothing to do.

        Raises:
            ConflictError: another writer holds the table.
            UnsupportedError: the table has an index whose file groups cannot be brought together.
        """
        with self._about():
            return schedule_base_file_compaction(self._state, self._told(options))

    def wait_for_services(self, timeout: float | None = None) -> bool:
        """Wait for what `hoodie.datasource.compaction.async.enable` and its like have running here.

        Args:
            timeout: seconds to wait at most, None for no bound.

        Returns:
            Whether nothing runs any more.
        """
        return wait_for_background(self._state.storage.spec.uri, timeout)

    def clean(self, **options: Any) -> CleanResult | None:
        """Delete versions of files that no reader of the retained time needs.

        Every write does this by default, see `hoodie.clean.automatic`.

        Args:
            **options: Hudi's options, as in `**{"hoodie.clean.commits.retained": 3}`.

        Returns:
            What was deleted, None for nothing.

        Raises:
            ConflictError: another writer holds the table.
        """
        with self._about():
            return clean(self._state, self._told(options))

    def plan_clean(self, **options: Any) -> CleanPlan | None:
        """Return what `clean` would delete now, None for nothing; the table stays as it is."""
        with self._about():
            return plan_clean(self._state, self._told(options))

    def expire_partitions(self, **options: Any) -> CommitResult | None:
        """Drop the partitions whose time is over, at once and as one commit.

        Args:
            **options: Hudi's options; `hoodie.partition.ttl.strategy.days.retain` says how many days it is.

        Returns:
            The commit, None when the time of none was over.

        Raises:
            InvalidError: nothing says how long they live.
            ConflictError: another writer holds the table.
        """
        with self._about():
            dropped = expire_partitions(self._state, self._told(options))
            return after_commit(dropped) if dropped else None

    def plan_expiry(self, **options: Any) -> list[str]:
        """Return the partitions that `expire_partitions` would drop now; the table stays as it is."""
        with self._about():
            return planned_expiry(self._state, self._told(options))

    def archive(self, **options: Any) -> ArchiveResult | None:
        """Move old instants from the active timeline into the archived one.

        Every write does this by default, see `hoodie.archive.automatic`.

        Args:
            **options: Hudi's options, as in `**{"hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 6}`.

        Returns:
            What was moved, None for nothing.

        Raises:
            ConflictError: another writer holds the table.
        """
        with self._about():
            return archive(self._state, self._told(options))

    def plan_archive(self, **options: Any) -> list[Instant]:
        """Return the instants that `archive` would move now, oldest first; the table stays as it is."""
        with self._about():
            return planned_instants(self._state, self._told(options))

    def run_services(
        self, progress: Callable[[str], Progress] | None = None, **options: Any
    ) -> Iterator[TaskOutcome]:
        """Do what is due, and run what others planned: compact, cluster, drop old partitions, clean, archive.

        Args:
            progress: returns, for the name of a service, what is told of its progress.
            **options: Hudi's options of services.

        Yields:
            Each service that did something or failed, once it is over.
        """
        with self._about():
            told = self._told(options)
        yield from run_tasks(self._state, told, progress)

    def validate(
        self, *, contents: bool = True, global_keys: bool = False, progress: Progress | None = None
    ) -> Validation:
        """Check the invariants of the table: files and sizes, timeline, orphans, keys, buckets.

        Args:
            contents: whether to read the keys of all records, rather than compare names and sizes alone.
            global_keys: whether a key may be in one partition only, also where the table does not say that
                it has a global index: tables of Apache Hudi do not.
            progress: told how many file groups were read, and of how many.

        Returns:
            What was found, the worst first; damage raises nothing.
        """
        with self._about():
            return validate(self._state, contents=contents, global_keys=global_keys, progress=progress)

    def repair(self, *remedies: str, apply: bool = False, **options: Any) -> tuple[Finding, ...]:
        """Put right what can be without anybody's decision, or say what that is.

        Args:
            *remedies: only these: `orphan`, `partition-metadata`, `properties`, `rollback`, `temporary`.
            apply: whether to do it.
            **options: Hudi's write options.

        Returns:
            The findings that were, or would be, put right.

        Raises:
            ConflictError: another writer holds the table, or shows signs of life.
            InvalidError: there is no such remedy.
        """
        with self._about():
            check_call(options)
            return repair(
                self._state, WriteOptions.parse(options), apply=apply, remedies=remedies_of(remedies)
            )

    def savepoint(self, instant: str | None = None, comments: str = "", **options: Any) -> str:
        """Keep the table as it was after a write, whatever cleaning and archiving do; return its time.

        Args:
            instant: requested time of a completed write, None for the newest.
            comments: why.
            **options: Hudi's write options.

        Raises:
            InvalidError: there is no such write, or files of it were cleaned away.
            ConflictError: another writer holds the table.
        """
        with self._about():
            return savepoint(self._state, self._told(options), instant, comments)

    def delete_savepoint(self, instant: str, **options: Any) -> None:
        """Let cleaning and archiving pass a write again.

        Args:
            instant: requested time of the write.
            **options: Hudi's write options.

        Raises:
            InvalidError: there is no savepoint of that write.
            ConflictError: another writer holds the table.
        """
        with self._about():
            delete_savepoint(self._state, self._told(options), instant)

    def restore(self, instant: str, **options: Any) -> RestoreResult | None:
        """Take the table back to what it was after a write. What came after is undone for good.

        Args:
            instant: requested time of a write with a savepoint, or of one whose files were not cleaned away.
            **options: Hudi's write options.

        Returns:
            What was undone, None for nothing.

        Raises:
            InvalidError: there is no such write, files of it are gone, or a savepoint after it is in the way.
            ConflictError: another writer holds the table.
        """
        with self._about():
            return restore(self._state, self._told(options), instant)

    def plan_restore(self, instant: str) -> RestorePlan:
        """Return what `restore` would undo; the table stays as it is.

        Raises:
            InvalidError: as for `restore`.
        """
        with self._about():
            return planned_restore(self._state, instant)

    def rollback(self, instant: str | None = None, **options: Any) -> RollbackResult | None:
        """Take one pending action off the timeline with all that it wrote; rows that are there stay.

        A write whose writer died is rolled back. The plan of a compaction, log compaction or clustering that
        nobody wants is withdrawn. What is completed is undone by `restore`.

        Args:
            instant: requested time of the pending action, None for the newest write. Plans have to be named.
            **options: Hudi's write options.

        Returns:
            What was rolled back, None when no write is pending.

        Raises:
            InvalidError: there is no such pending action, or it is completed.
            ConflictError: a live process works on it, log files were written on top of a compaction (version
                6), or another writer holds the table.
        """
        with self._about():
            return roll_back(self._state, self._told(options), instant)

    def plan_rollback(self, instant: str | None = None, **options: Any) -> PlannedRollback | None:
        """Return what `rollback` would take back, None for nothing; the table stays as it is.

        Raises as `rollback` would, but for other writers, for which that waits.
        """
        with self._about():
            return planned_rollback(self._state, self._told(options), instant)

    def upgrade(
        self, version: int = NEWEST_VERSION, progress: Progress | None = None, **options: Any
    ) -> VersionResult:
        """Make the table one of a higher version, for writers that know it; rows and their history stay.

        A MERGE_ON_READ table is compacted first. Nobody should write meanwhile; readers may go on. A process
        that dies leaves the table as it was or upgraded: call it again.

        Args:
            version: 8 or 9. The version that the table has clears away what an interrupted change left.
            progress: told how many file groups are compacted, and of how many.
            **options: Hudi's write options.

        Returns:
            Both versions, and what was moved and compacted for it.

        Raises:
            InvalidError: the table has a higher version, or log files wait for a clustering.
            UnsupportedError: there is no such version, or it cannot hold what the table has.
            ConflictError: another writer holds the table, or another process compacts it.
        """
        return self._change_version(version, progress, options, lower=False)

    def downgrade(self, version: int, progress: Progress | None = None, **options: Any) -> VersionResult:
        """Make the table one of a lower version, for older readers and writers; see `upgrade`.

        Args:
            version: 6 or 8.
            progress: told how many file groups are compacted, and of how many.
            **options: Hudi's write options.

        Raises:
            InvalidError: the table has a lower version, or log files wait for a clustering.
            UnsupportedError: there is no such version, or it cannot hold what the table has.
            ConflictError: another writer holds the table, or another process compacts it.
        """
        return self._change_version(version, progress, options, lower=True)

    def plan_version(self, version: int) -> VersionPlan:
        """Return what `upgrade` or `downgrade` would change in the table's properties; it stays as it is.

        Raises:
            UnsupportedError: there is no such version, or it cannot hold what the table has.
        """
        with self._about():
            return planned_version(self._state, version)

    def _change_version(
        self, version: int, progress: Progress | None, options: dict[str, Any], *, lower: bool
    ) -> VersionResult:
        with self._about():
            told = self._told(options)
            current = self.config.version
            if leads_elsewhere(current, version, lower=lower):
                verb, other = ("downgrade", "upgrade") if lower else ("upgrade", "downgrade")
                raise InvalidError(
                    f"the table has version {current}, so {verb} does not lead to {version}: use {other}"
                )
            return change_version(self._state, version, told, progress)

    def _told(self, options: Mapping[str, Any]) -> WriteOptions:
        """Return the options of a service; of the table they say what it says itself, as those of a write do.

        Raises:
            InvalidError: they say otherwise, or make no sense.
        """
        check_call(options)
        told = WriteOptions.parse(options)
        check_against(told, self.config)
        return told
