"""Clustering after a write, when it is due."""

from __future__ import annotations

from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.model.commit import WriteOperation
from drawstring.model.instant import Action
from drawstring.services.background import run_in_background
from drawstring.services.clustering.run import cluster_at_once, run_pending, schedule_clustering
from drawstring.services.committed import write_stands
from drawstring.timeline.change_detection import read_settled
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableState


def cluster_when_due(state: TableState, config: TableConfig, options: WriteOptions) -> None:
    """Cluster a table, or plan it, if its writes ask for that; the write stands whatever becomes of it."""
    asked = options.clustering
    if not (asked.inline or asked.background or asked.schedule_inline):
        return
    with write_stands("the clustering", "run it again"):
        store = TimelineStore(state.storage, config, state.clock)
        in_thread = asked.background and not asked.inline
        if commits_since_clustering(store) < (
            asked.background_commits if in_thread else asked.inline_commits
        ):
            return
        if asked.inline:
            cluster_at_once(state, options)
        elif schedule_clustering(state, options) is not None and in_thread:
            run_in_background(state, options, run_pending)


def commits_since_clustering(store: TimelineStore) -> int:
    """Return how many completed writes stand on the timeline after its last clustering, pending or not."""
    return read_settled(store, lambda timeline: _commits_since_clustering(store, timeline))


def _commits_since_clustering(store: TimelineStore, timeline: Timeline) -> int:
    count = 0
    for instant in reversed(timeline.instants):
        if instant.action is Action.CLUSTERING:
            break
        if instant.is_write:
            replaces = instant.action is Action.REPLACE_COMMIT
            if replaces and store.commit_metadata(instant).operation == WriteOperation.CLUSTER:
                break
            count += 1
    return count
