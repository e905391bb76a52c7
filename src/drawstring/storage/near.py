"""What is at a path that was taken for a table, or below it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

from drawstring.storage.protocol import Storage

_SHOWN: Final = 3


def next_step(storage: Storage, mark: str) -> str:
    """Return what to do about a path without a table, as a sentence; in object stores nobody looks around.

    Args:
        storage: files at the path.
        mark: path of a file that each table has.
    """
    local = storage.local_path("")
    if local is None:
        return "Check the path, or create a table."
    path = Path(local)
    if path.is_file():
        return "A file is at this path. Give the folder of a table."
    if not path.exists():
        return "There is no folder at this path. Check it, or create a table."
    below = sorted(islice((each.parents[1].name for each in path.glob(f"*/{mark}")), _SHOWN))
    if below:
        return f"There are tables below, such as {' and '.join(below)}. Give the path of one."
    return "Check the path, or create a table."
