"""Read streams: `spark.readStream.format("hudi")` returns micro-batches of the rows that commits write.

    initialOffset ──> latestOffset(start, limit) ──> partitions(start, end) ──> read, in Python workers
         └── offsets: positions, as in `query.stream`

A micro-batch is a range of commits. It has the same rows when it is planned again after a restart, and each
commit is in exactly one micro-batch. The rows are those of an incremental query, or changes with before and
after images.

`NamedStreamReader` is PySpark's reader of streams, for tables of the catalog and with options of Hudi that
streams ignore.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import datasource as D
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import ReadOptions
from drawstring.entry import open as open_table
from drawstring.filegroups.file_slice_reader import read_task
from drawstring.query.policies import OnCleaned
from drawstring.query.stream import (
    FollowSpec,
    Limits,
    Position,
    ReaderHold,
    batch_scan,
    newest,
    next_position,
    position_from,
    position_of,
    stored_position,
)
from drawstring.query.table_state import TableFacts, facts_of
from drawstring.spark.errors import analysed
from drawstring.spark.reading.dataframe import check_values_in_paths
from drawstring.spark.sql.tables import location_of
from drawstring.spark.workers.rows import arrow_schema, with_types
from drawstring.spark.workers.tasks import shares

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

try:
    from pyspark.sql.streaming import datasource as limits_of_spark
except ImportError:  # PySpark 4.0 and 4.1 pass a source neither the start offset nor a limit.
    limits_of_spark = None  # type: ignore[assignment]  # the module does not exist

HAS_LIMITS: Final = limits_of_spark is not None
_AvailableNowSupport: Any = limits_of_spark.SupportsTriggerAvailableNow if HAS_LIMITS else object

_PARALLELISM: Final = 16
"""Assumed number of tasks that run at once; Spark does not pass the parallelism to a source."""


@dataclass(frozen=True, slots=True)
class CommitStream:
    """The table and the options of a stream.

    Attributes:
        path: the table's root.
        storage_options: options of the object store.
        read_options: options of the read.
    """

    path: str
    storage_options: Mapping[str, str]
    read_options: ReadOptions

    @property
    def spec(self) -> FollowSpec:
        """Contents of the micro-batches."""
        read_options = self.read_options
        return FollowSpec(
            read_options.columns,
            read_options.where,
            read_options.query_type == "incremental" and read_options.is_cdc,
            Limits(read_options.max_commits, read_options.max_bytes),
            OnCleaned(read_options.on_cleaned),
        )

    def keeper(self) -> ReaderHold | None:
        """Return the keeper of the stream's hold, None if the options request no hold."""
        name = self.read_options.hold
        if name is None:
            return None
        return ReaderHold(
            open_table(self.path, storage_options=self.storage_options)._context,
            name,
            self.read_options.hold_hours,
        )

    def facts(self) -> TableFacts:
        """Load the table."""
        options = self.read_options.of_table
        table = open_table(self.path, storage_options=self.storage_options, options=options)
        check_values_in_paths(table.config, self.read_options)
        context = table._context
        return facts_of(context)


def stream_reader(stream: CommitStream, schema: StructType) -> D.DataSourceStreamReader:
    """Return the stream reader for this PySpark release.

    Raises:
        InvalidError: an option that does not apply to streams.
    """
    read_options = stream.read_options
    if read_options.begin or read_options.end or read_options.as_of:
        raise InvalidError(
            "A stream has no begin, end or as.of.instant. Set hoodie.datasource.streaming.startOffset."
        )
    if read_options.query_type == "read_optimized":
        raise InvalidError(
            "A stream reads log files too, so it cannot be read optimized. Leave out the query type."
        )
    return LimitedReader(stream, schema) if HAS_LIMITS else RememberingReader(stream, schema)


@dataclass
class CommitPartition(D.InputPartition):
    """A partition with some tasks of a micro-batch."""

    tasks: list[bytes]


class CommitReader(D.DataSourceStreamReader):
    """The common base of both stream readers.

    Args:
        stream: the stream.
        schema: the columns that Spark expects.
    """

    def __init__(self, stream: CommitStream, schema: StructType) -> None:
        self._stream = stream
        self._schema = schema
        self._keeper = stream.keeper()

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset at which a new query starts."""
        first = position_of(self._stream.facts(), self._stream.read_options.start_offset)
        if self._keeper is not None:
            self._keeper.at(first)
        return first.fields()

    def commit(self, end: dict[str, Any]) -> None:
        """Move the hold to an offset up to which Spark has processed the stream."""
        if self._keeper is not None:
            self._keeper.at(stored_position(end))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[D.InputPartition]:
        """Plan a micro-batch and return its partitions."""
        facts = self._stream.facts()
        begin, stop = position_from(facts, start), position_from(facts, end)
        if self._keeper is not None:
            self._keeper.at(begin)
        if begin == stop:
            return []
        spec = self._stream.spec
        if not spec.changes:
            # A stream has the columns that the table had when the stream started.
            spec = replace(spec, columns=self._schema.names)
        tasks = batch_scan(facts, begin, stop, spec).tasks()
        parts = shares([task.size_bytes for task in tasks], _PARALLELISM)
        return [CommitPartition([cloudpickle.dumps(tasks[number]) for number in part]) for part in parts]

    def read(self, partition: D.InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the tasks of a partition, in a Python worker."""
        schema = arrow_schema(self._schema)
        for task in partition.tasks if isinstance(partition, CommitPartition) else []:
            for batch in read_task(cloudpickle.loads(task)):
                yield with_types(batch, schema)


class LimitedReader(CommitReader, _AvailableNowSupport):  # type: ignore[misc]  # depends on the release
    """Stream reader for PySpark 4.2 and later, which pass the start offset of a micro-batch."""

    def __init__(self, stream: CommitStream, schema: StructType) -> None:
        super().__init__(stream, schema)
        self._until: Position | None = None

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Return the end of the micro-batch that starts at an offset."""
        spec = self._stream.spec
        limits = Limits() if isinstance(limit, limits_of_spark.ReadAllAvailable) else spec.limits
        facts = self._stream.facts()
        begin = position_from(facts, start)
        return next_position(facts, begin, replace(spec, limits=limits), self._until).fields()

    def getDefaultReadLimit(self) -> Any:
        """Return whether there are limits, in Spark's terms; `latestOffset` applies them."""
        limits = self._stream.spec.limits
        if limits.commits is not None:
            return limits_of_spark.ReadMaxFiles(limits.commits)
        if limits.bytes is not None:
            return limits_of_spark.ReadMaxBytes(limits.bytes)
        return limits_of_spark.ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the newest offset, for the query's progress."""
        return newest(self._stream.facts()).fields()

    def prepareForTriggerAvailableNow(self) -> None:
        """Record the end of a query with trigger `availableNow`."""
        self._until = newest(self._stream.facts())


class RememberingReader(CommitReader):
    """Stream reader for PySpark 4.0 and 4.1, which do not pass the start offset of a micro-batch.

    It continues after the micro-batch that it planned last. After a restart it has not planned any yet, so
    the limits do not apply to the first new micro-batch.
    """

    def __init__(self, stream: CommitStream, schema: StructType) -> None:
        super().__init__(stream, schema)
        self._last: Position | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset at which a new query starts."""
        first = super().initialOffset()
        self._last = stored_position(first)
        return first

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # signature of PySpark 4.0
        """Return the end of the next micro-batch."""
        facts = self._stream.facts()
        last = self._last
        return (newest(facts) if last is None else next_position(facts, last, self._stream.spec)).fields()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[D.InputPartition]:
        """Plan a micro-batch and return its partitions."""
        self._last = position_from(self._stream.facts(), end)
        return super().partitions(start, end)


_FORMAT: Final = "hudi"
_IGNORED_OPTIONS: Final = (
    "hoodie.datasource.read.begin.instanttime",
    "hoodie.datasource.read.begin.time",
)
"""Options of incremental queries that a stream of Hudi takes and does not follow."""
_LOG: Final = logging.getLogger("drawstring")


class NamedStreamReader(DataStreamReader):
    """Reads streams of Hudi tables by their names, too; Spark asks its catalog for a stream."""

    def option(self, key: str, value: OptionalPrimitiveType) -> NamedStreamReader:
        """Set an option; leave out one that a stream does not follow, with a warning."""
        if key.lower() not in _IGNORED_OPTIONS:
            super().option(key, value)
            return self
        _LOG.warning(
            "%s has no effect on a stream, as in Hudi. A new stream starts at"
            " hoodie.datasource.streaming.startOffset, by default at the first commit.",
            key,
        )
        return self

    def options(self, **options: Any) -> NamedStreamReader:
        """Set options, each as `option` does."""
        for key, value in options.items():
            self.option(key, value)
        return self

    @analysed()
    def table(self, tableName: str) -> DataFrame:
        """Read a table of the catalog as a stream: a Hudi table with drawstring, others with PySpark."""
        location = location_of(self._spark, tableName)
        return super().table(tableName) if location is None else self.format(_FORMAT).load(location)
