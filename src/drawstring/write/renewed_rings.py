"""New rings for partitions whose file groups a write replaces: consistent hashing index.

The ids of file groups follow from the ring, and those that were replaced cannot come again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from drawstring.index.consistent.rings import confirm_ring, renew_rings, sweep_rings
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


@contextmanager
def renewed_rings(
    session: LockedTable, timeline: Timeline, partitions: Iterable[str], time: str
) -> Iterator[None]:
    """Put the new rings, let the write complete in the block, and note that they count.

    Args:
        session: the table.
        timeline: as the write found it.
        partitions: those that are dropped or overwritten; in a table with another index nothing is done.
        time: requested time of the write.
    """
    storage = session.state.storage
    renewed = renew_rings(storage, partitions, timeline.has_completed, time)
    yield
    for partition in renewed:
        confirm_ring(storage, partition, time)
        if timeline.start is not None:
            sweep_rings(storage, partition, timeline.start)
