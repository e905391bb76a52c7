"""SQL without Spark: DuckDB runs it, if it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import pyarrow as pa

from drawstring.base.errors import DrawstringError, InvalidError, not_installed
from drawstring.engine.protocol import Relation


def run_in_duckdb(query: str, relations: Mapping[str, Relation], threads: int) -> pa.Table:
    """Return the result of a query; see `Engine.sql`.

    Args:
        query: the query.
        relations: the tables that it may name.
        threads: number of threads of DuckDB.

    Raises:
        InvalidError: DuckDB refuses the query, or is not installed.
    """
    if find_spec("duckdb") is None:
        raise not_installed("SQL without Spark needs DuckDB", "duckdb")
    import duckdb

    with duckdb.connect(config={"threads": threads}) as connection:
        try:
            for name, relation in relations.items():
                connection.register(name, relation.dataset())
            found = connection.sql(query)
            if found is None:
                raise InvalidError(f"The statement {query!r} is no query. Give a SELECT.")
            return found.to_arrow_table()
        except duckdb.Error as error:
            if isinstance(error.__cause__, DrawstringError):
                raise error.__cause__ from error
            raise InvalidError(
                f"The query {query!r} fails: {' '.join(str(error).split())}. Correct it: it runs in DuckDB."
            ) from error
