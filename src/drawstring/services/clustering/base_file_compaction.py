"""Base-file compaction: the small base files of a partition become files of the size aimed at.

It is a clustering that sorts nothing: planned by size alone, across file groups without log files, and run by
copying row groups (`stitch_group`) where files are alike. On the timeline it is a replacecommit like any
clustering, so every reader of the table, and every writer, knows what it does.
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
from drawstring.services.clustering.run import cluster_at_once, run_clustering, schedule_clustering
from drawstring.services.progress import Progress
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext


def schedule_base_file_compaction(state: TableContext, options: WriteOptions) -> str | None:
    """Put the plan of a base-file compaction on the timeline, to be run by anybody.

    Args:
        state: the table.
        options: which files are small, and how large new ones are to be; lock wait.

    Returns:
        Its requested time, or None when there is nothing to do.

    Raises:
        ConflictError: another writer holds the table.
        UnsupportedError: a bucket index has the key say which file group a record is in.
    """
    return schedule_clustering(state, _by_size(options))


def compact_base_files(
    state: TableContext, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Schedule a base-file compaction and run it; see `schedule_base_file_compaction`.

    Args:
        state: the table.
        options: which files are small, and how large new ones are to be; lock wait.
        progress: told of every new file that is done.

    Returns:
        What was done, or None when there was nothing to do.
    """
    return cluster_at_once(state, _by_size(options), progress)


def _by_size(options: WriteOptions) -> WriteOptions:
    return replace(options, clustering=replace(options.clustering, plan_strategy=BASE_FILES, cluster_by=()))


def run_base_file_compaction(
    state: TableContext, requested: str, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Run a base-file compaction that stands on the timeline, and nothing else.

    Args:
        state: the table.
        requested: its requested time.
        options: of writes: codec, sizes, lock wait.
        progress: told of every new file that is done.

    Returns:
        What was done; None when it is completed already, or its file groups were written to since.

    Raises:
        ConflictError: another process runs it, or another writer holds the table.
        InvalidError: there is no base-file compaction of this time.
        CorruptTableError: its plan contradicts itself.
    """
    _check_plan(state, requested)
    return run_clustering(state, requested, options, progress)


def _check_plan(state: TableContext, requested: str) -> None:
    store = TimelineStore(state.storage, load_config(state.storage), state.clock)
    instant = store.load().find(requested)
    if instant is None or instant.action.completed_action is not Action.REPLACE_COMMIT:
        raise _no_base_file_compaction(requested)
    if base_files_of(decode_clustering_plan(store.read_requested(instant))) is None:
        raise _no_base_file_compaction(requested)


def _no_base_file_compaction(requested: str) -> InvalidError:
    return InvalidError("there is no base-file compaction of this time on the timeline", instant=requested)
