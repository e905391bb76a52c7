"""Transformers, one after the other, as a user names them.

a SQL query                   "SELECT id, upper(city) AS city FROM <SRC>"
a Python function             an object, or "module:function"; takes and returns rows as the engine has them
a class of Hudi's             SqlQueryBasedTransformer, SqlFileBasedTransformer, FlatteningTransformer
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeAlias

from drawstring.base.errors import InvalidError
from drawstring.config.keys.pipelines.ingest import IngestOptions
from drawstring.ingestion.batch_engine import BatchEngine, BatchRows
from drawstring.ingestion.transformers.flatten import flattened
from drawstring.ingestion.transformers.user_function import UserFunction
from drawstring.storage import open_storage

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
