"""The result of a query as a source, as HoodieStreamer's `SqlSource` has it: all its rows, once a run.

The query is in Spark's dialect and runs in DuckDB. As in Spark, files and tables are named by their format:
parquet.`/lake/rides/*.parquet`, csv.`...`, json.`...` and hudi.`/lake/rides`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import sqlglot
from sqlglot import expressions as sql

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.entry import open as open_table
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.sources.protocol import Reading, SourceBatch, SparkQuery
from drawstring.ingestion.transformers.sql import query_in_duckdb, wrong_query

_READERS: Final[Mapping[str, str]] = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}
_HUDI: Final = "hudi"
_TABLE: Final = "drawstring_table_"


@dataclass(slots=True)
class QuerySource:
    """A query.

    Attributes:
        query: in Spark's dialect.
        storage_options: of Hudi tables that it names.
        clock: tells when it ran.
        has_checkpoint: whether the time is the checkpoint of the commit; it has none otherwise.
    """

    query: str
    storage_options: Mapping[str, str]
    clock: Clock
    has_checkpoint: bool = False
    _has_run: bool = False

    @property
    def unit(self) -> str:
        return "queries"

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        if self._has_run:
            return None
        self._has_run = True
        now = str(self.clock.now_ms())
        known = checkpoint.key if checkpoint is not None else ""
        position = Checkpoint(now) if self.has_checkpoint else Checkpoint(known, state=now)
        return SourceBatch(position, 1, 0, self._rows, SparkQuery(self.query))

    def committed(self, checkpoint: Checkpoint) -> None:
        """Do nothing: a query has no position."""

    def close(self) -> None:
        """Do nothing."""

    def _rows(self, reading: Reading) -> pa.RecordBatchReader:
        text, tables = named_tables(self.query)
        datasets = {
            name: open_table(root, storage_options=self.storage_options or None).to_arrow_dataset()
            for name, root in tables.items()
        }
        return query_in_duckdb(self.query, text, datasets)


def named_tables(query: str) -> tuple[str, dict[str, str]]:
    """Return a query for DuckDB, and the roots of the Hudi tables that it names, by their names in it.

    Args:
        query: in Spark's dialect.

    Raises:
        InvalidError: the query cannot be parsed, or is several statements.
    """
    try:
        statements = sqlglot.parse(query, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise wrong_query(query, error) from error
    if len(statements) != 1 or statements[0] is None:
        raise InvalidError(f"A SQL source is one query, not {len(statements)}: {query!r}.")
    tables: dict[str, str] = {}

    def replaced(node: Any) -> Any:
        if not isinstance(node, sql.Table) or node.db.lower() not in (*_READERS, _HUDI):
            return node
        if node.db.lower() == _HUDI:
            named = sql.to_table(f"{_TABLE}{len(tables)}")
            tables[named.name] = node.name
        else:
            call = sql.Anonymous(this=_READERS[node.db.lower()], expressions=[sql.Literal.string(node.name)])
            named = sql.Table(this=call)
        named.set("alias", node.args.get("alias"))
        return named

    transform: Callable[[Any], Any] = statements[0].transform
    return transform(replaced).sql("duckdb"), tables
