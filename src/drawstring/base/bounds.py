"""Named bounds on the memory, rows and threads that a step may use."""

from __future__ import annotations

import os
from typing import Final

BATCH_ROWS: Final = 65_536
"""Rows in a record batch that one step hands to the next."""

BATCH_BYTES: Final = 16 << 20
"""Bytes that the rows of a batch take when it is read, which holds fewer rows if they are wide."""

ROW_GROUP_ROWS: Final = 250_000
"""Rows in a row group of a base file."""

ROW_GROUP_BYTES_MAX: Final = 128 << 20
"""Bytes in memory of a row group of a base file."""

SORTED_ROW_GROUP_ROWS: Final = 32_768
"""Rows in a row group of a file that is sorted by record key: a look-up reads one."""

SORTED_ROW_GROUP_BYTES: Final = 16 << 20
"""Bytes in memory of a row group of such a base file."""

SORTED_LOG_GROUP_BYTES: Final = 4 << 20
"""Bytes in memory of a row group of a sorted log file: a merge holds some of each log file."""

HFILE_KEY_BYTES_MAX: Final = (1 << 15) - 1
"""Bytes of a key of an HFile, whose length is a signed number of 16 bits."""

VALUE_BYTES: Final = 16
"""Bytes in memory of a value, on an average, where nothing else tells."""

LITTLE_BYTES: Final = 256 << 10
"""Bytes of local files that one thread reads in less time than it takes to start several threads."""

EXCHANGE_BYTES_MAX: Final = 512 << 20
"""Bytes that an exchange of the local engine keeps in memory before it spills to disk."""

HEADER_ENTRIES_MAX: Final = 64
"""Entries in the header of a log block that a reader accepts."""

PLAIN_BYTES_MAX: Final = 64 << 20
"""Bytes that a block of metadata or of an HFile may always decompress to."""

EXPANSION_MAX: Final = 32
"""Largest ratio of decompressed to stored bytes of a block beyond `PLAIN_BYTES_MAX`."""

BUCKETS_MAX: Final = 1_000_000
"""Buckets of a partition that a reader accepts: each batch of rows holds a name for every bucket."""

AVRO_TYPES_MAX: Final = 50_000
"""Types in an Avro schema that a reader accepts; each use of a named type counts."""


def worker_threads() -> int:
    """Return how many tasks the local engine runs at once."""
    return max(2, min(16, os.cpu_count() or 2))
