"""Which file groups a replacecommit replaces."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.filegroups.lookup import SliceLookup


def replaced_groups(partitions: Iterable[str], lookup: SliceLookup) -> dict[str, tuple[str, ...]]:
    """Return all file groups of some partitions.

    Raises:
        ConflictError: a pending clustering is going to replace one of them.
    """
    found = {path: lookup.slices(path) for path in partitions}
    for slices in found.values():
        for each in slices:
            lookup.check_free(each)
    return {path: tuple(each.file_id for each in slices) for path, slices in found.items() if slices}
