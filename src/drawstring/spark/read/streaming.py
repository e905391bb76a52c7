"""`spark.readStream.format("hudi")`: a stream of what commits write, micro-batch after micro-batch.

    initialOffset ──> latestOffset(start, limit) ──> partitions(start, end) ──> read, in Python workers
         └── offsets: positions, as `follow` has them

A micro-batch is a range of commits, so one that is planned again after a restart has the same rows, and each
commit is in exactly one. Rows are those of an incremental query, or changes with their images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import datasource as D
from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import ReadOptions
from drawstring.entry import open as open_table
from drawstring.filegroups.read.cdc import read_task, task_bytes
from drawstring.query.facts import TableFacts, load_facts
from drawstring.query.incremental.batch_ends import Limits
from drawstring.query.incremental.follow import (
    FollowSpec,
    OnCleaned,
    batch_scan,
    next_position,
)
from drawstring.query.incremental.holds import Keeper
from drawstring.query.incremental.positions import (
    Position,
    newest,
    position_from,
    position_of,
    stored_position,
)
from drawstring.spark.engine.batches import with_types
from drawstring.spark.engine.types import arrow_schema
from drawstring.spark.engine.worker import shares

try:
    from pyspark.sql.streaming import datasource as limits_of_spark
except ImportError:  # PySpark 4.0 and 4.1 tell a source neither where it starts nor a limit.
    limits_of_spark = None  # type: ignore[assignment]  # a module that is not there

HAS_LIMITS: Final = limits_of_spark is not None
_EndsByItself: Any = limits_of_spark.SupportsTriggerAvailableNow if HAS_LIMITS else object

_PARALLELISM: Final = 16
"""Tasks at once that a micro-batch is divided for; Spark does not tell a source how many there are."""


@dataclass(frozen=True, slots=True)
class CommitStream:
    """Where a stream reads, and how.

    Attributes:
        path: the table's root.
        storage_options: options of the object store.
        asked: options of the read.
    """

    path: str
    storage_options: Mapping[str, str]
    asked: ReadOptions

    @property
    def spec(self) -> FollowSpec:
        """What micro-batches hold."""
        asked = self.asked
        return FollowSpec(
            asked.columns,
            asked.where,
            asked.query_type == "incremental" and asked.is_cdc,
            Limits(asked.max_commits, asked.max_bytes),
            OnCleaned(asked.on_cleaned),
        )

    def keeper(self) -> Keeper | None:
        """Return what keeps what the stream has not seen, None when that was not asked for."""
        name = self.asked.hold
        if name is None:
            return None
        return Keeper(
            open_table(self.path, storage_options=self.storage_options)._context, name, self.asked.hold_hours
        )

    def facts(self) -> TableFacts:
        """Look at the table."""
        state = open_table(self.path, storage_options=self.storage_options)._context
        return load_facts(state.storage, state.clock)


def stream_reader(stream: CommitStream, schema: StructType) -> D.DataSourceStreamReader:
    """Return what this PySpark reads a stream with.

    Raises:
        InvalidError: an option that is not for streams.
    """
    asked = stream.asked
    if asked.begin or asked.end or asked.as_of:
        raise InvalidError(
            "a stream has no begin, end or as.of.instant: set hoodie.datasource.streaming.startOffset"
        )
    if asked.query_type == "read_optimized":
        raise InvalidError("a stream reads what commits write, log files too: leave out the query type")
    return LimitedReader(stream, schema) if HAS_LIMITS else RememberingReader(stream, schema)


@dataclass
class CommitPartition(D.InputPartition):
    """Some tasks of a micro-batch."""

    tasks: list[bytes]


class CommitReader(D.DataSourceStreamReader):
    """What both kinds of readers do alike.

    Args:
        stream: what is read.
        schema: the columns that Spark expects.
    """

    def __init__(self, stream: CommitStream, schema: StructType) -> None:
        self._stream = stream
        self._schema = schema
        self._keeper = stream.keeper()

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query starts."""
        first = position_of(self._stream.facts(), self._stream.asked.start_offset)
        if self._keeper is not None:
            self._keeper.at(first)
        return first.fields()

    def commit(self, end: dict[str, Any]) -> None:
        """Take note that Spark is done with all up to an offset."""
        if self._keeper is not None:
            self._keeper.at(stored_position(end))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[D.InputPartition]:
        """Plan a micro-batch."""
        facts = self._stream.facts()
        begin, stop = position_from(facts, start), position_from(facts, end)
        if self._keeper is not None:
            self._keeper.at(begin)
        if begin == stop:
            return []
        spec = self._stream.spec
        if not spec.changes:
            # The columns of a stream are those that the table had when it was started.
            spec = replace(spec, columns=self._schema.names)
        tasks = batch_scan(facts, begin, stop, spec).tasks()
        parts = shares([task_bytes(task) for task in tasks], _PARALLELISM)
        return [CommitPartition([cloudpickle.dumps(tasks[number]) for number in part]) for part in parts]

    def read(self, partition: D.InputPartition) -> Iterator[pa.RecordBatch]:
        """Read some tasks, in a Python worker."""
        schema = arrow_schema(self._schema)
        for task in partition.tasks if isinstance(partition, CommitPartition) else []:
            for batch in read_task(cloudpickle.loads(task)):
                yield with_types(batch, schema)


class LimitedReader(CommitReader, _EndsByItself):  # type: ignore[misc]  # depends on the release
    """Reads a stream in PySpark 4.2 and later, which tell where a micro-batch starts."""

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
        """Tell Spark whether there are limits; `latestOffset` knows which."""
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
        """Note where a query that ends by itself ends."""
        self._until = newest(self._stream.facts())


class RememberingReader(CommitReader):
    """Reads a stream in PySpark 4.0 and 4.1, which do not tell where a micro-batch starts.

    It goes on from the micro-batch that it planned last. After a start or a restart it has planned none yet:
    the first new micro-batch has no limits then.
    """

    def __init__(self, stream: CommitStream, schema: StructType) -> None:
        super().__init__(stream, schema)
        self._last: Position | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query starts."""
        first = super().initialOffset()
        self._last = stored_position(first)
        return first

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # the form of PySpark 4.0
        """Return the end of the next micro-batch."""
        facts = self._stream.facts()
        last = self._last
        return (newest(facts) if last is None else next_position(facts, last, self._stream.spec)).fields()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[D.InputPartition]:
        """Plan a micro-batch."""
        self._last = position_from(self._stream.facts(), end)
        return super().partitions(start, end)
