"""The registry of table services: what runs after a commit, and in a process that maintains tables.

A task does the work that is due and returns its result. A failing task does not stop the others.
A new table service is registered here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from drawstring.base.errors import DrawstringError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.model.instant import Action
from drawstring.model.result import ArchiveResult, CleanResult, CommitResult
from drawstring.services.archiving.run import archive
from drawstring.services.cleaning.run import clean, clean_after_commit
from drawstring.services.clustering import run as clustering
from drawstring.services.clustering.after_commit import cluster_after_commit, commits_since_clustering
from drawstring.services.clustering.append_merge import merge_small_files
from drawstring.services.compaction import run as compaction
from drawstring.services.compaction.after_commit import compact_after_commit
from drawstring.services.partition_ttl import expire_partitions
from drawstring.services.progress import Progress
from drawstring.services.triggers import (
    archive_is_due,
    clean_is_due,
    clustering_is_due,
    compaction_is_due,
    expiry_is_due,
    log_compaction_is_due,
    merge_of_small_files_is_due,
)
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext
from drawstring.write.committed import Committed, commit_stands

Result: TypeAlias = CommitResult | CleanResult | ArchiveResult
_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Maintained:
    """A table whose services run.

    Attributes:
        state: the open table.
        config: the table's settings.
        options: Hudi's options of table services.
        progress: called with the progress of the running service.
    """

    state: TableContext
    config: TableConfig
    options: WriteOptions
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The outcome of a task that had something to do.

    Attributes:
        task: name of the task.
        result: result of the task; None if it failed.
        error: the exception if it failed.
    """

    task: str
    result: Result | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceTask:
    """One table service.

    Attributes:
        name: of the service, for messages.
        is_due: tells whether a commit gives rise to it (`services.triggers`).
        after_commit: runs what is due then.
        retry: completes the message about a failure: when the work is retried, or what the user can do.
        run: runs what is due and what is planned, and returns the result. None for a task that runs only
            after commits.
        deletes: whether the task deletes files: then `run` comes after the tasks that write files.
    """

    name: str
    is_due: Callable[[Committed], bool]
    after_commit: Callable[[Committed], object]
    retry: str
    run: Callable[[Maintained], Result | None] | None = None
    deletes: bool = False


def after_commit(written: Committed) -> CommitResult:
    """Run the table services that are due after a commit; their failures do not undo the commit.

    Each task takes the table lock itself, for as long as it needs it.

    Args:
        written: the result of a write.

    Returns:
        The commit result of the write.
    """
    if written.result.instant:
        for task in TASKS:
            with commit_stands(task.name, task.retry):
                if task.is_due(written):
                    task.after_commit(written)
    return written.result


def run_tasks(
    state: TableContext, options: WriteOptions, progress: Callable[[str], Progress] | None = None
) -> Iterator[TaskOutcome]:
    """Run the table services that are due on a table, and pending plans.

    Args:
        state: the open table.
        options: Hudi's options of table services.
        progress: returns the progress callback of a task, given its name.

    Yields:
        The outcome of each task that did something or failed.

    Raises:
        InvalidError: there is no table.
        CorruptTableError: the table properties are damaged.
    """
    config = load_config(state.storage)
    for task in sorted(TASKS, key=lambda each: each.deletes):
        if task.run is None:
            continue
        try:
            result = task.run(Maintained(state, config, options, progress(task.name) if progress else None))
        except (DrawstringError, OSError) as error:
            yield TaskOutcome(task.name, error=error)
        except Exception as error:  # any failure: other tasks and tables must not wait for it
            uri = state.storage.spec.uri
            _log.exception("The %s of %s failed unexpectedly.", task.name, uri)
            yield TaskOutcome(task.name, error=error)
        else:
            if result is not None:
                yield TaskOutcome(task.name, result)


def _clean(table: Maintained) -> Result | None:
    return clean(table.state, table.options) if table.options.cleaning.automatic else None


def _archive(table: Maintained) -> Result | None:
    return archive(table.state, table.options) if table.options.archiving.automatic else None


def _compact_logs(table: Maintained) -> Result | None:
    """Run pending log compactions; with `hoodie.log.compaction.inline` also plan and run what is due."""
    if not table.config.is_merge_on_read:
        return None
    if table.options.compaction.log_inline:
        return compaction.log_compact(table.state, table.options, table.progress)
    return compaction.run_pending(table.state, table.options, table.progress, (Action.LOG_COMPACTION,))


def _compact(table: Maintained) -> Result | None:
    """Run pending compactions, then plan and run one that is due by the triggers."""
    if not table.config.is_merge_on_read:
        return None
    state, options, progress = table.state, table.options, table.progress
    result = compaction.run_pending(state, options, progress, (Action.COMPACTION,))
    scheduled = compaction.schedule_compaction(state, options, when_due=True)
    if scheduled is None:
        return result
    return compaction.run_compaction(state, scheduled, options, progress, is_own=True)


def _cluster(table: Maintained) -> Result | None:
    """Run pending clusterings; with `hoodie.clustering.inline` also plan and run one that is due."""
    state, options, progress = table.state, table.options, table.progress
    result = clustering.run_pending(state, options, progress)
    clustering_options = options.clustering
    store = TimelineStore(state.storage, table.config, state.clock)
    if not clustering_options.inline or commits_since_clustering(store) < clustering_options.inline_commits:
        return result
    scheduled = clustering.schedule_clustering(state, options)
    if scheduled is None:
        return result
    return clustering.run_clustering(state, scheduled, options, progress, is_own=True) or result


def _expire(table: Maintained) -> Result | None:
    """Drop the expired partitions, with `hoodie.partition.ttl.inline`."""
    dropped = expire_partitions(table.state, table.options) if table.options.ttl.inline else None
    return dropped.result if dropped else None


def _expire_after_commit(written: Committed) -> None:
    dropped = expire_partitions(written.state, written.options)
    if dropped is not None:
        for task in TASKS:
            if task.deletes and task.is_due(dropped):
                task.after_commit(dropped)


def _archive_after_commit(written: Committed) -> None:
    archive(written.state, written.options)


def _compact_logs_after_commit(written: Committed) -> None:
    compaction.log_compact(written.state, written.options)


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
)
"""In the order in which they run after a commit, as in Hudi: cleaning and archiving come first."""
