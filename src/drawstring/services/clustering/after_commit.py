"""Clustering after a commit.

| option | effect when due |
|---|---|
| `hoodie.clustering.inline` | the write plans a clustering and runs it |
| `hoodie.clustering.async.enabled` | the write plans one, and a thread of this process runs it |
| `hoodie.clustering.schedule.inline` | the write plans one, and another process runs it |
"""

from __future__ import annotations

from drawstring.model.commit import WriteOperation
from drawstring.model.instant import Action
from drawstring.services.background import run_in_background
from drawstring.services.clustering.run import cluster_at_once, run_pending, schedule_clustering
from drawstring.timeline.change_detection import retry_on_archiving
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.write.write_outcome import WriteOutcome


def cluster_after_commit(written: WriteOutcome) -> None:
    """Cluster the table of a commit, or plan that, once enough commits follow the last clustering."""
    context, options = written.context, written.options
    clustering = options.clustering
    in_thread = clustering.background and not clustering.inline
    due_after = clustering.background_commits if in_thread else clustering.inline_commits
    if commits_since_clustering(written.store) < due_after:
        return
    if clustering.inline:
        cluster_at_once(context, options)
    elif schedule_clustering(context, options) is not None and in_thread:
        run_in_background(context, options, run_pending)


def commits_since_clustering(store: TimelineStore) -> int:
    """Return the number of completed writes after the last clustering, pending or completed."""
    return retry_on_archiving(store, lambda timeline: _commits_since_clustering(store, timeline))


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
