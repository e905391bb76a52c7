"""The Python data source, for SQL text: `CREATE TEMPORARY VIEW ... USING hudi OPTIONS (path ...)`.

Spark plans it in a Python process of its own and asks for partitions, each some file slices. DataFrame
reads and writes of a registered session do not come here (see `takeover`).

Spark keeps the partitions of a view's first query for the queries after it, and would keep those that a
pushed-down filter left as well: so filters are not taken, and a view shows one snapshot.
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
from drawstring.filegroups.read.cdc import read_task, task_bytes
from drawstring.query.scan import Scan
from drawstring.spark.engine.batches import with_types
from drawstring.spark.engine.failures import carried
from drawstring.spark.engine.types import arrow_schema, spark_schema
from drawstring.spark.engine.worker import shares
from drawstring.spark.locations import is_storage_option
from drawstring.spark.read.read_options import scan_of, schema_of
from drawstring.spark.read.streaming import CommitStream, stream_reader

_PARALLELISM: Final = 16
"""Tasks at once that a query is divided for; Spark does not tell a data source how many there are."""


class HudiSource(D.DataSource):
    """Reads Hudi tables under the name `hudi`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "hudi"

    def schema(self) -> StructType:
        """Return the columns of the query."""
        path, stored, asked = self._told()
        return spark_schema(schema_of(open_table(path, storage_options=stored), asked))

    def reader(self, schema: StructType) -> D.DataSourceReader:
        """Return what reads the query."""
        return SliceReader(self._scan, schema)

    def streamReader(self, schema: StructType) -> D.DataSourceStreamReader:
        """Return what reads the table as a stream."""
        path, stored, asked = self._told()
        return stream_reader(CommitStream(path, stored, asked), schema)

    def writer(self, schema: StructType, overwrite: bool) -> D.DataSourceWriter:
        """Refuse: Spark would not let this writer bring the rows of a file group together."""
        raise UnsupportedError(
            "SQL cannot write to this table: use df.write.format('hudi') in a session that went through"
            " drawstring.spark.register, or drawstring.spark.write(df, path)"
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> D.DataSourceStreamWriter:
        """Refuse: each batch of a stream is a write of its own."""
        raise UnsupportedError(
            "a stream cannot write to this table by itself: use"
            " df.writeStream.foreachBatch(lambda batch, number: batch.write.format('hudi')...)"
        )

    def _scan(self) -> Scan:
        path, stored, asked = self._told()
        return scan_of(open_table(path, storage_options=stored), asked)

    def _told(self) -> tuple[str, dict[str, str], ReadOptions]:
        """Return the table's root, the options of its storage, and those of the read."""
        options = dict(self.options)
        path = options.pop("path", None)
        if not path:
            raise InvalidError(
                "Spark did not say where the table is: it tells a Python source neither LOCATION nor"
                " OPTIONS of a CREATE TABLE. Use CREATE TEMPORARY VIEW ... USING hudi OPTIONS (path '...')"
            )
        stored = {key: value for key, value in options.items() if is_storage_option(key)}
        try:
            return path, stored, ReadOptions.parse(options)
        except DrawstringError as error:
            raise error.at(table=path) from error.__cause__


class DrawstringSource(HudiSource):
    """The same under the name `drawstring`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "drawstring"


@dataclass
class SlicePartition(D.InputPartition):
    """Some file slices."""

    tasks: list[bytes]


class SliceReader(D.DataSourceReader):
    """Reads the file slices of a query, one a partition.

    Args:
        scan: plans the query.
        schema: the columns that Spark expects.
    """

    def __init__(self, scan: Callable[[], Scan], schema: StructType) -> None:
        self._scan = scan
        self._schema = schema

    def partitions(self) -> Sequence[D.InputPartition]:
        """Plan the query."""
        tasks = self._scan().tasks()
        parts = shares([task_bytes(task) for task in tasks], _PARALLELISM)
        return [SlicePartition([cloudpickle.dumps(tasks[number]) for number in part]) for part in parts]

    def read(self, partition: D.InputPartition) -> Iterator[pa.RecordBatch]:
        """Read some file slices; for a query without any, Spark asks once with nothing."""
        schema = arrow_schema(self._schema)
        with carried():
            for task in partition.tasks if isinstance(partition, SlicePartition) else []:
                for batch in read_task(cloudpickle.loads(task)):
                    yield with_types(batch, schema)
