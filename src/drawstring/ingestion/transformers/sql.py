"""SQL over the rows of a batch: Spark's dialect, run by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import sqlglot

from drawstring.base.errors import InvalidError, not_installed

SOURCE: Final = re.compile(r"<SRC>", re.IGNORECASE)
_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")
"""Codes by which sqlglot underlines what is wrong on a terminal."""

_NAME: Final = "drawstring_source"


def run_sql(query: str, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the result of a query.

    Args:
        query: a query in Spark's dialect, in which `<SRC>` stands for the rows.
        rows: the rows.

    Raises:
        InvalidError: DuckDB is not installed, or the query is wrong.
    """
    return query_in_duckdb(query, _translated(query), {_NAME: rows})


def query_in_duckdb(query: str, text: str, relations: Mapping[str, Any]) -> pa.RecordBatchReader:
    """Return the result of a query.

    Args:
        query: as the user gave it, for errors.
        text: the query in DuckDB's dialect.
        relations: what it may name.

    Raises:
        InvalidError: DuckDB is not installed, or the query is wrong, or a statement of another kind.
    """
    try:
        import duckdb
    except ImportError as error:
        raise not_installed("SQL without Spark needs DuckDB", "duckdb") from error
    connection = duckdb.connect()
    try:
        if any(each.type != duckdb.StatementType.SELECT for each in connection.extract_statements(text)):
            raise InvalidError(f"The statement {query!r} is no query, and was not run. Give a SELECT.")
        connection.execute("SET TimeZone = 'UTC'")
        for name, relation in relations.items():
            connection.register(name, relation)
        reader = pa.RecordBatchReader.from_stream(connection.sql(text))
    except duckdb.Error as error:
        raise wrong_query(query, error) from error
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(query, reader, connection))


def _batches(query: str, reader: pa.RecordBatchReader, connection: Any) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except pa.ArrowException as error:
        raise wrong_query(query, error) from error
    finally:
        connection.close()


def _translated(query: str) -> str:
    named = SOURCE.sub(_NAME, query)
    try:
        statements = sqlglot.transpile(named, read="spark", write="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise wrong_query(query, error) from error
    if len(statements) != 1:
        raise InvalidError(f"A SQL transformer is one query, not {len(statements)}: {query!r}.")
    return statements[0]


def wrong_query(query: str, error: Exception) -> InvalidError:
    """Return the error of a query that failed."""
    told = " ".join(_STYLES.sub("", str(error)).split()).rstrip(".")
    return InvalidError(f"The query {query!r} failed: {told}. Correct it.")
