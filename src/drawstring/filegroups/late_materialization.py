r"""Merge log records into a Parquet base file and decode each column only when it is needed.

    row groups ── footer: may rows match? ── no ───────────────────────────────┐
        │ yes                                                                  │
    columns of the condition ── no row matches ────────────────────────────────┤
        │ some do                                                              │
    keys ── log records of these rows ── which of the two wins                 │ footer: may a base row win
        │                                                                      │ over its log record?
    other columns, rows that match and won ──> yield                           ├── no: nothing more is read
                                                                               └── yes: keys, ordering values
    at the end: log records that won and match ──> yield

This is for record mergers that keep one version as a whole, without a look at its other columns. If a
condition fails on a value, it is evaluated again on the rows that remain, as if there had been no stages.

Verdicts of the footer: it answers three questions on a row group before any key is decoded. May its rows
match the condition of the query? May they have log records? May they win over these? A row group without
keys of the log files is read without its keys. A base row can win only if the largest ordering value of its
row group is above the smallest one of the log records.

If the positions of all log records in the base file are known, the merge needs no keys:

    positions ── by row group ──> may a row win? ── no ──> the rows at these positions are replaced
                                                \── yes: ordering values ──> those that lost
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.errors import InvalidError
from drawstring.base.resources import BATCH_ROWS
from drawstring.filegroups.large_log_scanner import NO_DECISION, Decision, Decisions
from drawstring.filegroups.log_merge import KeyTexts, finished
from drawstring.filegroups.log_scanner import KeyNumbers, key_numbers
from drawstring.filegroups.read.bootstrap_reader import side_by_side, with_values
from drawstring.filegroups.read.log_records import LogRecords
from drawstring.filegroups.read_task import ReadTask, nullable
from drawstring.formats.filter import bound_columns, matching_numbers
from drawstring.formats.parquet.staged import StagedFile, staged
from drawstring.merge.record_version import Array, ordering_columns, ordering_of, stored_ordering_fields
from drawstring.model.files import PARQUET, file_extension
from drawstring.schema.evolution import conform
from drawstring.schema.fields import constants_of, type_at
from drawstring.storage import open_spec

_FEW_MATCHES: Final = 16
"""Number of matching rows up to which those of a look-up are compared, and not all of their row group."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows of some row groups that match the condition.

    Attributes:
        facts: the columns of the condition, batch by batch.
        mask: for each row, whether it matches.
    """

    facts: Sequence[pa.RecordBatch]
    mask: Array

    @property
    def are_few(self) -> bool:
        """Whether so few rows match that the others are not compared with log records, even for later."""
        return int(self.mask.sum()) < _FEW_MATCHES

    @property
    def end(self) -> int:
        """The number of rows up to the last one that matches."""
        return int(np.flatnonzero(self.mask)[-1]) + 1


def with_other_columns(
    facts: Sequence[pa.RecordBatch], others: Iterator[pa.RecordBatch] | None
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield batches and further columns of the same rows; the batches twice if there are no others."""
    if others is None:
        yield from ((batch, batch) for batch in facts)
    else:
        yield from side_by_side(iter(facts), others)


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
    lowest: _LowestOrdering | None

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
        lowest = _LowestOrdering.of(log, task, file.schema)
        return Verdicts(file, decisions, candidates, keys, lowest)

    def of_group(self, group: int) -> Verdict:
        """Return what is known of a row group: nothing is compared of one that was merged before."""
        if group in self.decisions:
            return Verdict(group in self.candidates, may_be_logged=False, may_win=False)
        may_be_logged = self.keys is None or self.file.may_have_any(group, self.keys)
        may_win = may_be_logged and self.lowest is not None and self.lowest.may_lose(self.file, group)
        return Verdict(group in self.candidates, may_be_logged, may_win)


@dataclass(frozen=True, slots=True)
class _LowestOrdering:
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
    def of(log: LogRecords, task: ReadTask, stored: pa.Schema) -> _LowestOrdering | None:
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
            return _LowestOrdering(names[0], None, is_alone)
        return _LowestOrdering(names[0], pc.min(first.cast(pa.int64())).as_py(), is_alone)

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
    merge = _Merge(task, log, file, _LowestOrdering.of(log, task, file.schema))
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
    lowest: _LowestOrdering | None

    def of_group(self, group: int, rows: Array, records: Array) -> Decision:
        """Return how rows of a row group and their log records are merged; rows ascend."""
        if not len(rows):
            return NO_DECISION
        if self.lowest is None or not self.lowest.may_lose(self.file, group):
            return Decision(rows.astype(np.int32), NO_DECISION.lost)
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


_SELECTIVE: Final = 0.5
"""Share of matching rows below which keys are compared of these rows alone."""


def can_stage(task: ReadTask, log: LogRecords) -> bool:
    """Return whether a slice with log files is read in stages.

    Args:
        task: what to read.
        log: log records of its slice.
    """
    return may_stage(task) and log.merger.chooses_whole_records


def may_stage(task: ReadTask) -> bool:
    """Return whether a slice with log files is read in stages if its log records are whole ones."""
    base = task.file_slice.base
    return (
        base is not None
        and base.source is None
        and file_extension(base.status.path) == PARQUET
        and task.base_renames is None
        and task.commit_times is None
        and task.whole_slice is None
        and (task.keys is None or task.where is not None)
    )


def staged_rows(
    task: ReadTask, log: LogRecords, decisions: Decisions | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task.

    Args:
        task: what to read; `can_stage` is true of it.
        log: log records of its slice.
        decisions: the row groups that were merged before, to which others are added; None to learn nothing.

    Raises:
        CorruptTableError: the base file is missing or damaged.
        InvalidError: the task's condition fails on a row.
    """
    base = task.file_slice.base
    assert base is not None
    bound = pa.schema([]) if task.where is None else bound_columns(task.where, task.schema)
    is_left = np.ones(len(log.versions.keys), dtype=bool)
    constants = None if task.where is None else constants_of(task.partition_values, task.schema)
    with staged(open_spec(task.storage), base.status.path, task.schema, constants) as file:
        # Without the keys that are asked for, the file has no row that matches, nor one to merge.
        if task.base_keys is None or file.may_hold_any(task.base_keys):
            yield from _Stages.of(task, log, file, bound, is_left, decisions).batches()
    known = {*task.schema.names}
    names = [name for name in dict.fromkeys((*task.columns, *bound.names)) if name in known]
    for batch in log.rows(is_left & ~log.versions.is_delete, names):
        yield from finished(batch, task)


@dataclass(frozen=True, slots=True)
class _Stages:
    """One merge.

    Attributes:
        task: what to read.
        log: log records of the slice.
        file: the base file.
        bound: the columns of the condition.
        keys: the keys of the log records.
        verdicts: what the footer says of each row group.
        is_left: which log records no base row won over.
        decisions: the row groups that were merged before; None to learn nothing.
        stored: the columns of the table that its files have.
    """

    task: ReadTask
    log: LogRecords
    file: StagedFile
    bound: pa.Schema
    keys: KeyTexts | KeyNumbers
    verdicts: Sequence[Verdict]
    is_left: Array
    decisions: Decisions | None
    stored: frozenset[str]

    @staticmethod
    def of(
        task: ReadTask,
        log: LogRecords,
        file: StagedFile,
        bound: pa.Schema,
        is_left: Array,
        decisions: Decisions | None,
    ) -> _Stages:
        if log.positions is not None:
            decisions = decided_by_position(task, log, file, decisions)
        judge = Verdicts.of(task, log, file, bound, decisions or {})
        verdicts = [judge.of_group(group) for group in file.groups]
        keys: KeyTexts | KeyNumbers | None = None
        rows = file.parquet.metadata.num_rows
        has_few = task.config.populate_meta_fields and rows <= limits.in_force.text_keys_rows_max
        if any(each.compares_keys for each in verdicts) and not has_few and _are_integers(task):
            present = {*file.schema.names}
            stored = pa.schema([each for each in task.schema if each.name in present])
            keys = key_numbers(log.versions.keys, task.config, stored, (*task.columns, *bound.names))
        keys = keys or KeyTexts(log.versions.keys, task.config)
        stored_names = frozenset(task.schema.names).difference(task.partition_values)
        return _Stages(task, log, file, bound, keys, verdicts, is_left, decisions, stored_names)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the base rows of the result; mark the log records that they won over."""
        self._recall()
        for verdict, groups in groupby(self.file.groups, self.verdicts.__getitem__):
            for span in self.file.spans(list(groups)):
                yield from self._span(span, verdict)

    def _recall(self) -> None:
        """Mark the log records that are known to have lost; note the row groups without any."""
        if self.decisions is None:
            return
        for known in list(self.decisions.values()):
            self.is_left[known.lost] = False
        for group, verdict in zip(self.file.groups, self.verdicts, strict=True):
            if not verdict.may_be_logged:
                self.decisions.setdefault(group, NO_DECISION)

    def _span(self, groups: Sequence[int], verdict: Verdict) -> Iterator[pa.RecordBatch]:
        matches = self._matches(groups) if verdict.may_match else None
        is_read = verdict.may_match and (matches is None or bool(matches.mask.any()))
        if not is_read and not verdict.may_win:
            return
        if self.decisions is None or (matches is not None and not verdict.may_win and matches.are_few):
            yield from self._merged(groups, verdict, matches if is_read else None, is_read=is_read)
            return
        if verdict.may_be_logged and (matches is not None or not is_read):
            self._decide(groups, verdict)
            verdict = replace(verdict, may_be_logged=False, may_win=False)
        if is_read:
            yield from self._merged(groups, verdict, matches, is_read=True)

    def _merged(
        self, groups: Sequence[int], verdict: Verdict, matches: Matches | None, *, is_read: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that match and won."""
        names = [
            *self._compared(verdict),
            *(self._result(matches) if is_read else ()),
        ] or self.task.schema.names[:1]
        comparison = _Comparison(self, groups, verdict)
        for rows, mask in self._pieces(groups, list(dict.fromkeys(names)), matches, to_end=verdict.may_win):
            kept = comparison.kept(rows, mask)
            if is_read:
                yield from self._finished(rows, kept, matches)
        if matches is None and is_read:
            comparison.conclude()

    def _decide(self, groups: Sequence[int], verdict: Verdict) -> None:
        """Compare all rows with the log records before it is known which of them are needed."""
        comparison = _Comparison(self, groups, verdict)
        for rows in self._read(groups, self._compared(verdict)):
            comparison.kept(rows, None)
        comparison.conclude()

    def _compared(self, verdict: Verdict) -> list[str]:
        """Return the columns that are compared with those of log records."""
        names = [
            *(self.keys.columns if verdict.may_be_logged else ()),
            *(self._ordering if verdict.may_win else ()),
        ]
        return list(dict.fromkeys(names))

    @property
    def _ordering(self) -> list[str]:
        return ordering_columns(self.task.config, self.task.schema)

    def _result(self, matches: Matches | None) -> list[str]:
        """Return the columns of the result, and those of the condition if it is not evaluated yet."""
        names = (*self.task.columns, *(self.bound.names if matches is None else ()))
        return [name for name in dict.fromkeys(names) if name in self.stored]

    def _matches(self, groups: Sequence[int]) -> Matches | None:
        """Return the matching rows; None if that is to be found out of rows that are complete and merged."""
        names = [name for name in self.bound.names if name in self.stored]
        where = self.task.where
        if where is None or not names or self.file.largest_group_bytes() > limits.in_force.staged_bytes_max:
            return None
        facts = list(self._read(groups, names))
        try:
            masks = [self._mask(batch, where) for batch in facts]
        except InvalidError:
            return None
        return Matches(facts, np.concatenate([np.zeros(0, dtype=bool), *masks]))

    def _mask(self, batch: pa.RecordBatch, where: pc.Expression) -> Array:
        mask = np.zeros(batch.num_rows, dtype=bool)
        mask[matching_numbers(batch, where, self.bound, self.file.constants).to_numpy()] = True
        return mask

    def _read(
        self, groups: Sequence[int], names: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of the table, null where the file lacks them."""
        schema = nullable(self.task.schema, tuple(names))
        some = names if any(name in self.file.schema.names for name in names) else self.file.schema.names[:1]
        for batch in self.file.rows(groups, some, batch_rows):
            yield conform(batch, schema)

    def _pieces(
        self, groups: Sequence[int], names: list[str], matches: Matches | None, *, to_end: bool
    ) -> Iterator[tuple[pa.RecordBatch, Array | None]]:
        """Yield columns of rows, and which of the rows match; None for all, or if it is not known yet.

        Unless rows are wanted to the end, those after the last one that matches are left out.
        """
        if matches is None:
            yield from ((batch, None) for batch in self._read(groups, names))
            return
        held = matches.facts[0].schema.names
        rest = [name for name in names if name not in held]
        done, end = 0, len(matches.mask) if to_end else matches.end
        others_of = self._read(groups, rest, min(BATCH_ROWS, end)) if rest else None
        for facts, others in with_other_columns(matches.facts, others_of):
            columns = [(facts if name in held else others).column(name) for name in names]
            yield pa.RecordBatch.from_arrays(columns, names=names), matches.mask[done : done + len(facts)]
            done += len(facts)
            if done >= end:
                return

    def _finished(
        self, rows: pa.RecordBatch, kept: Array | None, matches: Matches | None
    ) -> Iterator[pa.RecordBatch]:
        task = self.task
        stored = rows.select(self._result(matches) or rows.schema.names[:1])
        if kept is not None and not kept.all():
            stored = stored.filter(pa.array(kept))
        batch = self._with_partition(stored) if task.partition_values else stored
        if matches is None:
            yield from finished(batch, task)
        elif batch.num_rows:
            yield batch.select(list(task.columns))

    def _with_partition(self, stored: pa.RecordBatch) -> pa.RecordBatch:
        task = self.task
        names = dict.fromkeys((*task.columns, *self.bound.names))
        present = {*task.schema.names}
        known = nullable(task.schema, tuple(name for name in names if name in present))
        return with_values(stored, task.partition_values, known)


class _Comparison:
    """The rows of some row groups, compared batch by batch with the log records."""

    def __init__(self, stages: _Stages, groups: Sequence[int], verdict: Verdict) -> None:
        self._stages = stages
        self._groups = groups
        self._verdict = verdict
        self._done = 0
        self._replaced: list[Array] = []
        self._lost: list[Array] = []
        self._known = _replaced_rows(stages, groups)

    def kept(self, rows: pa.RecordBatch, mask: Array | None) -> Array | None:
        """Return which of the next rows match and won, None for all; mark the log records that lost."""
        start, self._done = self._done, self._done + len(rows)
        if self._verdict.may_be_logged:
            replaced = self._compared(rows, mask)
            self._replaced.append(replaced + start if start else replaced)
        else:
            first, end = np.searchsorted(self._known, (start, self._done))
            replaced = self._known[first:end] - start
        if not len(replaced):
            return mask
        kept = np.ones(len(rows), dtype=bool) if mask is None else mask.copy()
        kept[replaced] = False
        return kept

    def _compared(self, rows: pa.RecordBatch, mask: Array | None) -> Array:
        """Return the numbers of rows that log records replace; of those that match, if it is only these."""
        stages = self._stages
        keys = rows.select(list(stages.keys.columns))
        if mask is not None and not self._verdict.may_win and mask.mean() < _SELECTIVE:
            numbers = np.flatnonzero(mask)
            found, _ = stages.keys.find(keys.take(pa.array(numbers)))
            return numbers[found]
        found, records = stages.keys.find(keys)
        if self._verdict.may_win and len(found):
            wins = stages.log.beats(ordering_of(rows, stages.task.config, found), records)
            stages.is_left[records[~wins]] = False
            self._lost.append(records[~wins])
            found = found[wins]
        return np.asarray(found)

    def conclude(self) -> None:
        """Add what was found to the decisions, once all rows were compared."""
        stages = self._stages
        if stages.decisions is None or not self._verdict.may_be_logged:
            return
        replaced, lost = _joined(self._replaced), _joined(self._lost)
        if len(self._groups) == 1:
            stages.decisions[self._groups[0]] = Decision(replaced.astype(np.int32), lost)
            return
        start = 0
        for group in self._groups:
            end = start + stages.file.rows_of(group)
            first, last = np.searchsorted(replaced, (start, end))
            stages.decisions[group] = Decision((replaced[first:last] - start).astype(np.int32), lost)
            start = end


def _joined(parts: Sequence[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else NO_DECISION.lost


def _replaced_rows(stages: _Stages, groups: Sequence[int]) -> Array:
    """Return the rows of row groups that are known to be replaced, counted from the first of them."""
    decisions = stages.decisions or {}
    if len(groups) == 1 or not decisions:
        return decisions.get(groups[0], NO_DECISION).replaced
    start, replaced = 0, []
    for group in groups:
        replaced.append(decisions.get(group, NO_DECISION).replaced + np.int64(start))
        start += stages.file.rows_of(group)
    return np.concatenate(replaced)


def _are_integers(task: ReadTask) -> bool:
    """Return whether all key columns of the table are integers."""
    fields, schema = task.config.record_key_fields, task.schema
    return all(field in schema.names and pt.is_integer(schema.field(field).type) for field in fields)
