"""Which file groups a replacecommit replaces."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.filegroups.view.lookup import SliceLookup


def replaced_groups(partitions: Iterable[str], lookup: SliceLookup) -> dict[str, tuple[str, ...]]:
    """Return all file groups of some partitions, those too whose files are missing: nobody needs their rows.

    Raises:
        ConflictError: a pending clustering is going to replace one of them.
    """
    found = {path: lookup.replaceable(path) for path in partitions}
    for path, file_ids in found.items():
        for file_id in file_ids:
            lookup.check_free(path, file_id)
    return {path: tuple(file_ids) for path, file_ids in found.items() if file_ids}
