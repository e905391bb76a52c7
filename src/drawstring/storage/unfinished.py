"""Hidden files that a local storage makes on the way to others, and that a killed process leaves behind.

.<name>.<uuid>.tmp    what is about to become <name>; locked (`flock`) until it did
.<name>.lock.tmp      held while <name> is compared and replaced
.folder.tmp           there for a moment, so that a folder is made
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
    """Tell whether a name is one of those."""
    return _UNFINISHED.fullmatch(name) is not None


def hold(file: IO[bytes]) -> None:
    """Show others that the process of a file lives; where there are no locks only its age does."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def drop_unless_held(full: str) -> None:
    """Delete a file unless a live process holds it.

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
    """Hold a lock file, which is gone afterwards.

    Args:
        full: absolute path, in a folder that is there.
    """
    while True:
        with open(full, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_at(lock.fileno(), full):
                continue  # whoever held it deleted it: others lock a new one
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
