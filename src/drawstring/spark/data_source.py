"""The Python data source, for SQL: `CREATE TEMPORARY VIEW ... USING hudi OPTIONS (path ...)`.

Spark plans a query in a separate Python process and requests partitions, each with some file slices.
DataFrame reads and writes of a registered session do not use the data source (see `format`).

Spark reuses the partitions of a view's first query for later queries, and would also reuse partitions that a
pushed-down filter has pruned. Therefore the source accepts no filters, and a view shows one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import datasource as D
from pyspark.sql.types import StructType

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import ReadOptions
from drawstring.entry import open as open_table
from drawstring.filegroups.file_slice_reader import read_task
from drawstring.query.scan import Scan
from drawstring.spark.reading.dataframe import scan_at, schema_of
from drawstring.spark.storage_options import is_storage_option
from drawstring.spark.streaming.sink import stream_writer
from drawstring.spark.streaming.source import CommitStream, stream_reader
from drawstring.spark.workers.rows import arrow_schema, spark_schema, with_types
from drawstring.spark.workers.tasks import serialize_errors, shares

_PARALLELISM: Final = 16
"""Assumed number of tasks that run at once; Spark does not pass the parallelism to a data source."""


class HudiSource(D.DataSource):
    """Reads Hudi tables under the name `hudi`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "hudi"

    @serialize_errors()
    def schema(self) -> StructType:
        """Return the columns of the query."""
        path, stored, read_options = self._parsed_options()
        return spark_schema(schema_of(open_table(path, storage_options=stored), read_options))

    @serialize_errors()
    def reader(self, schema: StructType) -> D.DataSourceReader:
        """Return the reader of the query."""
        return SliceReader(self._scan, schema)

    def streamReader(self, schema: StructType) -> D.DataSourceStreamReader:
        """Return the reader of the table as a stream."""
        path, stored, read_options = self._parsed_options()
        return stream_reader(CommitStream(path, stored, read_options), schema)

    @serialize_errors()
    def writer(self, schema: StructType, overwrite: bool) -> D.DataSourceWriter:
        """Raise UnsupportedError: this writer could not shuffle the rows of a file group together."""
        raise UnsupportedError(
            "SQL cannot write to this table. Use df.write.format('hudi') in a session that is registered with"
            " drawstring.spark.register, or drawstring.spark.write(df, path)."
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> D.DataSourceStreamWriter:
        """Return the writer of a stream, whose micro-batches pass through the driver."""
        options = {key.lower(): value for key, value in self.options.items()}
        path = options.pop("path", None)
        if not path:
            raise InvalidError("The path of the table is missing. Set option path.")
        stored = {key: value for key, value in options.items() if is_storage_option(key, path)}
        others = {key: value for key, value in options.items() if key not in stored}
        with serialize_errors():
            return stream_writer(path, stored, others, schema)

    def _scan(self) -> Scan:
        path, stored, read_options = self._parsed_options()
        return scan_at(path, stored, read_options)

    def _parsed_options(self) -> tuple[str, dict[str, str], ReadOptions]:
        """Return the table's root, its storage options and the read options."""
        options = dict(self.options)
        path = options.pop("path", None)
        if not path:
            raise InvalidError(
                "The path of the table is missing: Spark passes neither LOCATION nor OPTIONS of CREATE TABLE"
                " to a Python source. Use CREATE TEMPORARY VIEW ... USING hudi OPTIONS (path '...')."
            )
        stored = {key: value for key, value in options.items() if is_storage_option(key, path)}
        try:
            return path, stored, ReadOptions.parse(options)
        except DrawstringError as error:
            raise error.at(table=path) from error.__cause__


class DrawstringSource(HudiSource):
    """Reads Hudi tables under the name `drawstring`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "drawstring"


@dataclass
class SlicePartition(D.InputPartition):
    """A partition with some file slices."""

    tasks: list[bytes]


class SliceReader(D.DataSourceReader):
    """Reads the file slices of a query, some per partition.

    Args:
        scan: plans the query.
        schema: the columns that Spark expects.
    """

    def __init__(self, scan: Callable[[], Scan], schema: StructType) -> None:
        self._scan = scan
        self._schema = schema

    @serialize_errors()
    def partitions(self) -> Sequence[D.InputPartition]:
        """Plan the query and return its partitions."""
        tasks = self._scan().tasks()
        parts = shares([task.size_bytes for task in tasks], _PARALLELISM)
        return [SlicePartition([cloudpickle.dumps(tasks[number]) for number in part]) for part in parts]

    def read(self, partition: D.InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the file slices of a partition; for a query without partitions Spark passes none."""
        schema = arrow_schema(self._schema)
        with serialize_errors():
            for task in partition.tasks if isinstance(partition, SlicePartition) else []:
                for batch in read_task(cloudpickle.loads(task)):
                    yield with_types(batch, schema)
