"""Apply transformers one after the other: SQL queries, Python functions, or Hudi's classes.

    a SQL query                   "SELECT id, upper(city) AS city FROM <SRC>"
    a Python function             an object, or "module:function"; takes and returns rows of the engine
    a class of Hudi's             SqlQueryBasedTransformer, SqlFileBasedTransformer, FlatteningTransformer

`flattened` makes fields of structs columns of their own, as Hudi's `FlatteningTransformer`. `UserFunction`
calls a user's function; its errors name the function, the batch, and the lines that raised them.
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.keys.ingest import IngestOptions
from drawstring.ingestion.batch_engine import BatchEngine, BatchRows
from drawstring.storage import open_storage
from drawstring.write.source import batches_of


def flattened(engine: BatchEngine, rows: BatchRows) -> BatchRows:
    """Return rows in which field `b` of struct `a` is column `a_b`, at every depth."""
    return engine.mapped(rows, _flat_batches, _flat(rows.schema.empty_table()).schema)


def _flat_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from _flat(pa.Table.from_batches([batch])).to_batches()


def _flat(rows: pa.Table) -> pa.Table:
    while structs := [each.name for each in rows.schema if pt.is_struct(each.type)]:
        whole = rows.flatten()
        renamed = {
            f"{name}.{each.name}": f"{name}_{each.name}"
            for name in structs
            for each in rows.schema.field(name).type.fields
        }
        rows = whole.rename_columns([renamed.get(name, name) for name in whole.column_names])
    return rows


_FRAMES_MAX: Final = 3
_LIBRARY_FOLDERS: Final = tuple(
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
        return pa.RecordBatchReader.from_batches(schema, self._deferred(batches))

    def _batches_of(self, result: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
        with self._told():
            try:
                return batches_of(result)
            except InvalidError as error:
                raise TransformerError(
                    f"The result of the transformer {self.name} cannot be taken. {error.message}"
                ) from error

    def _deferred(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
    own = [each for each in frames if not each.filename.startswith(_LIBRARY_FOLDERS)]
    return "; ".join(
        f"{each.filename}, line {each.lineno}, in {each.name}: {(each.line or '').strip()}"
        for each in own[-_FRAMES_MAX:]
    )


Transform: TypeAlias = Callable[[BatchRows], BatchRows]
_CLASS: Final = re.compile(r"(?:(?P<name>\w+):)?(?:org\.apache\.hudi\.utilities\.transform\.)?(?P<kind>\w+)")
_SQL: Final = "hoodie.streamer.transformer.sql"


def chain(
    given: Sequence[str | Callable[..., Any]],
    options: IngestOptions,
    keys: Mapping[str, Any],
    engine: BatchEngine,
) -> Transform:
    """Return what the transformers do together.

    Args:
        given: the transformers of the call, before those of the options.
        options: of the ingestion.
        keys: all options as given, for those of named transformers.
        engine: runs them.

    Raises:
        InvalidError: a transformer is unknown, or lacks its query.
    """
    steps = [_step(each, options, keys, engine) for each in (*given, *options.transformers)]
    if options.sql and not options.transformers:
        steps.append(partial(engine.query, options.sql))

    def transform(rows: BatchRows) -> BatchRows:
        for step in steps:
            rows = step(rows)
        return rows

    return transform


def _step(
    given: str | Callable[..., Any], options: IngestOptions, keys: Mapping[str, Any], engine: BatchEngine
) -> Transform:
    if callable(given):
        return partial(engine.call, UserFunction.of(given))
    if not isinstance(given, str):
        raise InvalidError(f"{given!r} is no transformer. Give a SQL query, a function, or module:function.")
    if any(each.isspace() for each in given.strip()):
        return partial(engine.query, given)
    match = _CLASS.fullmatch(given.strip())
    kind = match["kind"] if match else ""
    own = f".{match['name']}" if match and match["name"] else ""
    if kind == "SqlQueryBasedTransformer":
        return partial(engine.query, _needed(keys.get(f"{_SQL}{own}") or options.sql, f"{_SQL}{own}"))
    if kind == "SqlFileBasedTransformer":
        file = _needed(keys.get(f"{_SQL}.file{own}") or options.sql_file, f"{_SQL}.file{own}")
        return partial(engine.query, read_text(file))
    if kind == "FlatteningTransformer":
        return partial(flattened, engine)
    return partial(engine.call, UserFunction(given.strip(), _function(given.strip())))


def _needed(value: Any, key: str) -> str:
    if not value:
        raise InvalidError(f"A SQL transformer has no query. Set {key}.")
    return str(value)


def read_text(address: str) -> str:
    """Return a file of the user as text.

    Raises:
        InvalidError: there is no such file.
    """
    folder, _, name = address.rpartition("/")
    try:
        return open_storage(folder or ("/" if address.startswith("/") else ".")).read(name).decode()
    except FileNotFoundError as error:
        raise InvalidError(f"There is no file {address}. Give the path of a file that exists.") from error


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    try:
        found: Callable[..., Any] | None = getattr(import_module(module), function, None)
    except Exception as error:  # the module is the user's own code
        raise InvalidError(
            f"The transformer {name!r} cannot be imported ({type(error).__name__}: {error}). Give"
            " module:function of a module that Python finds, or a query."
        ) from error
    if found is None or not callable(found):
        raise InvalidError(
            f"There is no transformer {name!r}. Give a SQL query, a Python function as module:function, or"
            " SqlQueryBasedTransformer, SqlFileBasedTransformer or FlatteningTransformer."
        )
    return found
