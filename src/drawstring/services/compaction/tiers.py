"""Which runs of a file group a hybrid compaction merges into one, as in size-tiered LSM trees (pure).

    older                          newer      at a limit of five runs
    [ 16 ][  7 ][ 3 ][ 1 ][ 1 ]               all: each is at most twice what is newer
    [ 40 ][  7 ][ 1 ][ 1 ][ 1 ]               the three newest: 7 is more than twice as much
    [ 40 ][  7 ][ 3 ][ 1 ][ 1 ][ 1 ][ 1 ]     the five newest: 7 is at most twice their size

A run is what one write or log compaction left in the log files (`LogRun`). Only the newest runs are merged,
so that the order in which versions of a key are merged stays as it is.

With the limit N a file group has fewer than N runs after a plan. An older run is merged with newer ones of
at least half its size, so that a merge makes one and a half of the size of the run that a record was in. So
it is rewritten about log1.5 of the number of writes between two base files, unless the limit asks for more.
With the limit 5 and plans after every five writes of one size it is 2.6 times for 50 writes, 3.9 for 200.

A base file is made once the log records have a share of its size (`drawstring.compaction.hybrid.log.ratio`),
all log files together are as large as it (`...space.ratio`), or there are too many (`...log.files`). Levels
with a fixed ratio of sizes, as in RocksDB, would rewrite each record up to ten times a level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_GROWTH: Final = 2
"""An older run is merged with newer ones of at least half its size."""


def runs_to_merge(sizes: Sequence[int], limit: int) -> int:
    """Return how many of the newest runs to merge into one; 0 if the file group has fewer than the limit.

    Args:
        sizes: bytes of the runs, the oldest first.
        limit: number of runs from which on they are merged, at least 2.
    """
    if len(sizes) < limit:
        return 0
    newest_first = sizes[::-1]
    count, total = 1, newest_first[0]
    least = len(sizes) - limit + 2
    while count < len(sizes) and (count < least or newest_first[count] <= _GROWTH * total):
        total += newest_first[count]
        count += 1
    return count
