"""Named bounds: how much memory, how many rows or threads a step may use."""

from __future__ import annotations

import os
from typing import Final

BATCH_ROWS: Final = 65_536
"""Rows in a record batch that moves between steps."""

ROW_GROUP_ROWS: Final = 250_000
"""Rows in a row group of a base file."""

LITTLE_BYTES: Final = 256 << 10
"""Bytes of files on this machine that one thread reads sooner than several begin."""

EXCHANGE_BYTES_MAX: Final = 512 << 20
"""Bytes that an exchange of the local engine keeps in memory before it spills to disk."""

HEADER_ENTRIES_MAX: Final = 64
"""Entries in the header of a log block that a reader accepts."""

PLAIN_BYTES_MAX: Final = 64 << 20
"""Bytes that a block of metadata or an HFile may always unpack to."""

EXPANSION_MAX: Final = 32
"""Times of its stored bytes that a larger block may unpack to."""

BUCKETS_MAX: Final = 1_000_000
"""Buckets of a partition that a reader accepts: a batch of rows has a name for every one."""

AVRO_TYPES_MAX: Final = 50_000
"""Types that an Avro schema which a reader accepts may unfold to, each use of a named one counted."""


def worker_threads() -> int:
    """Return how many tasks the local engine runs at once."""
    return max(2, min(16, os.cpu_count() or 2))
