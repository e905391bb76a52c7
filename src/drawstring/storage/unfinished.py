"""Hidden temporary files of a local storage, which a killed process leaves behind.

.<name>.<uuid>.tmp    the contents of <name> before the rename; locked (`flock`) until then
.<name>.lock.tmp      lock file, held while <name> is compared and replaced
.folder.tmp           created and deleted at once, to create a folder
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UNFINISHED: Final = re.compile(rf"\..+\.(?:{_UUID}|lock)\.tmp|\.folder\.tmp", re.DOTALL)


def is_unfinished(name: str) -> bool:
    """Return whether a name is that of a temporary file."""
    return _UNFINISHED.fullmatch(name) is not None


def hold(file: IO[bytes]) -> None:
    """Lock a file to show others that its writer lives; without lock support only the file's age shows it."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def drop_unless_held(full: str) -> None:
    """Delete a file unless a live process has it locked.

    Args:
        full: absolute path.
    """
    try:
        descriptor = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, full):
                os.unlink(full)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive_file(full: str) -> Iterator[None]:
    """Hold a lock file, which is deleted afterwards.

    Args:
        full: absolute path, in an existing folder.
    """
    while True:
        with open(full, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_at(lock.fileno(), full):
                continue  # the previous holder deleted the file, and others lock a new one
            try:
                yield
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(full)
            return


def _is_at(descriptor: int, full: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(full))
    except FileNotFoundError:
        return False
