"""Ingest another Hudi table, or the result of a query.

`HudiSource`: the rows that the commits of a table wrote, or all its changes, deletes included.

    checkpoint    the completion time of the last commit, as `HoodieIncrSource` has it; in version 6
                  the requested time

`QuerySource`: all rows of a query, once a run, as HoodieStreamer's `SqlSource`. The query is in Spark's
dialect and runs in DuckDB. As in Spark, files and tables are named by their format:
parquet.`/lake/rides/*.parquet`, csv.`...`, json.`...` and hudi.`/lake/rides`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
import sqlglot
from sqlglot import expressions as sql

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.entry import open as open_table
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.file_sources import parse_records
from drawstring.ingestion.source_protocol import Reading, SourceBatch, SparkQuery, TableRows
from drawstring.ingestion.transformers.sql import query_in_duckdb, wrong_query
from drawstring.model.instant import Instant, time_of
from drawstring.query.scan import Scan
from drawstring.schema.fields import IS_DELETED_COLUMN, without_meta
from drawstring.table import Table

_EARLIEST: Final = "earliest"


@dataclass(frozen=True, slots=True)
class HudiSource:
    """Commits of a table.

    Attributes:
        table: the table.
        limit: default number of commits in a batch. The first batch has everything there is.
        begins_late: whether the first batch has the newest commit only.
        has_changes: whether records that were deleted come as well, marked by `_hoodie_is_deleted`.
    """

    table: Table
    limit: int
    begins_late: bool = False
    has_changes: bool = False

    @property
    def unit(self) -> str:
        return "commits"

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        start = checkpoint.key if checkpoint is not None else None
        commits = self._commits(start)
        if not commits:
            return None
        if start is None and self.begins_late:
            start = time_of(commits[-2]) if len(commits) > 1 else None
            commits = commits[-1:]
        taken = commits if start is None else commits[: self.limit if limit is None else limit]
        end = time_of(taken[-1])
        left = sum(time_of(each) > end for each in commits)
        size, begin = len(commits) - left, start or _EARLIEST
        if self.has_changes:
            return SourceBatch(Checkpoint(end), size, left, partial(self._changes, begin, end))
        scan = partial(self._scan, begin, end)
        return SourceBatch(Checkpoint(end), size, left, lambda _: scan().to_reader(), TableRows(scan))

    def committed(self, checkpoint: Checkpoint) -> None:
        """Do nothing: the table keeps its commits as its cleaning says."""

    def close(self) -> None:
        """Do nothing."""

    def _commits(self, start: str | None) -> Sequence[Instant]:
        """Return the commits after a time, oldest first, up to a write that may still come before others."""
        if start is not None and not start.isdigit():
            raise InvalidError(
                f"The checkpoint {start!r} is no time of a commit: the rows came from another kind of source."
                " Give checkpoint, or ignore_checkpoint to begin with the whole table."
            )
        timeline = self.table.timeline
        commits = sorted(timeline.writes(), key=time_of)
        if not self.table.config.rules.layout.has_completion_times and timeline.pending_writes():
            first = min(each.requested for each in timeline.pending_writes())
            commits = [each for each in commits if each.requested < first]
        return [each for each in commits if start is None or time_of(each) > start]

    def _scan(self, start: str, end: str) -> Scan:
        columns = without_meta(self.table.schema).names
        return self.table.incremental(start, end, columns=columns)

    def _changes(self, start: str, end: str, reading: Reading) -> pa.RecordBatchReader:
        schema = without_meta(self.table.schema)
        _check(schema)
        changes = self.table.changes(start, end).to_arrow().combine_chunks()
        images = pc.coalesce(changes["after"], changes["before"]).cast(pa.binary()).to_pylist()
        parsed = parse_records(images, Reading(schema, reading.reject), lambda at: f"change {at} up to {end}")
        is_deleted = pc.equal(changes["op"], "d")
        if parsed.kept is not None:
            is_deleted = is_deleted.take(pa.array(parsed.kept, pa.int64()))
        rows = _in_order(parsed.rows, schema)
        return rows.append_column(IS_DELETED_COLUMN, is_deleted).to_reader()


def _in_order(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with all columns of a table in their order; those that no image has are null."""
    found = {*rows.column_names}
    columns = [
        rows.column(field.name) if field.name in found else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema.names)


def _check(schema: pa.Schema) -> None:
    """Check that images, which are JSON, can be read back exactly.

    Raises:
        UnsupportedError: a column has a type of which they keep too little.
    """
    for field in schema:
        if pt.is_binary(field.type) or pt.is_map(field.type) or pt.is_time(field.type):
            raise UnsupportedError(
                f"Changes of column {field.name} ({field.type}) cannot be ingested by this release. Use the"
                " source hudi, which has the rows without deletes."
            )


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
