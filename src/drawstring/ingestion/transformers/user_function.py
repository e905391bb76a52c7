"""A user's own function as a transformer: its errors name it, the batch, and the lines that raised them."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.write.write_source import batches_of

_FRAMES_MAX: Final = 3
_OF_OTHERS: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (
        str(Path(__file__).parents[2]),
        *(sysconfig.get_paths()[each] for each in ("purelib", "platlib", "stdlib")),
    )
)
"""Folders of code that is not the user's."""


class TransformerError(InvalidError):
    """A function of the user failed: correct it."""

    def within(self, place: str) -> TransformerError:
        """Return the error with the batch in which it happened."""
        named = TransformerError(f"{self.message} It happened {place}, of which nothing was written.")
        return named.with_traceback(self.__traceback__)


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of the user that changes rows.

    Attributes:
        name: as the user knows it.
        function: takes rows as the engine has them, and returns rows.
    """

    name: str
    function: Callable[..., Any]

    @staticmethod
    def of(function: Callable[..., Any]) -> UserFunction:
        """Return a function that was given as an object."""
        name = getattr(function, "__qualname__", type(function).__name__)
        return UserFunction(str(name), function)

    def __call__(self, rows: Any) -> Any:
        """Return what the function makes of rows: rows of the same type, or else a reader.

        Raises:
            TransformerError: it failed, or returned no rows. Batches that it makes later raise it later.
        """
        with self._told():
            result = self.function(rows)
        if result is None:
            raise TransformerError(
                f"The transformer {self.name} returned None. Return the changed rows: a pyarrow Table or"
                " RecordBatchReader, a DataFrame, or another object with the Arrow C stream interface."
            )
        if isinstance(result, type(rows)) and not isinstance(result, pa.RecordBatchReader):
            return result
        schema, batches = self._batches_of(result)
        return pa.RecordBatchReader.from_batches(schema, self._later(batches))

    def _batches_of(self, result: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
        with self._told():
            try:
                return batches_of(result)
            except InvalidError as error:
                raise TransformerError(
                    f"The result of the transformer {self.name} cannot be taken. {error.message}"
                ) from error

    def _later(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self._told():
            yield from batches

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except DrawstringError:
            raise  # of the rows that the function reads
        except Exception as error:
            first = next(filter(str.strip, str(error).splitlines()), "").strip().rstrip(".")
            what = f"{type(error).__name__}: {first}" if first else type(error).__name__
            where = _lines(error)
            raise TransformerError(
                f"The transformer {self.name} failed with {what}{f' ({where})' if where else ''}. Correct it."
            ) from error


def _lines(error: Exception) -> str:
    """Return the last lines of the user's code that led to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if not each.filename.startswith(_OF_OTHERS)]
    return "; ".join(
        f"{each.filename}, line {each.lineno}, in {each.name}: {(each.line or '').strip()}"
        for each in own[-_FRAMES_MAX:]
    )
