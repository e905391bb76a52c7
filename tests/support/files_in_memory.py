"""Where the files of tests are: in memory, on a machine that has much of it.

Tests make many small files, which a file system on a disk writes into its journal, each in turn. After a
failure the folders stay, those of the last three runs, as pytest keeps them. `PYTEST_DEBUG_TEMPROOT`, a
variable of pytest, names another place.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = "PYTEST_DEBUG_TEMPROOT"
MEMORY = "/dev/shm"
FREE_BYTES_MIN = 8 << 30
"""Several times what all tests leave."""


def use_memory() -> None:
    """Let pytest make its folders in memory, unless the caller says where."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= FREE_BYTES_MIN:
        os.environ.setdefault(ROOT, MEMORY)


def in_memory(folder: Path) -> bool:
    """Return whether a folder takes memory until it is deleted."""
    return folder.is_relative_to(MEMORY)
