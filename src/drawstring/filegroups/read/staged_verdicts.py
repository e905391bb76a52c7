r"""What is known of row groups before keys are decoded, for a merge that decodes columns in stages.

A row group matters to a merge by three questions, which the footer answers: may its rows match the condition
of the query, may they have log records, and may they win over these?

If the positions of all log records in the base file are known, no keys are needed:

    positions ── by row group ──> may a row win? ── no ──> the rows at these positions are replaced
                                                \── yes: ordering values ──> those that lost
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.filegroups.read.log_records import LogRecords
from drawstring.filegroups.read.merge_memory import NOTHING, Decision, Decisions
from drawstring.filegroups.read.tasks import ReadTask, nullable
from drawstring.formats.parquet.staged import StagedFile
from drawstring.merge.order import Array
from drawstring.merge.versions import ordering_columns, ordering_of, stored_ordering_fields
from drawstring.schema.evolve import conform
from drawstring.schema.fields import type_at


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the footer says of a row group.

    Attributes:
        may_match: whether rows may match the condition.
        may_be_logged: whether rows may have log records.
        may_win: whether rows may win over their log records.
    """

    may_match: bool
    may_be_logged: bool
    may_win: bool

    @property
    def compares_keys(self) -> bool:
        """Whether keys of rows are compared with those of log records."""
        return self.may_be_logged and (self.may_match or self.may_win)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Judges row groups by the footer, unless they were merged before.

    Attributes:
        file: the base file.
        decisions: the row groups that were merged.
        candidates: the row groups whose rows may match the condition.
        keys: the keys of the log records as bytes; None if the file has no column of keys.
        lowest: the smallest ordering value of log records that a base row may win over; None if none may.
    """

    file: StagedFile
    decisions: Mapping[int, Decision]
    candidates: frozenset[int]
    keys: pa.Array | None
    lowest: _Lowest | None

    @staticmethod
    def of(
        task: ReadTask, log: LogRecords, file: StagedFile, bound: pa.Schema, decisions: Mapping[int, Decision]
    ) -> Verdicts:
        """Return what judges the row groups of a file.

        Args:
            task: what is read.
            log: the log records of the slice.
            file: its base file.
            bound: the columns of the condition.
            decisions: the row groups that were merged before.
        """
        candidates = frozenset(file.groups if task.where is None else file.may_match(task.where, bound))
        if all(group in decisions for group in file.groups):
            return Verdicts(file, decisions, candidates, None, None)
        keys = log.versions.keys.cast(pa.binary()) if task.config.populate_meta_fields else None
        lowest = _Lowest.of(log, task, file.schema)
        return Verdicts(file, decisions, candidates, keys, lowest)

    def of_group(self, group: int) -> Verdict:
        """Return what is known of a row group: nothing is compared of one that was merged before."""
        if group in self.decisions:
            return Verdict(group in self.candidates, may_be_logged=False, may_win=False)
        may_be_logged = self.keys is None or self.file.may_have_any(group, self.keys)
        may_win = may_be_logged and self.lowest is not None and self.lowest.may_lose(self.file, group)
        return Verdict(group in self.candidates, may_be_logged, may_win)


@dataclass(frozen=True, slots=True)
class _Lowest:
    """The smallest ordering value of log records.

    Attributes:
        column: the first ordering column.
        value: its smallest value as it is stored; None if it is null or cannot be compared with a footer.
        is_alone: whether there are no further ordering columns.
    """

    column: str
    value: int | None
    is_alone: bool

    @staticmethod
    def of(log: LogRecords, task: ReadTask, stored: pa.Schema) -> _Lowest | None:
        """Return it; None if base rows win over no log record."""
        may_lose = ~log.replaces
        names = stored_ordering_fields(task.config, task.schema)
        values = log.versions.ordering
        if not may_lose.all():
            values = tuple(column.filter(pa.array(may_lose)) for column in values)
        if not values or not len(values[0]):
            return None
        first, is_alone, kind = values[0], len(values) == 1, type_at(names[0], task.schema)
        types = {kind, first.type, stored.field(names[0]).type if names[0] in stored.names else kind}
        is_number = pt.is_integer(kind) or pt.is_timestamp(kind)
        if len(types) > 1 or not is_number or first.null_count:
            return _Lowest(names[0], None, is_alone)
        return _Lowest(names[0], pc.min(first.cast(pa.int64())).as_py(), is_alone)

    def may_lose(self, file: StagedFile, group: int) -> bool:
        """Return whether a row of a row group may have a larger value."""
        bounds = None if self.value is None else file.bounds(group, self.column)
        if bounds is None or not isinstance(bounds[1], int):
            return True
        assert self.value is not None
        return bounds[1] > self.value or (bounds[1] == self.value and not self.is_alone)


def decided_by_position(
    task: ReadTask, log: LogRecords, file: StagedFile, decisions: Decisions | None
) -> Decisions | None:
    """Return the decisions about all row groups of a base file.

    Args:
        task: what to read.
        log: log records of the slice, of known positions.
        file: the base file.
        decisions: what is known of row groups already, to which the others are added; None for nothing.

    Returns:
        `decisions` as they are if a position is beyond the end of the file.
    """
    positions = log.positions
    assert positions is not None
    if len(positions) and positions.max() >= file.parquet.metadata.num_rows:
        return decisions
    known = {} if decisions is None else decisions
    order = np.argsort(positions)
    rows, first = positions[order], 0
    merge = _Merge(task, log, file, _Lowest.of(log, task, file.schema))
    for group in file.groups:
        end = first + file.rows_of(group)
        low, high = np.searchsorted(rows, (first, end))
        if group not in known:
            known[group] = merge.of_group(group, rows[low:high] - first, order[low:high])
        first = end
    return known


@dataclass(frozen=True, slots=True)
class _Merge:
    """One merge.

    Attributes:
        lowest: the smallest ordering value of log records that a base row may win over; None if none may.
    """

    task: ReadTask
    log: LogRecords
    file: StagedFile
    lowest: _Lowest | None

    def of_group(self, group: int, rows: Array, records: Array) -> Decision:
        """Return how rows of a row group and their log records are merged; rows ascend."""
        if not len(rows):
            return NOTHING
        if self.lowest is None or not self.lowest.may_lose(self.file, group):
            return Decision(rows.astype(np.int32), NOTHING.lost)
        wins = self.log.beats(self._ordering(group, rows), records)
        return Decision(rows[wins].astype(np.int32), records[~wins])

    def _ordering(self, group: int, rows: Array) -> Sequence[pa.Array]:
        """Return the ordering values of some rows of a row group."""
        task, stored = self.task, {*self.file.schema.names}
        names = ordering_columns(task.config, task.schema)
        schema = nullable(task.schema, tuple(names))
        some = [name for name in names if name in stored] or self.file.schema.names[:1]
        held, first = [], 0
        for batch in self.file.rows([group], some):
            low, high = np.searchsorted(rows, (first, first + len(batch)))
            held.append(conform(batch.take(pa.array(rows[low:high] - first)), schema))
            first += len(batch)
        return ordering_of(pa.Table.from_batches(held, schema), task.config)
