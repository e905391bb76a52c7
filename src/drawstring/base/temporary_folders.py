"""Folders of this machine for what does not belong into a table: rows that spill, files of Lance.

drawstring-temporary-*    in the temporary folder of the machine, locked (`flock`) while its process lives

A process that is killed leaves its folders. The next one that makes a folder deletes those that are old and
that nobody has locked. The name is a long one because a user's table, a clone of the repository or the folder
of a benchmark may well be called drawstring-something.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_PREFIX: Final = "drawstring-temporary-"
_AGE_S: Final = 600
"""Least age of a folder that is taken for abandoned."""

_swept: Final[set[str]] = set()
"""The temporary folders that this process has looked at."""


class TemporaryFolder:
    """An empty folder, which is deleted with this object at the latest.

    Attributes:
        path: absolute path.
        drop: deletes it.

    Args:
        purpose: part of its name.
    """

    path: str
    drop: Callable[[], object]

    def __init__(self, purpose: str) -> None:
        self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-")
        self.drop = weakref.finalize(self, _delete, self.path, _locked(self.path))
        above = os.path.dirname(self.path)
        if above not in _swept:
            _swept.add(above)
            _sweep(above, os.stat(self.path).st_mtime)


def _opened(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _lock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _locked(path: str) -> int:
    descriptor = _opened(path)
    with suppress(OSError):  # without support for locks only the age shows that the process lives
        _lock(descriptor)
    return descriptor


def _delete(path: str, descriptor: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)


def _sweep(above: str, now_s: float) -> None:
    """Delete the folders that killed processes left; those of other users stay."""
    for name in os.listdir(above):
        path = os.path.join(above, name)
        with suppress(OSError):
            if name.startswith(_PREFIX) and os.lstat(path).st_mtime < now_s - _AGE_S:
                _drop_unless_locked(path)


def _drop_unless_locked(path: str) -> None:
    descriptor = _opened(path)
    try:
        _lock(descriptor)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
