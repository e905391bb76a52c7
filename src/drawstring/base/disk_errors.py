"""Translation of the operating system's disk errors (full, read-only, refused, failed) into our own."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError

TABLE_DISK: Final = "the disk of the table"

_WHY: Final = {
    errno.ENOSPC: ("The disk is full", "free space on {where}"),
    errno.EDQUOT: ("The disk quota is used up", "free space on {where}, or have the quota raised"),
    errno.EFBIG: ("A file is larger than allowed", "raise the limit (ulimit -f, or that of {where})"),
    errno.EIO: ("The disk failed (input/output error)", "check {where}"),
}

_REFUSED: Final = {
    errno.EACCES: "Check the owner and the mode of the file and of its folders",
    errno.EPERM: "Check the owner and the mode of the file and of its folders",
    errno.EROFS: "Have {where} mounted for writing",
}
"""Errors that waiting does not cure."""


def disk_error(error: OSError, where: str, path: str | None = None) -> DrawstringError | None:
    """Return the error to raise when a disk refused a write; None for any other kind of error.

    Args:
        error: the error that the operating system, or Arrow on its behalf, raised.
        where: the folder that was written to.
        path: path of the file, relative to the table.
    """
    if remedy := _REFUSED.get(error.errno or 0):
        reason = error.strerror or error
        return InvalidError(
            f"The file system refuses access ({reason}). {remedy.format(where=where)}.", path=path
        )
    why = _WHY.get(error.errno or 0)
    if why is None:
        return None
    happened, remedy = why
    remedy = remedy.format(where=where)
    then = "then try again. The unfinished action has no effect: the table is as it was before."
    return UnavailableError(f"{happened}. {remedy[0].upper()}{remedy[1:]}, {then}", path=path)


def temporary_disk_errors() -> AbstractContextManager[None]:
    """Raise the errors of the disk that has the temporary folder; see `disk_errors`."""
    return disk_errors(f"{tempfile.gettempdir()} (or set TMPDIR to another folder)")


@contextmanager
def disk_errors(where: str, path: str | None = None) -> Iterator[None]:
    """Raise the errors of a disk as `UnavailableError`, and refused access as `InvalidError`.

    Args:
        where: the folder that is written to.
        path: path of the file, relative to the table.
    """
    try:
        yield
    except OSError as error:
        translated = disk_error(error, where, path)
        if translated is None:
            raise
        raise translated from error
