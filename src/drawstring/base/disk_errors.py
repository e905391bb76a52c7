"""Translation of the operating system's disk errors (full, read-only, failed) into our own."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from drawstring.base.errors import UnavailableError

TABLE_DISK: Final = "the disk of the table"

_WHY: Final = {
    errno.ENOSPC: ("The disk is full", "free space on {where}"),
    errno.EDQUOT: ("The disk quota is used up", "free space on {where}, or have the quota raised"),
    errno.EFBIG: ("A file is larger than allowed", "raise the limit (ulimit -f, or that of {where})"),
    errno.EROFS: ("The file system is read-only", "have {where} mounted for writing"),
    errno.EIO: ("The disk failed (input/output error)", "check {where}"),
}


def disk_error(error: OSError, where: str, path: str | None = None) -> UnavailableError | None:
    """Return the error to raise when a disk refused a write; None for any other kind of error.

    Args:
        error: the error that the operating system, or Arrow on its behalf, raised.
        where: the folder that was written to.
        path: path of the file, relative to the table.
    """
    why = _WHY.get(error.errno or 0)
    if why is None:
        return None
    happened, remedy = why
    then = "then try again. The unfinished action has no effect: the table is as it was before."
    remedy = remedy.format(where=where)
    return UnavailableError(f"{happened}. {remedy[0].upper()}{remedy[1:]}, {then}", path=path)


@contextmanager
def disk_errors(where: str, path: str | None = None) -> Iterator[None]:
    """Raise the errors of a disk as `UnavailableError`.

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
