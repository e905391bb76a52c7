"""Define commit metadata, write statistics and column summaries (specification: Commit Metadata).

A `CommitMetadata` has a `WriteStat` for each file that the write wrote. A `ColumnSummary` has the bounds
and counts of a column in a file, as the metadata table stores them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """Bounds and counts of a column in one file, or in several together.

    Attributes:
        column: name of the column; names of nested fields are joined by dots.
        bounds: the least and the greatest value, of the type of the column; both null if all values are
            null. NaN counts as infinity, since readers compare a bound of NaN in different ways.
        values: number of values, nulls included.
        nulls: number of nulls.
        size_bytes, plain_bytes: size in a base file, compressed and not; 0 for log files.
    """

    column: str
    bounds: pa.Array
    values: int
    nulls: int
    size_bytes: int = 0
    plain_bytes: int = 0

    @staticmethod
    def of(column: str, values: pa.Array | pa.ChunkedArray) -> ColumnSummary:
        """Return the summary of some values.

        Args:
            column: name of the column.
            values: of a type with an order.
        """
        return ColumnSummary(column, bounds_of(values), len(values), values.null_count)

    @property
    def lacks_bounds(self) -> bool:
        """Whether there are values, but their bounds are not known."""
        return self.values > self.nulls and self.bounds.null_count > 0


def bounds_of(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the least and the greatest of some values: null if there are none, and zeros of either sign.

    Args:
        values: of a type with an order; NaN counts as infinity.
    """
    if pt.is_dictionary(values.type):
        distinct = pc.unique(values)
        values = distinct.dictionary.take(distinct.indices)
    if pt.is_null(values.type):
        return pa.nulls(2)
    if not pt.is_floating(values.type):
        found = pc.min_max(values)
        return pa.array([found["min"], found["max"]], values.type)
    is_nan = pc.is_nan(values)
    found = pc.min_max(values.filter(pc.invert(is_nan)))
    least, greatest = found["min"].as_py(), found["max"].as_py()
    if pc.any(is_nan).as_py():
        least, greatest = (math.inf if least is None else least), math.inf
    return pa.array([-0.0 if least == 0 else least, 0.0 if greatest == 0 else greatest], values.type)


def merged(summaries: Sequence[ColumnSummary], kind: pa.DataType | None = None) -> ColumnSummary:
    """Return the summary of the values of several files together; it lacks bounds if one of them does.

    Args:
        summaries: of one column, at least one.
        kind: the type of the bounds; None for that of the first one that has some.
    """
    types = (each.bounds.type for each in summaries if not pt.is_null(each.bounds.type))
    kind = kind or next(types, pa.null())
    known = [each.bounds for each in summaries if each.bounds.null_count == 0]
    bounds = bounds_of(pa.chunked_array([each.cast(kind) for each in known], kind))
    nulls = sum(each.nulls for each in summaries)
    if any(each.lacks_bounds for each in summaries):
        bounds, nulls = pa.nulls(2, kind), 0
    return ColumnSummary(
        summaries[0].column,
        bounds,
        sum(each.values for each in summaries),
        nulls,
        sum(each.size_bytes for each in summaries),
        sum(each.plain_bytes for each in summaries),
    )


class WriteOperation(StrEnum):
    """The operation of a commit, as named in commit metadata."""

    INSERT = "INSERT"
    UPSERT = "UPSERT"
    BULK_INSERT = "BULK_INSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"
    BOOTSTRAP = "BOOTSTRAP"
    COMPACT = "COMPACT"
    CLUSTER = "CLUSTER"
    LOG_COMPACT = "LOG_COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    BUCKET_RESCALE = "BUCKET_RESCALE"
    PARTITION_TTL = "PARTITION_TTL"
    UNKNOWN = "UNKNOWN"


WRITER: Final = "drawstring.writer"
"""Key of the extra metadata under which drawstring notes the process that committed, for messages."""

STREAM_POSITIONS: Final = "_hudi_streaming_sink_checkpoint"
"""Key of the positions of streams, as Hudi's sink writes them."""

STREAM_QUERY: Final = "_drawstring_streaming_query"
"""Key of the id of a Structured Streaming query."""

_WRITER_MAX: Final = 200
_SERVICES: Final = frozenset(
    {
        WriteOperation.COMPACT,
        WriteOperation.LOG_COMPACT,
        WriteOperation.CLUSTER,
        WriteOperation.INDEX,
        WriteOperation.ALTER_SCHEMA,
        WriteOperation.BUCKET_RESCALE,
        WriteOperation.PARTITION_TTL,
    }
)


@dataclass(frozen=True, slots=True)
class WriterFacts:
    """What the writer of a file had in its hands for the metadata table; workers return it to the driver.

    Attributes:
        statistics: bounds and counts of the columns of the file; None if they were not collected.
        changed_keys: the keys of records that the file has and the file group had not before, or the reverse,
            as columns `key` and `is_removed`; None if they were not collected, or are too many.
        is_looked_up: whether the keys that come to the file were looked up in all partitions of the table.
    """

    statistics: tuple[ColumnSummary, ...] | None = None
    changed_keys: pa.Table | None = None
    is_looked_up: bool = False


@dataclass(frozen=True, slots=True)
class WriteStat:
    """Statistics of one file of a write (HoodieWriteStat); workers also return them to the driver.

    Attributes:
        partition: partition path.
        file_id: the file group.
        path: the file, relative to the table's root.
        prev_commit: base instant of the previous file slice, `"null"` for a new file group.
        num_writes: records in the new file; of a base file this includes those copied unchanged.
        num_inserts, num_updates, num_deletes: records inserted, updated and deleted.
        size_bytes: size of the file.
        base_file: name of the base file of a log file's slice, empty for none; None for base files.
        log_version: version number of a log file; None for base files.
        log_files: names of the slice's log files including this one; None for base files.
        prev_base_file: name of the base file that this one replaces.
        log_records, log_blocks, log_files_compacted, log_size_compacted: input of a compaction.
        seconds: duration.
        created: whether the file group is new.
        cdc_files: sizes in bytes of the CDC log files of this write, by path relative to the table's root.
        held: what its writer had in its hands; never stored, and no part of what makes two of them equal.
    """

    partition: str
    file_id: str
    path: str
    prev_commit: str = "null"
    num_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    num_deletes: int = 0
    size_bytes: int = 0
    base_file: str | None = None
    log_version: int | None = None
    log_files: tuple[str, ...] | None = None
    prev_base_file: str | None = None
    log_records: int = 0
    log_blocks: int = 0
    log_files_compacted: int = 0
    log_size_compacted: int = 0
    seconds: float = 0.0
    created: bool = False
    cdc_files: Mapping[str, int] = field(default_factory=dict, hash=False)
    held: WriterFacts | None = field(default=None, compare=False, repr=False)

    @property
    def is_log(self) -> bool:
        """Whether the file is a log file."""
        return self.log_version is not None

    @property
    def looked_up(self) -> WriteStat:
        """These statistics, of a file whose keys were looked up in all partitions of the table."""
        return replace(self, held=replace(self.held or WriterFacts(), is_looked_up=True))

    @property
    def begins_log_group(self) -> bool:
        """Whether the file is the first one of a file group without a base file."""
        return self.is_log and not self.base_file and len(self.log_files or ()) == 1


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """A completed commit, delta commit or replace commit.

    Attributes:
        stats: the files written, in all partitions.
        operation: name of the operation; operations that this release does not know are kept as text.
        extra: extra metadata: `schema` (Avro JSON without meta columns) and the writer's own entries.
        replaced: file ids, by partition, that this instant replaces (replace commits only).
        compacted: whether this is a completed compaction.
    """

    stats: tuple[WriteStat, ...] = ()
    operation: str = WriteOperation.UNKNOWN
    extra: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compacted: bool = False

    @property
    def changes_records(self) -> bool:
        """Whether the instant changed records, rather than only rewriting them."""
        return not self.compacted and self.operation not in _SERVICES

    @property
    def touched(self) -> frozenset[tuple[str, str]]:
        """The file groups, as partition and file id, that the instant wrote to or replaced."""
        written = {(stat.partition, stat.file_id) for stat in self.stats}
        return self.superseded | written

    @property
    def based(self) -> frozenset[tuple[str, str]]:
        """The file groups, as partition and file id, to which the instant gave a base file."""
        return frozenset((stat.partition, stat.file_id) for stat in self.stats if not stat.is_log)

    @property
    def superseded(self) -> frozenset[tuple[str, str]]:
        """The file groups, as partition and file id, that the instant replaced."""
        return frozenset((path, each) for path, ids in self.replaced.items() for each in ids)

    @property
    def schema_json(self) -> str | None:
        """The table schema after the write, or None when the metadata has none."""
        return self.extra.get("schema") or None

    @property
    def writer(self) -> str:
        """The process that committed, as drawstring notes it; empty of another engine."""
        return self.extra.get(WRITER, "")[:_WRITER_MAX]
