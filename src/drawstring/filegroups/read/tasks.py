"""What a worker needs to read one file slice: picklable, made by a query's plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table.config import TableConfig
from drawstring.model.files import FileSlice
from drawstring.schema.history import Renames, SchemaHistory
from drawstring.schema.meta import COMMIT_TIME, RECORD_KEY
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class InstantRange:
    """Which instants' log blocks count.

    Attributes:
        committed: requested times of the completed writes of the active timeline.
        start: requested time of the first of them; what lies before was archived and counts.
        as_of: the latest requested time that counts; None for no bound.
        is_written: whether a write is pending, which may be dead and have left a torn block.
        uncommitted: requested times before `start` that do not count all the same.
    """

    committed: frozenset[str]
    start: str | None = None
    as_of: str | None = None
    is_written: bool = False
    uncommitted: frozenset[str] = frozenset()

    @staticmethod
    def of(timeline: Timeline, as_of: str | None = None) -> InstantRange:
        """Return the range of all completed writes up to a time."""
        committed = frozenset(instant.requested for instant in timeline.writes())
        return InstantRange.among(committed, timeline, as_of)

    @staticmethod
    def among(committed: frozenset[str], timeline: Timeline, as_of: str | None = None) -> InstantRange:
        """Return the range of some completed writes, and of all that were archived.

        Args:
            committed: requested times of writes of the active timeline.
            timeline: of the table.
            as_of: the latest requested time that counts; None for no bound.
        """
        is_written = bool(timeline.pending_writes())
        return InstantRange(committed, timeline.start, as_of, is_written, timeline.uncommitted)

    def admits(self, instant: str) -> bool:
        """Tell whether blocks of an instant count."""
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
        schema: all columns of the table with meta columns; says the types of the rows.
        columns: columns to yield, in order.
        where: which rows to yield; None for all.
        instants: which log blocks count.
        commit_times: yield only records of these commits (incremental queries); None for all.
        partition_values: value by partition column, as the path tells; these are not read.
        history: versions of the schema, for a table that evolved it on read.
        keys: record keys that rows of `where` can have at most: others are not merged, and a base file's
            footer may know that it lacks them; None for any.
        beneath: where the slice has only the files that a range of commits wrote, what reads the whole slice
            as the range left it: records that partial log blocks touch come from there. None for a whole
            slice.
        look: digest of the timeline when the slice was found (`timeline.change_detection`); None where nobody
            looked.
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
    history: SchemaHistory | None = None
    keys: tuple[str, ...] | None = None
    beneath: ReadTask | None = None
    look: str | None = None

    @property
    def base_renames(self) -> Renames | None:
        """Where the columns stand in the base file; None for under their names."""
        base = self.file_slice.base
        return None if self.history is None or base is None else self.history.renames(base.instant)

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of the batches."""
        return nullable(self.schema, self.columns)

    @property
    def condition(self) -> pc.Expression | None:
        """What a row must fulfil: `where` and the commit times."""
        in_range = self.in_range
        if in_range is None or self.where is None:
            return self.where if in_range is None else in_range
        return self.where & in_range

    @property
    def in_range(self) -> pc.Expression | None:
        """What a row must fulfil to be of the commits asked for; None when all count.

        Base rows of other commits take no part in merging: as in real Hudi, a late row in the log of
        such a commit is a change that the commit made, whatever the base file says.
        """
        if self.commit_times is None:
            return None
        return pc.field(COMMIT_TIME).isin(list(self.commit_times))

    @property
    def merged_among(self) -> pc.Expression | None:
        """What a base row must fulfil to take part in merging; None when all do.

        Versions of a record have one key, so those of other keys than the query's have no say.
        """
        in_range = self.in_range
        if not self.keys:
            return in_range
        of_keys = reduce(or_, [pc.field(RECORD_KEY) == key for key in self.keys])
        return of_keys if in_range is None else in_range & of_keys


def nullable(schema: pa.Schema, columns: tuple[str, ...]) -> pa.Schema:
    """Return some columns of a schema; rows of older files may lack any of them."""
    return pa.schema([schema.field(name).with_nullable(True) for name in columns])
