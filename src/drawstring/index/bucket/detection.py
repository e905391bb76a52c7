"""Whether a table has a simple bucket index that nobody names: Apache Hudi often does not store it.

Whoever looks for its keys in another way, or moves them about, would bring a key to a second file group. The
names of the file groups of the newest write give the index away.
"""

from __future__ import annotations

import re

from drawstring.base.errors import InvalidError
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_WRITES_LOOKED_AT = 10
_BUCKETS_MAX = 100_000
_BUCKET_FILE_ID = re.compile(r"(\d{8})-")


def bucket_of(file_id: str) -> int | None:
    """Return the bucket that a file id names, None when it names none."""
    match = _BUCKET_FILE_ID.match(file_id)
    return int(match[1]) if match else None


def is_bucketed(store: TimelineStore, timeline: Timeline) -> bool:
    """Tell whether the newest write that made files named all their groups as buckets are named."""
    for instant in timeline.writes()[: -_WRITES_LOOKED_AT - 1 : -1]:
        if stats := store.commit_metadata(instant).stats:
            buckets = [bucket_of(stat.file_id) for stat in stats]
            return all(bucket is not None and bucket < _BUCKETS_MAX for bucket in buckets)
    return False


def refuse_untold_buckets(store: TimelineStore, timeline: Timeline, instead: str) -> None:
    """Refuse a table that seems to have an index which neither it nor the caller names.

    Args:
        store: the table's timeline.
        timeline: as it is.
        instead: what the caller should do if it has that index.

    Raises:
        InvalidError: it does.
    """
    if is_bucketed(store, timeline):
        raise InvalidError(
            f"the table looks like one with a bucket index: {instead}; if it has none, set"
            " hoodie.index.type=SIMPLE"
        )
