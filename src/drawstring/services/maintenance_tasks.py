"""The registry of table services: what follows a commit, and what a process does that maintains tables.

A task does what is due and says what that was. One that fails, in whatever way, leaves the others to run.
A new service plugs in here.
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
        state: the table.
        config: its settings.
        options: Hudi's options of services.
        progress: told of every piece of work that is done.
    """

    state: TableContext
    config: TableConfig
    options: WriteOptions
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What became of a task that had something to do.

    Attributes:
        task: its name.
        result: what it did; None if it failed.
        error: why it failed.
    """

    task: str
    result: Result | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceTask:
    """One table service.

    Attributes:
        name: of the service, for people.
        is_due: tells whether a commit gives rise to it (`services.triggers`).
        after_commit: does what is due then.
        retry: what becomes of it, or what people can do, where that fails.
        run: does what is due, and runs what is planned; returns what it did. None for a task that only
            commits give rise to.
        deletes: whether it takes files away: then `run` comes after the tasks that write files.
    """

    name: str
    is_due: Callable[[Committed], bool]
    after_commit: Callable[[Committed], object]
    retry: str
    run: Callable[[Maintained], Result | None] | None = None
    deletes: bool = False


def after_commit(written: Committed) -> CommitResult:
    """Do what is due after a commit, which stands whatever becomes of that.

    Each task takes the table lock itself, for as long as it needs it.

    Args:
        written: what a write returned.

    Returns:
        The result of the write.
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
    """Do what is due on a table, and run what is planned there.

    Args:
        state: the table.
        options: Hudi's options of services.
        progress: returns, for the name of a task, what is told of its progress.

    Yields:
        Each task that did something or failed, once it is over.

    Raises:
        InvalidError: there is no table.
        CorruptTableError: its properties are damaged.
    """
    config = load_config(state.storage)
    for task in sorted(TASKS, key=lambda each: each.deletes):
        if task.run is None:
            continue
        try:
            result = task.run(Maintained(state, config, options, progress(task.name) if progress else None))
        except (DrawstringError, OSError) as error:
            yield TaskOutcome(task.name, error=error)
        except Exception as error:  # whatever it was, the other tasks and tables are not to wait for it
            place = state.storage.spec.uri
            _log.exception("the %s of %s failed in a way that nobody expected", task.name, place)
            yield TaskOutcome(task.name, error=error)
        else:
            if result is not None:
                yield TaskOutcome(task.name, result)


def _clean(table: Maintained) -> Result | None:
    return clean(table.state, table.options) if table.options.cleaning.automatic else None


def _archive(table: Maintained) -> Result | None:
    return archive(table.state, table.options) if table.options.archiving.automatic else None


def _compact_logs(table: Maintained) -> Result | None:
    """Run what is planned, and with `hoodie.log.compaction.inline` what has many log blocks."""
    if not table.config.is_merge_on_read:
        return None
    if table.options.compaction.log_inline:
        return compaction.log_compact(table.state, table.options, table.progress)
    return compaction.run_pending(table.state, table.options, table.progress, (Action.LOG_COMPACTION,))


def _compact(table: Maintained) -> Result | None:
    """Run what is planned, and plan and run what is due by the triggers."""
    if not table.config.is_merge_on_read:
        return None
    state, options, progress = table.state, table.options, table.progress
    result = compaction.run_pending(state, options, progress, (Action.COMPACTION,))
    scheduled = compaction.schedule_compaction(state, options, when_due=True)
    if scheduled is None:
        return result
    return compaction.run_compaction(state, scheduled, options, progress, is_own=True)


def _cluster(table: Maintained) -> Result | None:
    """Run what is planned, and with `hoodie.clustering.inline` what is due by commits."""
    state, options, progress = table.state, table.options, table.progress
    result = clustering.run_pending(state, options, progress)
    asked = options.clustering
    store = TimelineStore(state.storage, table.config, state.clock)
    if not asked.inline or commits_since_clustering(store) < asked.inline_commits:
        return result
    scheduled = clustering.schedule_clustering(state, options)
    if scheduled is None:
        return result
    return clustering.run_clustering(state, scheduled, options, progress, is_own=True) or result


def _expire(table: Maintained) -> Result | None:
    """Drop the partitions whose time is over, with `hoodie.partition.ttl.inline`."""
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


_LATER: Final = "The next write tries again."
_AGAIN: Final = "Run it again."

TASKS: Final[tuple[MaintenanceTask, ...]] = (
    MaintenanceTask("clean", clean_is_due, clean_after_commit, _LATER, _clean, deletes=True),
    MaintenanceTask("archive", archive_is_due, _archive_after_commit, _LATER, _archive, deletes=True),
    MaintenanceTask(
        "log compaction", log_compaction_is_due, _compact_logs_after_commit, _AGAIN, _compact_logs
    ),
    MaintenanceTask("compaction", compaction_is_due, compact_after_commit, _AGAIN, _compact),
    MaintenanceTask("clustering", clustering_is_due, cluster_after_commit, _AGAIN, _cluster),
    MaintenanceTask(
        "merge of small files", merge_of_small_files_is_due, merge_small_files, "A later append tries again."
    ),
    MaintenanceTask("expiry", expiry_is_due, _expire_after_commit, _LATER, _expire),
)
"""In the order in which they follow a commit, as in Hudi: cleaning and archiving come first."""
