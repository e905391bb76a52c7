"""Base-file compaction: merges the small base files of a partition into files of the target size.

It is a clustering without sorting: planned by size alone, over file groups without log files, and run by
copying row groups (`row_group_copy`) where schemas agree. On the timeline it is a replacecommit like any
clustering, so that every reader and writer of the table understands it.
"""

from __future__ import annotations

from dataclasses import replace

from drawstring.base.errors import InvalidError
from drawstring.config.keys.clustering import BASE_FILES
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.base_file_compaction import base_files_of
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult
from drawstring.services.clustering.run import (
    again_if_lost,
    cluster_at_once,
    run_clustering,
    schedule_clustering,
)
from drawstring.services.progress import Progress
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext


def schedule_base_file_compaction(context: TableContext, options: WriteOptions) -> str | None:
    """Put a base-file compaction plan on the timeline, which any process may run.

    Args:
        context: the open table.
        options: the size of small files and of new ones; lock wait.

    Returns:
        The requested time, None if there is nothing to do.

    Raises:
        ConflictError: another writer holds the table.
        UnsupportedError: the table has a bucket index, by which the key determines the file group.
    """
    return schedule_clustering(context, _by_size(options))


def compact_base_files(
    context: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Schedule a base-file compaction and run it; see `schedule_base_file_compaction`.

    Args:
        context: the open table.
        options: the size of small files and of new ones; lock wait.
        progress: called after each new file.

    Returns:
        The result, None if there was nothing to do.
    """
    return again_if_lost(options, lambda: cluster_at_once(context, _by_size(options), progress))


def _by_size(options: WriteOptions) -> WriteOptions:
    return replace(options, clustering=replace(options.clustering, plan_strategy=BASE_FILES, cluster_by=()))


def run_base_file_compaction(
    context: TableContext, requested: str, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run a pending base-file compaction, and no other clustering.

    Args:
        context: the open table.
        requested: requested time of the plan.
        options: of writes: codec, sizes, lock wait.
        progress: called after each new file.

    Returns:
        The result; None if it is already completed, or its file groups were written to since.

    Raises:
        ConflictError: another process runs it, or another writer holds the table.
        InvalidError: there is no base-file compaction with this time.
        CorruptTableError: the plan contradicts itself.
    """
    _check_plan(context, requested)
    return run_clustering(context, requested, options, progress)


def _check_plan(context: TableContext, requested: str) -> None:
    store = TimelineStore(context.storage, load_config(context.storage), context.clock)
    instant = store.load().find(requested)
    if instant is None or instant.action.completed_action is not Action.REPLACE_COMMIT:
        raise _no_base_file_compaction(requested)
    if base_files_of(decode_clustering_plan(store.read_requested(instant))) is None:
        raise _no_base_file_compaction(requested)


def _no_base_file_compaction(requested: str) -> InvalidError:
    return InvalidError(
        "There is no base-file compaction with this time on the timeline. Choose a pending one.",
        instant=requested,
    )
