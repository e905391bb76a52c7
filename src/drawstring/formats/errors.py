"""Translation of errors of Arrow and the file system while a data file is read."""

from __future__ import annotations

import errno
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from drawstring.base.errors import (
    REPAIR,
    TABLE_DISK,
    CorruptTableError,
    DrawstringError,
    MissingFileError,
    UnavailableError,
    UnsupportedError,
    disk_error,
)
from drawstring.model.files import BaseFile, FileStatus


@contextmanager
def about_file(path: str | None, kind: str = "Parquet") -> Iterator[None]:
    """Translate errors of Arrow and the file system into ours, with the file and its instant.

    Args:
        path: path of the file, None for a part of one.
        kind: the file's format, for messages.

    Raises:
        CorruptTableError: the file is missing or damaged.
        UnavailableError: the file system does not respond.
        UnsupportedError: Arrow cannot read the file's contents.
    """
    try:
        yield
    except DrawstringError as error:
        raise error.at(instant=_instant_of(path), path=path) from error.__cause__
    except FileNotFoundError as error:
        message = f"A data file of the table is missing. To repair the table, {REPAIR}."
        raise MissingFileError(message, instant=_instant_of(path), path=path) from error
    except pa.ArrowNotImplementedError as error:
        message = f"Arrow cannot read the {kind} file ({_one_line(error)}). Use another engine."
        raise UnsupportedError(message, path=path) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowKeyError, UnicodeDecodeError) as error:
        raise _damaged(error, path, kind) from error
    except pa.ArrowException as error:
        if type(error) is not pa.ArrowException:
            raise
        raise _damaged(error, path, kind) from error  # an exception of a library inside Arrow
    except NotImplementedError as error:
        message = f"The {kind} file cannot be read ({_one_line(error)}). Use another engine."
        raise UnsupportedError(message, path=path) from error
    except (
        ValueError,
        LookupError,
        EOFError,
        ArithmeticError,
        RuntimeError,
        struct.error,
        zlib.error,
    ) as error:
        if kind == "Parquet":
            raise  # a defect of drawstring: Arrow reports damage by its own errors
        raise _damaged(error, path, kind) from error
    except OSError as error:
        found = _system_error(error, path, kind)
        if found is error:
            raise
        raise found from error


def _system_error(error: OSError, path: str | None, kind: str) -> Exception:
    """Return the error to raise for one of the file system, which may be the same."""
    # Arrow reports damaged pages as OSError as well, but those carry no error number.
    if error.errno is None:
        return _damaged(error, path, kind)
    if isinstance(error, PermissionError):
        return disk_error(error, TABLE_DISK, path) or error
    if error.errno != errno.EIO and disk_error(error, ""):
        return error  # concerns the file that is written from this one; its writer reports it
    message = f"The {kind} file cannot be read now ({_one_line(error)}). Try again."
    return UnavailableError(message, path=path)


def _damaged(error: Exception, path: str | None, kind: str) -> CorruptTableError:
    message = f"The {kind} file is damaged ({_one_line(error)}). To repair the table, {REPAIR}."
    return CorruptTableError(message, instant=_instant_of(path), path=path)


def _instant_of(path: str | None) -> str | None:
    """Return the instant of a base file, None for other files."""
    base = BaseFile.parse(FileStatus(path, 0)) if path else None
    return base.instant if base else None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
