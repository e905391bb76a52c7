"""Run the table services that are due, after a commit or in a process that maintains tables.

`TASKS` is the registry of table services; a new table service is registered there. A task does the work
that is due and returns its result. A failing task does not stop the others, and it does not undo the
commit.

`service_options` checks the options of a service that a user calls against the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.keys.concurrency import FailedWritesPolicy
from drawstring.config.keys.services import Trigger
from drawstring.config.options.write_options import WriteOptions, check_against, check_call
from drawstring.config.table_config import TableConfig
from drawstring.model.instant import PLANNED_ACTIONS, Action
from drawstring.model.plans import CleanPolicy
from drawstring.model.result import ArchiveResult, CleanResult, CommitResult
from drawstring.services import clustering, compaction
from drawstring.services.archive import archive, archive_recovered
from drawstring.services.catalogs.sync import sync
from drawstring.services.clean import clean, clean_after_commit, cutoff_of
from drawstring.services.clustering import cluster_after_commit, commits_since_clustering
from drawstring.services.compaction import compact_after_commit, is_due, is_to_be_planned
from drawstring.services.partition_ttl import expire_partitions
from drawstring.services.progress import Progress
from drawstring.services.small_files import merge_small_files
from drawstring.services.upgrade import is_wrong_direction
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import instant_time
from drawstring.txn.heartbeat import alive_elsewhere
from drawstring.txn.locks.service_lease import is_leased, runner_of
from drawstring.txn.table_context import TableContext
from drawstring.write.write_outcome import WriteOutcome

Result: TypeAlias = CommitResult | CleanResult | ArchiveResult
_log: Final = logging.getLogger("drawstring")


def clean_is_due(written: WriteOutcome) -> bool:
    """Tell whether a clean could find anything (`hoodie.clean.automatic`)."""
    cleaning, timeline = written.options.cleaning, written.timeline
    if not cleaning.automatic:
        return False
    if cleaning.policy == CleanPolicy.VERSIONS or timeline.pending_of(Action.CLEAN):
        return True
    if _has_expired_writes(written):
        return True  # cleaning rolls back what dead writers left
    writes = timeline.writes()
    if cleaning.policy == CleanPolicy.COMMITS:
        return len(writes) > cleaning.commits_retained
    cutoff = cutoff_of(cleaning, written.context.clock, written.config)
    return bool(writes) and writes[0].requested < cutoff


def _has_expired_writes(written: WriteOutcome) -> bool:
    """Tell whether a pending write may have lost its heartbeat; beside live writers a young one has not."""
    failed, pending = written.options.failed_writes, written.timeline.pending_writes()
    if failed.policy != FailedWritesPolicy.LAZY:
        return False
    if failed.expires_clusterings and written.timeline.pending_of(Action.CLUSTERING):
        return True
    if not failed.spares_writers:
        return bool(pending)
    expired = instant_time(written.context.clock.now_ms() - failed.alive_ms, written.config.timezone)
    return any(each.requested < expired for each in pending)


def archive_is_due(written: WriteOutcome) -> bool:
    """Tell whether the active timeline is longer than it may be (`hoodie.archive.automatic`)."""
    archiving = written.options.archiving
    return archiving.automatic and len(written.timeline.writes()) > archiving.commits_max


def log_compaction_is_due(written: WriteOutcome) -> bool:
    """Tell whether slices with many log blocks are looked for (`hoodie.log.compaction.inline`)."""
    return written.config.is_merge_on_read and written.options.compaction.log_inline


def compaction_is_due(written: WriteOutcome) -> bool:
    """Tell whether a compaction is to be planned, or pending ones are to be run."""
    requested = written.options.compaction
    if not (requested.inline or requested.background or requested.schedule_inline):
        return False
    if not written.config.is_merge_on_read:
        return False
    if requested.inline and not requested.by_default:
        return True  # pending compactions are run in any case
    # A write of base files only, one of very many perhaps, need not look through the table for log files.
    if requested.by_default and all(stat.log_version is None for stat in written.stats):
        return False
    if requested.trigger is Trigger.COMMITS and len(written.timeline.writes()) < requested.commits:
        return False
    now = instant_time(written.context.clock.now_ms(), written.config.timezone)
    # Where the write compacts, a plan that waits is run as well.
    trigger = is_due if requested.inline else is_to_be_planned
    return trigger(written.timeline, requested, now)


def clustering_is_due(written: WriteOutcome) -> bool:
    """Tell whether the commits since the last clustering are counted: the options ask for clustering."""
    requested = written.options.clustering
    return requested.inline or requested.background or requested.schedule_inline


def merge_of_small_files_is_due(written: WriteOutcome) -> bool:
    """Tell whether an append looks for small files; a clustering that the options ask for merges them too."""
    return (
        written.merges_files and written.options.appending.merges_appended and not clustering_is_due(written)
    )


def expiry_is_due(written: WriteOutcome) -> bool:
    """Tell whether partitions expire after writes (`hoodie.partition.ttl.inline`)."""
    return _expires(written.options)


def _expires(options: WriteOptions) -> bool:
    """Return whether writes drop partitions by age; as in Hudi, not with an age of 0 days."""
    return options.ttl.inline and options.ttl.days > 0


def sync_is_due(written: WriteOutcome) -> bool:
    """Tell whether catalogs are told about the commit (`hoodie.datasource.hive_sync.enable`)."""
    return written.options.sync.hive_enabled or written.options.sync.meta_enabled


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a table service works with: the table, and the options of the call.

    Attributes:
        context: the open table.
        config: the table's settings.
        options: Hudi's options of table services.
        progress: called with the progress of the running service.
    """

    context: TableContext
    config: TableConfig
    options: WriteOptions
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The outcome of a task that had something to do, or a plan that is left to the process that runs it.

    Attributes:
        task: name of the task; of a plan that is left, its action.
        result: result of the task; None if it failed, and of a plan that is left.
        error: the exception if it failed.
        instant: requested time of a plan that is left.
        left_to: the process that runs that plan, as text for people.
    """

    task: str
    result: Result | None = None
    error: Exception | None = None
    instant: str | None = None
    left_to: str | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceTask:
    """One table service.

    Attributes:
        name: of the service, for messages.
        is_due: tells whether a commit gives rise to it, from the timeline in hand; no file is read.
        after_commit: runs what is due then.
        retry: completes the message about a failure: when the work is retried, or what the user can do.
        run: runs what is due and what is planned, and returns the result. None for a task that runs only
            after commits.
        deletes: whether the task deletes files: then `run` comes after the tasks that write files.
    """

    name: str
    is_due: Callable[[WriteOutcome], bool]
    after_commit: Callable[[WriteOutcome], object]
    retry: str
    run: Callable[[ServiceContext], Result | None] | None = None
    deletes: bool = False


def after_commit(written: WriteOutcome) -> CommitResult:
    """Run the table services that are due after a commit; their failures do not undo the commit.

    Each task takes the table lock itself, for as long as it needs it.

    Args:
        written: the result of a write.

    Returns:
        The commit result of the write.
    """
    if written.result.instant:
        enabled = written.options.services_enabled
        _run_due(written, TASKS if enabled else [each for each in TASKS if each.is_due is sync_is_due])
    return written.result


def _run_due(written: WriteOutcome, tasks: Iterable[MaintenanceTask]) -> None:
    """Run the tasks among some that a commit gives rise to; a failing task does not stop the others."""
    for task in tasks:
        with _logged_failures(task.name, task.retry):
            if task.is_due(written):
                task.after_commit(written)


@contextmanager
def _logged_failures(what: str, then: str) -> Iterator[None]:
    """Turn whatever goes wrong after a commit into a line in the log.

    Nothing is raised: the caller of the write would take it for one that failed, and write once more.

    Args:
        what: name of the table service that the block runs.
        then: a sentence: when it runs again, or what to do.
    """
    try:
        yield
    except (DrawstringError, OSError) as error:
        _log.warning("The write is committed, but the %s after it failed: %s %s", what, error, then)
    except Exception:  # an engine's, a merger's: whatever it was, the write is committed
        _log.exception("The write is committed, but the %s after it failed unexpectedly. %s", what, then)


def run_tasks(
    context: TableContext, options: WriteOptions, progress: Callable[[str], Progress] | None = None
) -> Iterator[TaskOutcome]:
    """Run the table services that are due on a table, and pending plans.

    Args:
        context: the open table.
        options: Hudi's options of table services.
        progress: returns the progress callback of a task, given its name.

    Yields:
        The outcome of each task that did something or failed, and then of each plan that another process
        runs.

    Raises:
        InvalidError: there is no table.
        CorruptTableError: the table properties are damaged.
    """
    config = load_config(context.storage)
    for task in sorted(TASKS, key=lambda each: each.deletes):
        if task.run is None:
            continue
        try:
            result = task.run(
                ServiceContext(context, config, options, progress(task.name) if progress else None)
            )
        except (DrawstringError, OSError) as error:
            yield TaskOutcome(task.name, error=error)
        except Exception as error:  # any failure: other tasks and tables must not wait for it
            uri = context.storage.spec.uri
            _log.exception("The %s of %s failed unexpectedly.", task.name, uri)
            yield TaskOutcome(task.name, error=error)
        else:
            if result is not None:
                yield TaskOutcome(task.name, result)
    with suppress(DrawstringError, OSError):  # the tasks have told of what is wrong with the table
        yield from _plans_of_others(context, config, options)


def _plans_of_others(
    context: TableContext, config: TableConfig, options: WriteOptions
) -> Iterator[TaskOutcome]:
    """Yield the plans that other processes run."""
    storage, clock, ids = context.storage, context.clock, context.ids
    pending = TimelineStore(storage, config, clock).load().pending_of(*PLANNED_ACTIONS)
    alive = alive_elsewhere(storage, clock, pending, options.failed_writes)
    for each in pending:
        if is_leased(storage, clock, ids, each.requested):
            who = runner_of(storage, clock, ids, each.requested)
            yield TaskOutcome(str(each.action), instant=each.requested, left_to=who)
        elif each in alive:
            yield TaskOutcome(str(each.action), instant=each.requested, left_to="another engine")


def _clean(service: ServiceContext) -> Result | None:
    return clean(service.context, service.options) if service.options.cleaning.automatic else None


def _archive(service: ServiceContext) -> Result | None:
    return archive(service.context, service.options) if service.options.archiving.automatic else None


def _compact_logs(service: ServiceContext) -> Result | None:
    """Run pending log compactions; with `hoodie.log.compaction.inline` also plan and run what is due."""
    if not service.config.is_merge_on_read:
        return None
    if service.options.compaction.log_inline:
        return compaction.log_compact(service.context, service.options, service.progress)
    return compaction.run_pending(
        service.context, service.options, service.progress, (Action.LOG_COMPACTION,)
    )


def _compact(service: ServiceContext) -> Result | None:
    """Run pending compactions, then plan and run one that is due by the triggers."""
    if not service.config.is_merge_on_read:
        return None
    context, options, progress = service.context, service.options, service.progress
    result = compaction.run_pending(context, options, progress, (Action.COMPACTION,))
    scheduled = compaction.schedule_compaction(context, options, when_due=True)
    if scheduled is None:
        return result
    return compaction.run_compaction(context, scheduled, options, progress, is_own=True)


def _cluster(service: ServiceContext) -> Result | None:
    """Run pending clusterings; with `hoodie.clustering.inline` also plan and run one that is due."""
    context, options, progress = service.context, service.options, service.progress
    result = clustering.run_pending(context, options, progress)
    clustering_options = options.clustering
    store = TimelineStore(context.storage, service.config, context.clock)
    if not clustering_options.inline or commits_since_clustering(store) < clustering_options.inline_commits:
        return result
    scheduled = clustering.schedule_clustering(context, options)
    if scheduled is None:
        return result
    return clustering.run_clustering(context, scheduled, options, progress, is_own=True) or result


def _expire(service: ServiceContext) -> Result | None:
    """Drop the expired partitions, with `hoodie.partition.ttl.inline`."""
    dropped = expire_partitions(service.context, service.options) if _expires(service.options) else None
    return dropped.result if dropped else None


def _expire_after_commit(written: WriteOutcome) -> None:
    dropped = expire_partitions(written.context, written.options, waits=False)
    if dropped is not None:
        _run_due(dropped, (task for task in TASKS if task.deletes))


def _archive_after_commit(written: WriteOutcome) -> None:
    archive_recovered(written.context, written.options)


def _sync_after_commit(written: WriteOutcome) -> None:
    sync(written.context, written.options.sync)


def _compact_logs_after_commit(written: WriteOutcome) -> None:
    compaction.log_compact(written.context, written.options)


_NEXT_TRIES_AGAIN: Final = "The next write tries again."
_RUN_AGAIN: Final = "Run it again."

TASKS: Final[tuple[MaintenanceTask, ...]] = (
    MaintenanceTask("clean", clean_is_due, clean_after_commit, _NEXT_TRIES_AGAIN, _clean, deletes=True),
    MaintenanceTask(
        "archive", archive_is_due, _archive_after_commit, _NEXT_TRIES_AGAIN, _archive, deletes=True
    ),
    MaintenanceTask(
        "log compaction", log_compaction_is_due, _compact_logs_after_commit, _RUN_AGAIN, _compact_logs
    ),
    MaintenanceTask("compaction", compaction_is_due, compact_after_commit, _RUN_AGAIN, _compact),
    MaintenanceTask("clustering", clustering_is_due, cluster_after_commit, _RUN_AGAIN, _cluster),
    MaintenanceTask(
        "merge of small files", merge_of_small_files_is_due, merge_small_files, "A later append tries again."
    ),
    MaintenanceTask("expiry", expiry_is_due, _expire_after_commit, _NEXT_TRIES_AGAIN, _expire),
    MaintenanceTask("sync of catalogs", sync_is_due, _sync_after_commit, _NEXT_TRIES_AGAIN),
)
"""In the order in which they run after a commit, as in Hudi: cleaning and archiving come first."""


def service_options(config: TableConfig, given: Mapping[str, Any]) -> WriteOptions:
    """Return the options of a service.

    Args:
        config: of the table.
        given: options by Hudi's keys. What they say of the table has to be what the table says itself, as
            for a write.

    Raises:
        InvalidError: they say otherwise, or make no sense.
    """
    check_call(given)
    options = WriteOptions.parse(given)
    check_against(options, config)
    return options


def check_direction(config: TableConfig, version: int, *, lower: bool) -> None:
    """Refuse to upgrade a table to a lower version, or to downgrade it to a higher one.

    Args:
        config: of the table.
        version: the table version that was asked for.
        lower: whether the call is `downgrade`.

    Raises:
        InvalidError: the other call leads there.
    """
    current = config.version
    if is_wrong_direction(current, version, lower=lower):
        verb, other = ("downgrade", "upgrade") if lower else ("upgrade", "downgrade")
        raise InvalidError(
            f"The table has version {current}, so {verb} does not lead to {version}. Use {other}."
        )
