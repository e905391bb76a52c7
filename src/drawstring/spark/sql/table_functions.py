"""Table-valued functions: `SELECT * FROM hudi_table_changes('rides', 'cdc', 'earliest')`.

| function | rows |
|---|---|
| hudi_table_changes(table, `latest_state` or `cdc`, start[, end]) | an incremental or a change query |
| hudi_query(table, `snapshot` or `read_optimized`) | the table |
| hudi_query_timeline(table[, archived]) | instants |
| hudi_filesystem_view(table[, partitions]) | file slices |
| hudi_metadata(table) | the records of the metadata table |
| hudi_vector_search, hudi_vector_search_batch | the nearest vectors (`vector_search`) |

A table is a name in the catalog or a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from drawstring.base.errors import InvalidError
from drawstring.entry import open as open_table
from drawstring.metadata.record_tables import records
from drawstring.metadata.table import FILES, Kind, open_metadata_table, record_schema
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileSlice
from drawstring.spark import functions
from drawstring.spark.errors import analysed
from drawstring.spark.reading.plan_marks import plan_of
from drawstring.spark.sql.procedures.show import totals
from drawstring.spark.sql.tables import NamedTable, open_named_table
from drawstring.spark.sql.vector_search import search, search_batch
from drawstring.spark.workers.rows import arrow_schema, spark_schema, with_types
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.timeline import file_name

_EARLIEST: Final = "earliest"
_CDC: Final = "cdc"
_UNKNOWN: Final = (-1,) * 6
_ALL_PARTITIONS: Final = "__all_partitions__"
_OF_PARTITIONS, _OF_FILES = 1, 2
"""Types of records of the metadata table."""

_TIMELINE: Final = (
    "Timestamp string, Action string, State string, Completion_Time string, File_Name string,"
    " Total_Bytes_Written bigint, Total_Files_Updated bigint, Total_Partitions_Written bigint,"
    " Total_Records_Written bigint, Total_Updated_Records_Written bigint, Total_Write_Errors bigint"
)
_FILE_SLICES: Final = (
    "File_ID string, Partition_Path string, Base_Instant_Time string, Base_File_Path string,"
    " Base_File_Size bigint, Log_File_Count bigint, Log_File_Size bigint, Log_File_Scheduled bigint,"
    " Log_File_Unscheduled bigint"
)
_METADATA: Final = (
    "key string, type int, filesystemMetadata map<string, struct<size: bigint, isDeleted: boolean>>"
)
_INDEXED: Final = (Kind.BLOOM_FILTERS, Kind.STATISTICS, Kind.RECORD_INDEX, Kind.SECONDARY_INDEX)
"""Kinds of the other records, in the order of their columns."""


def plan_of_function(asked: Mapping[str, Any], spark: SparkSession) -> Any:
    """Return the plan of the rows of a function.

    Args:
        asked: `name`, and the `values` of its arguments as texts.
        spark: the session.

    Raises:
        InvalidError: the arguments are not those of the function.
    """
    function, counts = FUNCTIONS[asked["name"]]
    values = asked["values"]
    if len(values) not in counts:
        raise InvalidError(
            f"{asked['name']} takes {' or '.join(map(str, counts))} arguments, not {len(values)}. The first"
            " one is the table."
        )
    with analysed():
        return plan_of(function(spark, open_named_table(spark, values[0]), values[1:]))


def _changes(spark: SparkSession, named: NamedTable, values: Sequence[str]) -> DataFrame:
    kind, start, end = (*values, None)[:3] if len(values) == 2 else values
    start = None if start in (_EARLIEST, "000") else start
    if kind == _CDC:
        return functions.changes(spark, named.path, start or _EARLIEST, end)
    if kind != "latest_state":
        raise InvalidError(f"There is no format {kind} of changes. Use latest_state or cdc.")
    return functions.read(spark, named.path, incremental=(start or _EARLIEST, end))


def _query(spark: SparkSession, named: NamedTable, values: Sequence[str]) -> DataFrame:
    if values[0] not in ("snapshot", "read_optimized"):
        raise InvalidError(f"There is no query {values[0]}. Use snapshot or read_optimized.")
    return functions.read(spark, named.path, read_optimized=values[0] == "read_optimized")


def _timeline(spark: SparkSession, named: NamedTable, values: Sequence[str]) -> DataFrame:
    facts = named.table._calls.facts()
    layout = facts.config.layout

    def row(instant: Any, metadata: CommitMetadata | None) -> tuple[Any, ...]:
        counts = _UNKNOWN
        if metadata is not None:
            size_bytes, _, updated, partitions, records, updates, errors = totals(metadata.stats)
            counts = (size_bytes, updated, partitions, records, updates, errors)
        begin = (instant.requested, str(instant.action), str(instant.state.name), instant.completed)
        return (*begin, file_name(instant, layout), *counts)

    rows = [
        row(each, facts.store.commit_metadata(each) if each.is_write else None)
        for each in facts.timeline.instants
    ]
    if values and values[0].lower() == "true":
        archive, known = open_archive(facts.storage, facts.config), {each[0] for each in rows}
        for each in archive.completed(""):
            if each.requested not in known:
                rows.append(row(each, archive.commit_metadata(each) if each.is_write else None))
    return spark.createDataFrame(sorted(rows), _TIMELINE)


def _file_slices(spark: SparkSession, named: NamedTable, values: Sequence[str]) -> DataFrame:
    view = named.table._calls.facts().view
    pattern = (values[0] if values else "").strip("/")
    planned = view.pending_compactions()

    def row(each: FileSlice) -> tuple[Any, ...]:
        path, size = (each.base.status.path, each.base.status.size_bytes) if each.base else ("", -1)
        log_bytes = sum(log.status.size_bytes for log in each.logs)
        is_planned = planned.get((each.partition, each.file_id)) == each.base_instant
        sizes = (log_bytes, 0) if is_planned else (0, log_bytes)
        return (
            each.file_id,
            each.partition,
            each.base_instant,
            path,
            size,
            len(each.logs),
            log_bytes,
            *sizes,
        )

    rows = [
        row(each)
        for partition in view.partitions()
        if not pattern or fnmatch(partition, pattern)
        for group in view.groups(partition)
        for each in group.slices
    ]
    return spark.createDataFrame(rows, _FILE_SLICES)


def _metadata(spark: SparkSession, named: NamedTable, values: Sequence[str]) -> DataFrame:
    files: dict[str, dict[str, tuple[int, bool]]] = {}
    for row in named.table.inspect.metadata("files").to_pylist():
        files.setdefault(row["partition"] or ".", {})[row["file"]] = (row["size_bytes"], False)
    rows: list[tuple[Any, ...]] = [(path, _OF_FILES, found) for path, found in files.items()]
    if files:
        rows.append((_ALL_PARTITIONS, _OF_PARTITIONS, dict.fromkeys(files, (0, False))))
    listed = spark.createDataFrame(rows, _METADATA)
    columns = spark_schema(_indexed_columns())
    names = [(name,) for name in sorted({*named.table.config.metadata_partitions} - {FILES})]
    asked = spark.createDataFrame(names, "partition string").repartition(max(len(names), 1))
    read = IndexRecords(named.table._calls.facts().storage.spec, arrow_schema(columns))
    whole = listed.unionByName(asked.mapInArrow(read, columns), allowMissingColumns=True)
    return whole.select(*listed.columns, *(name for name in columns.names if name not in listed.columns))


def _indexed_columns() -> pa.Schema:
    """Return the columns of the records of indexes, in Hudi's order."""
    fields = {field.name: field for kind in _INDEXED for field in record_schema(kind)}
    return pa.schema(fields.values())


@dataclass(frozen=True, slots=True)
class IndexRecords:
    """Reads the records of partitions of the metadata table but its list of files, by their names.

    Attributes:
        storage: opens the table.
        columns: of the result.
    """

    storage: StorageSpec
    columns: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the records."""
        table = open_table(self.storage.uri, storage_options=self.storage.options)
        facts = table._calls.facts()
        opened = open_metadata_table(facts.storage, facts.config, facts.timeline, table._context.clock)
        for name in (name for batch in batches for name in batch.column(0).to_pylist()):
            for stored in records(opened, name).to_batches():
                yield with_types(self._whole(stored), self.columns)

    def _whole(self, stored: pa.RecordBatch) -> pa.RecordBatch:
        """Return records with all columns; those of other kinds of records are null."""
        columns = [
            stored.column(field.name)
            if field.name in stored.schema.names
            else pa.nulls(stored.num_rows, field.type)
            for field in self.columns
        ]
        return pa.RecordBatch.from_arrays(columns, self.columns.names)


FUNCTIONS: Final[
    Mapping[str, tuple[Callable[[SparkSession, NamedTable, Sequence[str]], DataFrame], tuple[int, ...]]]
] = {
    "hudi_table_changes": (_changes, (3, 4)),
    "hudi_query": (_query, (2,)),
    "hudi_query_timeline": (_timeline, (1, 2)),
    "hudi_filesystem_view": (_file_slices, (1, 2)),
    "hudi_metadata": (_metadata, (1,)),
    "hudi_vector_search": (search, tuple(range(4, 9))),
    "hudi_vector_search_batch": (search_batch, tuple(range(5, 10))),
}
"""The functions, and how many arguments each takes."""
