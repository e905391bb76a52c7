"""What Arrow and the file system raise while a data file is read, as our errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from drawstring.base.disk_errors import disk_error
from drawstring.base.errors import (
    REPAIR,
    CorruptTableError,
    DrawstringError,
    MissingFileError,
    UnavailableError,
    UnsupportedError,
)
from drawstring.model.files import BaseFile, FileStatus


@contextmanager
def about_file(path: str | None, kind: str = "Parquet") -> Iterator[None]:
    """Turn what Arrow and the file system raise into our errors, which name the file and its write.

    Args:
        path: of the file, None for a part of one.
        kind: the file's format, for messages.

    Raises:
        CorruptTableError: the file is missing or damaged.
        UnavailableError: the file system does not answer.
        UnsupportedError: the file holds what Arrow does not read.
    """
    try:
        yield
    except DrawstringError as error:
        raise error.at(instant=_instant_of(path), path=path) from error.__cause__
    except FileNotFoundError as error:
        message = f"A data file of the table is missing: {REPAIR}."
        raise MissingFileError(message, instant=_instant_of(path), path=path) from error
    except pa.ArrowNotImplementedError as error:
        message = f"Arrow cannot read this {kind} file: {_one_line(error)}"
        raise UnsupportedError(message, path=path) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowKeyError, UnicodeDecodeError) as error:
        raise _damaged(error, path, kind) from error
    except pa.ArrowException as error:
        if type(error) is not pa.ArrowException:
            raise
        raise _damaged(error, path, kind) from error  # what a library inside Arrow threw
    except OSError as error:
        # Arrow reports damaged pages as OSError as well, but those carry no error number.
        if error.errno is None:
            raise _damaged(error, path, kind) from error
        if error.errno != errno.EIO and disk_error(error, ""):
            raise  # a file that is made of this one: whoever writes it says so
        message = f"The {kind} file cannot be read now: {_one_line(error)}"
        raise UnavailableError(message, path=path) from error


def _damaged(error: Exception, path: str | None, kind: str) -> CorruptTableError:
    message = f"The {kind} file is damaged ({_one_line(error)}); {REPAIR}."
    return CorruptTableError(message, instant=_instant_of(path), path=path)


def _instant_of(path: str | None) -> str | None:
    """Return the write that made a base file, None for other files."""
    base = BaseFile.parse(FileStatus(path, 0)) if path else None
    return base.instant if base else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
