"""Lifecycle of the stored index files of a table, for code that does not know its index.

Partition drops, rollbacks and restores get no index, and many tables do not declare theirs, so the stored
files decide.
"""

from __future__ import annotations

from typing import Final

from drawstring.index.bucket.simple_bucket import remove_counts
from drawstring.index.consistent.rings import RingLifecycle
from drawstring.index.lifecycle import IndexLifecycle
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage


class _StoredIndex(RingLifecycle):
    """Lifecycle of rings and of bucket counts by partition; without any, the hooks do nothing."""

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the rings and the bucket counts of an instant that replaced file groups."""
        super().rolled_back(storage, instant)
        if instant.action.completed_action is Action.REPLACE_COMMIT:
            remove_counts(storage, instant.requested)


STORED_INDEX: Final[IndexLifecycle] = _StoredIndex()
