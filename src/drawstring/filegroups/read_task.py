"""Read tasks: everything a worker needs to read one file slice; picklable, made by the plan of a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.resources import BATCH_ROWS
from drawstring.config.table.schema_versions import Renames
from drawstring.config.table_config import TableConfig
from drawstring.formats.filter import ConditionSql, KeyRange, LogRowSelection
from drawstring.merge.record_version import stored_ordering_fields
from drawstring.model.files import FileSlice
from drawstring.schema.fields import COMMIT_TIME, RECORD_KEY
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.timeline import Timeline

_KEYS_ASKED_MAX: Final = 100
"""Number of record keys up to which base files are asked for each by statistics and bloom filters."""


@dataclass(frozen=True, slots=True)
class InstantRange:
    """The instants whose log blocks are visible.

    Attributes:
        committed: requested times of the completed writes of the active timeline.
        start: requested time of the first of them; earlier instants are archived and visible.
        as_of: the latest visible requested time; None for no bound.
        has_pending_write: whether a write is pending; it may have failed and left a torn block.
        uncommitted: requested times before `start` that are not visible nevertheless.
    """

    committed: frozenset[str]
    start: str | None = None
    as_of: str | None = None
    has_pending_write: bool = False
    uncommitted: frozenset[str] = frozenset()

    @staticmethod
    def of(timeline: Timeline, as_of: str | None = None) -> InstantRange:
        """Return the range of all completed writes up to a time."""
        committed = frozenset(instant.requested for instant in timeline.writes())
        return InstantRange.among(committed, timeline, as_of)

    @staticmethod
    def among(committed: frozenset[str], timeline: Timeline, as_of: str | None = None) -> InstantRange:
        """Return the range of the given completed writes and all archived ones.

        Args:
            committed: requested times of writes of the active timeline.
            timeline: the timeline of the table.
            as_of: the latest requested time that counts; None for no bound.
        """
        has_pending_write = bool(timeline.pending_writes())
        return InstantRange(committed, timeline.start, as_of, has_pending_write, timeline.uncommitted)

    def admits(self, instant: str) -> bool:
        """Return whether the blocks of an instant are visible."""
        if self.as_of is not None and instant > self.as_of:
            return False
        if instant in self.committed:
            return True
        return self.start is not None and instant < self.start and instant not in self.uncommitted


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One file slice to read.

    Attributes:
        storage: opens the table.
        config: the table.
        file_slice: the slice; its log files are merged.
        schema: all columns of the table with meta columns; defines the types of the rows.
        columns: columns to yield, in order.
        where: condition that selects the rows; None for all.
        instants: the visible instants of log blocks.
        commit_times: yield only records of these commits (incremental queries); None for all.
        partition_values: values of the partition columns, parsed from the path; these columns are not read.
        keys: the only record keys that rows of `where` can have: other keys are not merged, and base files
            whose footer excludes them are skipped; None for any key.
        whole_slice: if the slice has only the files that a range of commits wrote, the task that reads the
            whole slice as of the end of the range; it supplies the records that partial log blocks touch.
            None if `file_slice` is whole.
        wording: the SQL of `where`, for errors; None if it was given as an expression.
        timeline_digest: digest of the timeline when the task was planned (`timeline.change_detection`); None
            without change detection.
        key_range: range of the keys that rows of `where` can have; None for any.
        in_order: whether the rows are to be yielded sorted by record key, which is among the columns.
        remembers: whether what is learnt of the slice is kept in memory for later queries (`merge_memory`).
        by_position: whether log records are merged by their positions in the base file, if they have them.
    """

    storage: StorageSpec
    config: TableConfig
    file_slice: FileSlice
    schema: pa.Schema
    columns: tuple[str, ...]
    where: pc.Expression | None = None
    instants: InstantRange = field(default_factory=lambda: InstantRange(frozenset()))
    commit_times: tuple[str, ...] | None = None
    partition_values: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] | None = None
    whole_slice: ReadTask | None = None
    timeline_digest: str | None = None
    wording: ConditionSql | None = None
    key_range: KeyRange | None = None
    in_order: bool = False
    remembers: bool = False
    by_position: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that the task reads."""
        return self.file_slice.size_bytes

    @property
    def base_renames(self) -> Renames | None:
        """The names of the columns in the base file; None if they are unchanged."""
        base = self.file_slice.base
        return None if base is None else self.config.renames(base.instant)

    @property
    def output_schema(self) -> pa.Schema:
        """Schema of the batches that the task yields."""
        return nullable(self.schema, self.columns)

    @property
    def condition(self) -> pc.Expression | None:
        """Condition on result rows: `where` and the commit times."""
        in_range = self.in_range
        if in_range is None or self.where is None:
            return self.where if in_range is None else in_range
        return self.where & in_range

    @property
    def in_range(self) -> pc.Expression | None:
        """Condition that selects rows of the requested commits; None for all commits.

        Base rows of other commits are not merged: as in Apache Hudi, a late-arriving log record of such a
        commit is a change of that commit, whatever version the base file has.
        """
        if self.commit_times is None:
            return None
        return pc.field(COMMIT_TIME).isin(list(self.commit_times))

    @property
    def base_keys(self) -> tuple[str, ...] | None:
        """The keys by which base files may be skipped; None for any key, or too many to ask for each."""
        return None if self.keys is None or len(self.keys) > _KEYS_ASKED_MAX else self.keys

    @property
    def merged_among(self) -> pc.Expression | None:
        """Condition that selects the base rows to merge; None for all.

        All versions of a record have the same key, so other keys than those of the query are irrelevant.
        """
        in_range = self.in_range
        if not self.keys or not self.config.populate_meta_fields:
            if self.key_range is None:
                return in_range
            of_range = self.key_range.condition
            return of_range if in_range is None else in_range & of_range
        if self.base_keys is None:
            of_keys = pc.field(RECORD_KEY).isin(pa.array(self.keys, pa.string()))
        else:
            of_keys = reduce(or_, [pc.field(RECORD_KEY) == key for key in self.keys])
        return of_keys if in_range is None else in_range & of_keys


@dataclass(frozen=True, slots=True)
class LogReading:
    """Settings for reading log files.

    Attributes:
        storage: the table's files.
        config: the table.
        schema: columns to read, all nullable: requested, key, ordering and delete columns.
        instants: the visible instants.
        keys: the record keys to read; None for all.
        batch_rows: largest number of rows that are read at once from a native log file.
        key_range: the range of keys to read; None for all.
        ahead_bytes: as of `WantedRows`.
        positions_of: instant of the base file of which positions of all records are wanted; None for none.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange
    keys: pa.Array | None = None
    batch_rows: int = BATCH_ROWS
    key_range: KeyRange | None = None
    ahead_bytes: int | None = None
    positions_of: str | None = None

    @property
    def wanted(self) -> LogRowSelection:
        """The records to read of a native log file."""
        return LogRowSelection(self.keys, self.key_range, self.batch_rows, self.ahead_bytes)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The ordering fields that are read; empty for commit-time ordering."""
        return stored_ordering_fields(self.config, self.schema)


class ComposedTask(Protocol):
    """A task whose rows are made of those of several read tasks."""

    @property
    def storage(self) -> StorageSpec:
        """Opens the table."""

    @property
    def timeline_digest(self) -> str | None:
        """Digest of the timeline when the task was planned, as of `ReadTask`."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""


def nullable(schema: pa.Schema, columns: tuple[str, ...]) -> pa.Schema:
    """Return the given columns of a schema as nullable; rows of older files may lack any of them."""
    return pa.schema([schema.field(name).with_nullable(True) for name in columns])
