"""Errors of a call as users of PySpark catch them.

An error that the user has to fix is an `AnalysisException`, too, as Spark's own errors about options, paths
and columns are.

    InvalidError      -> InvalidError and AnalysisException
    NoTableError      -> NoTableError and AnalysisException
    UnsupportedError  -> UnsupportedError and AnalysisException
    others            -> as they are: they come while a query or write runs
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import AnalysisException

from drawstring.base.errors import DrawstringError, InvalidError, NoTableError, UnsupportedError


class _OfAnalysis(AnalysisException):
    """What the errors of this module have from Spark."""

    def getMessage(self) -> str:
        """Return the text; these errors have no condition of Spark's to put before it."""
        return str(self)


class InvalidOnSparkError(InvalidError, _OfAnalysis):
    """The call cannot be carried out as it is: fix it."""


class NoTableOnSparkError(NoTableError, _OfAnalysis):
    """There is no table at the path: check it, or create a table."""


class UnsupportedOnSparkError(UnsupportedError, _OfAnalysis):
    """The table or the call needs something that this release does not have."""


_ON_SPARK: Final[dict[type[DrawstringError], type[DrawstringError]]] = {
    InvalidError: InvalidOnSparkError,
    NoTableError: NoTableOnSparkError,
    UnsupportedError: UnsupportedOnSparkError,
}


def on_spark(error: DrawstringError) -> DrawstringError:
    """Return an error as users of PySpark catch it."""
    kind = _ON_SPARK.get(type(error))
    if kind is None:
        return error
    same = kind(error.message, table=error.table, instant=error.instant, path=error.path)
    return same.with_traceback(error.__traceback__)


@contextmanager
def analysed() -> Iterator[None]:
    """Raise drawstring's errors as users of PySpark catch them."""
    try:
        yield
    except DrawstringError as error:
        raise on_spark(error) from error.__cause__
