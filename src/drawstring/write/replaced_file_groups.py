"""File groups that a replacecommit replaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.model.commit import WriteStat
from drawstring.write.plan import Verb


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


def replaced_by(verb: Verb, stats: list[WriteStat], lookup: SliceLookup) -> dict[str, tuple[str, ...]]:
    """Return the file groups that an overwrite replaces.

    Args:
        verb: rules of the operation, which replaces something.
        stats: what it wrote.
        lookup: the slices before it.
    """
    written = {stat.partition for stat in stats}
    if verb.replaces == "table" or verb.named:
        present = lookup.partitions_including_lost()
        written |= {path for path in present if verb.replaces == "table" or _is_below(path, verb.named)}
    return replaced_groups(sorted(written), lookup)


def _is_below(path: str, named: Sequence[str]) -> bool:
    """Return whether a partition is one of some, or below one of them."""
    return any(path == each or path.startswith(f"{each}/") for each in named)
