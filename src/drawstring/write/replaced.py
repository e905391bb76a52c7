"""File groups that a replacecommit replaces."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.filegroups.view.lookup import SliceLookup


def replaced_groups(partitions: Iterable[str], lookup: SliceLookup) -> dict[str, tuple[str, ...]]:
    """Return all file groups of the given partitions, including groups whose files are missing.

    Raises:
        PendingClusteringError: one of them is part of a pending clustering.
    """
    ids_by_partition = {path: lookup.file_ids_including_lost(path) for path in partitions}
    for path, file_ids in ids_by_partition.items():
        for file_id in file_ids:
            lookup.refuse_pending_clustering(path, file_id)
    return {path: tuple(file_ids) for path, file_ids in ids_by_partition.items() if file_ids}
