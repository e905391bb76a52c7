"""Base-file compaction: the small base files of a partition become files of the size aimed at.

It is a clustering that sorts nothing: planned by size alone, across file groups without log files, and run by
copying row groups (`stitch_group`) where files are alike. On the timeline it is a replacecommit like any
clustering, so every reader of the table, and every writer, knows what it does.
"""

from __future__ import annotations

from dataclasses import replace

from drawstring.config.clustering_keys import BASE_FILES
from drawstring.config.options import WriteOptions
from drawstring.model.result import CommitResult
from drawstring.services.clustering import run_clustering, schedule_clustering
from drawstring.services.progress import Progress
from drawstring.txn.state import TableState


def schedule_base_file_compaction(state: TableState, options: WriteOptions) -> str | None:
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
    asked = replace(options.clustering, plan_strategy=BASE_FILES, cluster_by=())
    return schedule_clustering(state, replace(options, clustering=asked))


def compact_base_files(
    state: TableState, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Schedule a base-file compaction and run it; see `schedule_base_file_compaction`.

    Args:
        state: the table.
        options: which files are small, and how large new ones are to be; lock wait.
        progress: told of every new file that is done.

    Returns:
        What was done, or None when there was nothing to do.
    """
    scheduled = schedule_base_file_compaction(state, options)
    return None if scheduled is None else run_clustering(state, scheduled, options, progress)
