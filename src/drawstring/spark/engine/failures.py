"""Errors of drawstring on their way from a Python worker to the driver.

Spark hands on the text of what went wrong in a worker, not the exception. A worker therefore puts
the error into the text, and the driver takes it out again: in drawstring's own calls, and in the
actions of DataFrames that read tables.

A file that Spark's own Parquet reader misses is an error of Java's. The driver knows which tables are read in
this way, and looks at the timeline again like everybody who misses a file (`timeline.change_detection`).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import unquote

from pyspark.errors.exceptions import captured

from drawstring.base import errors
from drawstring.base.disk_errors import disk_errors
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.change_detection import since

_MARK: Final = "drawstring-error"
_MISSED: Final = ("FAILED_READ_FILE.FILE_NOT_EXIST", "FileNotFoundException")
"""How Spark says that a file is not there."""

_FILE: Final = r"(.+?\.parquet)"
_LOCAL: Final = re.compile(r"file:/+")
_watched: dict[str, Watched] = {}
_MARKED: Final = re.compile(_MARK + r" (\{\"kind\": .*\})$", re.MULTILINE)


P = ParamSpec("P")
R = TypeVar("R")


class WorkerError(Exception):
    """A drawstring error, written out."""


@contextmanager
def carried() -> Iterator[None]:
    """Write out a drawstring error, or that of a full disk, that a worker raises."""
    try:
        with disk_errors("the disks of the worker"):
            yield
    except errors.DrawstringError as error:
        raise WorkerError(_written(error)) from error


def naming(function: Callable[P, R]) -> Callable[P, R]:
    """Say in every error of a function which table it is about: the one at its argument `path`."""
    signature = inspect.signature(function)

    @wraps(function)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except errors.DrawstringError as error:
            path = signature.bind(*args, **kwargs).arguments["path"]
            raise error.at(table=path) from error.__cause__

    return named


@contextmanager
def surfaced() -> Iterator[None]:
    """Raise the drawstring error that a Spark job failed with, if it did with one."""
    try:
        yield
    except Exception as failure:
        error = _read(str(failure)) or _missed(str(failure))
        if error is None:
            raise
        raise error from failure


@dataclass(frozen=True, slots=True)
class Watched:
    """A table whose files Spark's own reader opens.

    Attributes:
        storage: opens the table.
        look: digest of the timeline when the files were found.
    """

    storage: StorageSpec
    look: str


def watch(root: str, watched: Watched) -> None:
    """Remember a table, so that a file that Spark misses is told from one that was cleaned away.

    Args:
        root: the address that the paths of its files begin with.
        watched: the table; of several looks the first one counts.
    """
    _watched.setdefault(_LOCAL.sub("/", root).rstrip("/") + "/", watched)


def _missed(text: str) -> errors.DrawstringError | None:
    """Return the error of a file that Spark's own reader missed; None for other failures and tables."""
    if not any(mark in text for mark in _MISSED):
        return None
    said = _LOCAL.sub("/", unquote(text))
    root = max((each for each in _watched if each in said), key=len, default=None)
    if root is None:
        return None
    table = _watched[root]
    path = re.search(re.escape(root) + _FILE, said)
    try:
        with since(table.storage, table.look):
            raise errors.MissingFileError(
                f"A data file of the table is missing: {errors.REPAIR}.",
                table=table.storage.uri,
                path=path[1] if path else None,
            )
    except errors.DrawstringError as error:
        return error


def surface_in_actions() -> None:
    """Make actions of DataFrames raise the drawstring error that they failed with, once a process.

    Spark runs them long after the DataFrame was made, in calls that are all the user's: what is left is
    PySpark's own turning of Java's exceptions into Python's.
    """
    own = captured.convert_exception
    if getattr(own, "_drawstring", False):
        return

    def convert(failure: Any) -> Any:
        converted = own(failure)
        text = str(converted)
        return _read(text) or _missed(text) or converted

    convert._drawstring = True  # type: ignore[attr-defined]  # a mark on a function
    captured.convert_exception = convert  # type: ignore[assignment]  # ours are not of Spark's kinds


def _written(error: errors.DrawstringError) -> str:
    fields = {
        "kind": type(error).__name__,
        "message": error.message,
        "table": error.table,
        "instant": error.instant,
        "path": error.path,
    }
    return f"{_MARK} {json.dumps(fields)}"


def _read(text: str) -> errors.DrawstringError | None:
    match = _MARKED.search(text)
    if match is None:
        return None
    fields = json.loads(match[1])
    kind = getattr(errors, fields.pop("kind"))
    error: errors.DrawstringError = kind(fields.pop("message"), **fields)
    return error
