"""Transport of drawstring errors from Python workers to the driver.

Spark transmits the text of a worker's failure, not the exception. A worker therefore serializes the error
into the text, and the driver parses it: in drawstring's own calls, and in actions of DataFrames that read
tables.

If Spark's own Parquet reader misses a file, the failure is a Java exception. The driver remembers the tables
that Spark reads in this way and checks their timeline, as every reader does that misses a file
(`timeline.change_detection`).
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
from drawstring.spark.errors import on_spark
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.change_detection import since

_MARK: Final = "drawstring-error"
_MISSED: Final = ("FAILED_READ_FILE.FILE_NOT_EXIST", "FileNotFoundException")
"""Texts by which Spark reports a missing file."""

_FILE: Final = r"(.+?\.parquet)"
_LOCAL: Final = re.compile(r"file:/+")
_watched: dict[str, Watched] = {}
_MARKED: Final = re.compile(_MARK + r" (\{\"kind\": .*\})$", re.MULTILINE)


P = ParamSpec("P")
R = TypeVar("R")


class WorkerError(Exception):
    """A drawstring error, serialized into its text."""


@contextmanager
def carried() -> Iterator[None]:
    """Serialize a drawstring error that a worker raises, or the error of a full disk."""
    try:
        with disk_errors("the disks of the worker"):
            yield
    except errors.DrawstringError as error:
        raise WorkerError(serialized(error)) from error


def naming(function: Callable[P, R]) -> Callable[P, R]:
    """Add the table at the argument `path` to every error of a function; see `spark.errors`."""
    signature = inspect.signature(function)

    @wraps(function)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except errors.DrawstringError as error:
            path = signature.bind(*args, **kwargs).arguments["path"]
            raise on_spark(error.at(table=path)) from error.__cause__

    return named


@contextmanager
def surfaced() -> Iterator[None]:
    """Raise the drawstring error that a Spark job failed with, if there is one."""
    try:
        yield
    except Exception as failure:
        error = _parsed(str(failure)) or _missed(str(failure))
        if error is None:
            raise
        raise error from failure


@dataclass(frozen=True, slots=True)
class Watched:
    """A table whose files Spark's own reader opens.

    Attributes:
        storage: opens the table.
        timeline_digest: digest of the timeline when the query was planned.
    """

    storage: StorageSpec
    timeline_digest: str


def watch(root: str, watched: Watched) -> None:
    """Remember a table, to distinguish lost files from cleaned files when Spark misses a file.

    Args:
        root: URI prefix of the table's files.
        watched: the table; the first entry of a root is kept.
    """
    _watched.setdefault(_LOCAL.sub("/", root).rstrip("/") + "/", watched)


def _missed(text: str) -> errors.DrawstringError | None:
    """Return the error for a file that Spark's own reader missed; None for other failures and tables."""
    if not any(mark in text for mark in _MISSED):
        return None
    normalized = _LOCAL.sub("/", unquote(text))
    root = max((watched for watched in _watched if watched in normalized), key=len, default=None)
    if root is None:
        return None
    table = _watched[root]
    path = re.search(re.escape(root) + _FILE, normalized)
    try:
        with since(table.storage, table.timeline_digest):
            raise errors.MissingFileError(
                f"A data file of the table is missing: {errors.REPAIR}.",
                table=table.storage.uri,
                path=path[1] if path else None,
            )
    except errors.DrawstringError as error:
        return error


def surface_in_actions() -> None:
    """Make actions of DataFrames raise the drawstring error that they failed with; once per process.

    Actions run in calls of the user, long after drawstring returned the DataFrame. Therefore this replaces
    PySpark's conversion of Java exceptions to Python exceptions.
    """
    own = captured.convert_exception
    if getattr(own, "_drawstring", False):
        return

    def convert(failure: Any) -> Any:
        converted = own(failure)
        text = str(converted)
        error = _parsed(text) or _missed(text)
        return converted if error is None else on_spark(error)

    convert._drawstring = True  # type: ignore[attr-defined]  # an attribute of a function
    captured.convert_exception = convert  # type: ignore[assignment]  # drawstring's errors are not Spark's


def serialized(error: errors.DrawstringError) -> str:
    """Return an error as a text, which the driver finds in the text of a failure."""
    kinds = (kind.__name__ for kind in type(error).__mro__)
    fields = {
        "kind": next(name for name in kinds if hasattr(errors, name)),
        "message": error.message,
        "table": error.table,
        "instant": error.instant,
        "path": error.path,
    }
    return f"{_MARK} {json.dumps(fields)}"


def _parsed(text: str) -> errors.DrawstringError | None:
    match = _MARKED.search(text)
    if match is None:
        return None
    fields = json.loads(match[1])
    kind = getattr(errors, fields.pop("kind"))
    error: errors.DrawstringError = kind(fields.pop("message"), **fields)
    return error
