"""Merge of log records into a Parquet base file that decodes each column only once it is needed.

    row groups ── footer: may rows match? ── no ───────────────────────────────┐
        │ yes                                                                  │
    columns of the condition ── no row matches ────────────────────────────────┤
        │ some do                                                              │
    keys ── log records of these rows ── which of the two wins                 │ footer: may a base row win
        │                                                                      │ over its log record?
    other columns, rows that match and won ──> yield                           ├── no: nothing more is read
                                                                               └── yes: keys, ordering values
    at the end: log records that won and match ──> yield

Row groups without keys of the log files, by the footer, are read without their keys. A base row can win only
if the largest ordering value of its row group is above the smallest one of the log records.

This is for mergers that keep one version as a whole, without looking at its other columns. A condition that
fails on a value is evaluated again on the rows that remain, as if there had been no stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.errors import InvalidError
from drawstring.filegroups.read.bootstrap_reader import side_by_side, with_values
from drawstring.filegroups.read.log_records import LogRecords
from drawstring.filegroups.read.logged_keys import KeyNumbers, key_numbers
from drawstring.filegroups.read.slice_merge import KeyTexts, finished
from drawstring.filegroups.read.tasks import ReadTask, nullable
from drawstring.formats.conditions import bound_columns, matching_numbers
from drawstring.formats.parquet.staged import StagedFile, staged
from drawstring.formats.partition_match import typed
from drawstring.merge.order import Array
from drawstring.merge.versions import Versions, ordering_fields, ordering_of
from drawstring.model.files import file_extension
from drawstring.schema.evolve import conform
from drawstring.storage import open_spec

HELD_BYTES_MAX: Final = 256 << 20
"""Decoded size of a row group, all columns together, up to which its rows are held for the next stage."""

_PARQUET: Final = ".parquet"

FEW_ROWS: Final = 16_384
"""Rows of a base file up to which keys are compared as texts: taking those of the logs apart costs more."""

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
        and file_extension(base.status.path) == _PARQUET
        and task.base_renames is None
        and task.commit_times is None
        and task.whole_slice is None
        and (task.keys is None or task.where is not None)
    )


def staged_rows(task: ReadTask, log: LogRecords) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task.

    Args:
        task: what to read; `can_stage` is true of it.
        log: log records of its slice.

    Raises:
        CorruptTableError: the base file is missing or damaged.
        InvalidError: the task's condition fails on a row.
    """
    base = task.file_slice.base
    assert base is not None
    bound = pa.schema([]) if task.where is None else bound_columns(task.where, task.schema)
    is_left = np.ones(len(log.versions.keys), dtype=bool)
    constants = None if task.where is None else typed(task.partition_values, task.schema)
    with staged(open_spec(task.storage), base.status.path, constants) as file:
        # Without the keys that are asked for, the file has no row that matches, nor one to merge.
        if task.base_keys is None or file.may_hold_any(task.base_keys):
            yield from _Stages.of(task, log, file, bound, is_left).batches()
    known = {*task.schema.names}
    names = [name for name in dict.fromkeys((*task.columns, *bound.names)) if name in known]
    for batch in log.rows(is_left & ~log.versions.is_delete, names):
        yield from finished(batch, task)


@dataclass(frozen=True, slots=True)
class _Verdict:
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
class _Matches:
    """The rows of some row groups that match the condition.

    Attributes:
        facts: the columns of the condition, batch by batch.
        mask: for each row, whether it matches.
    """

    facts: Sequence[pa.RecordBatch]
    mask: Array

    @property
    def end(self) -> int:
        """The number of rows up to the last one that matches."""
        return int(np.flatnonzero(self.mask)[-1]) + 1


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
    """

    task: ReadTask
    log: LogRecords
    file: StagedFile
    bound: pa.Schema
    keys: KeyTexts | KeyNumbers
    verdicts: Sequence[_Verdict]
    is_left: Array

    @staticmethod
    def of(task: ReadTask, log: LogRecords, file: StagedFile, bound: pa.Schema, is_left: Array) -> _Stages:
        judge = _Verdicts.of(task, log, file, bound)
        verdicts = [judge.of_group(group) for group in file.groups]
        keys: KeyTexts | KeyNumbers | None = None
        rows = file.parquet.metadata.num_rows
        has_few = task.config.populate_meta_fields and rows <= FEW_ROWS
        if any(each.compares_keys for each in verdicts) and not has_few and _are_integers(task):
            present = {*file.schema.names}
            stored = pa.schema([each for each in task.schema if each.name in present])
            keys = key_numbers(log.versions.keys, task.config, stored, (*task.columns, *bound.names))
        return _Stages(
            task, log, file, bound, keys or KeyTexts(log.versions.keys, task.config), verdicts, is_left
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the base rows of the result; mark the log records that they won over."""
        for verdict, groups in groupby(self.file.groups, self.verdicts.__getitem__):
            for span in self.file.spans(list(groups)):
                yield from self._span(span, verdict)

    def _span(self, groups: Sequence[int], verdict: _Verdict) -> Iterator[pa.RecordBatch]:
        matches = self._matches(groups) if verdict.may_match else None
        is_read = verdict.may_match and (matches is None or bool(matches.mask.any()))
        if not is_read and not verdict.may_win:
            return
        names = [
            *(self.keys.columns if verdict.may_be_logged else ()),
            *(self._ordering if verdict.may_win else ()),
            *(self._result(matches) if is_read else ()),
        ] or self.task.schema.names[:1]
        found = matches if is_read else None
        for rows, mask in self._pieces(groups, list(dict.fromkeys(names)), found, to_end=verdict.may_win):
            kept = self._kept(rows, mask, verdict) if verdict.may_be_logged else mask
            if is_read:
                yield from self._finished(rows, kept, matches)

    @property
    def _ordering(self) -> list[str]:
        return [name for name in ordering_fields(self.task.config) if name in self.task.schema.names]

    def _result(self, matches: _Matches | None) -> list[str]:
        """Return the columns of the result, and those of the condition if it is not evaluated yet."""
        names = (*self.task.columns, *(self.bound.names if matches is None else ()))
        return [name for name in dict.fromkeys(names) if self._is_stored(name)]

    def _is_stored(self, name: str) -> bool:
        return name in self.task.schema.names and name not in self.task.partition_values

    def _matches(self, groups: Sequence[int]) -> _Matches | None:
        """Return the matching rows; None if that is to be found out of rows that are complete and merged."""
        names = [name for name in self.bound.names if self._is_stored(name)]
        where = self.task.where
        if where is None or not names or self.file.largest_group_bytes() > HELD_BYTES_MAX:
            return None
        facts = list(self._read(groups, names))
        try:
            masks = [self._mask(batch, where) for batch in facts]
        except InvalidError:
            return None
        return _Matches(facts, np.concatenate([np.zeros(0, dtype=bool), *masks]))

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
        self, groups: Sequence[int], names: list[str], matches: _Matches | None, *, to_end: bool
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
        for facts, others in _beside(matches.facts, others_of):
            columns = [(facts if name in held else others).column(name) for name in names]
            yield pa.RecordBatch.from_arrays(columns, names=names), matches.mask[done : done + len(facts)]
            done += len(facts)
            if done >= end:
                return

    def _kept(self, rows: pa.RecordBatch, mask: Array | None, verdict: _Verdict) -> Array:
        """Return which rows match and won; mark the log records that lost."""
        kept = np.ones(len(rows), dtype=bool) if mask is None else mask.copy()
        keys = rows.select(list(self.keys.columns))
        if mask is not None and not verdict.may_win and mask.mean() < _SELECTIVE:
            numbers = np.flatnonzero(mask)
            found, _ = self.keys.find(keys.take(pa.array(numbers)))
            kept[numbers[found]] = False
            return kept
        found, records = self.keys.find(keys)
        if verdict.may_win and len(found):
            wins = self.log.beats(ordering_of(rows, self.task.config, found), records)
            self.is_left[records[~wins]] = False
            found = found[wins]
        kept[found] = False
        return kept

    def _finished(
        self, rows: pa.RecordBatch, kept: Array | None, matches: _Matches | None
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


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """Judges row groups by the footer.

    Attributes:
        file: the base file.
        candidates: the row groups whose rows may match the condition.
        keys: the keys of the log records as bytes; None if the file has no column of keys.
        lowest: the smallest ordering value of log records that a base row may win over; None if none may.
    """

    file: StagedFile
    candidates: frozenset[int]
    keys: pa.Array | None
    lowest: _Lowest | None

    @staticmethod
    def of(task: ReadTask, log: LogRecords, file: StagedFile, bound: pa.Schema) -> _Verdicts:
        candidates = list(file.groups) if task.where is None else file.may_match(task.where, bound)
        keys = log.versions.keys.cast(pa.binary()) if task.config.populate_meta_fields else None
        return _Verdicts(file, frozenset(candidates), keys, _Lowest.of(log.versions, task, file.schema))

    def of_group(self, group: int) -> _Verdict:
        """Return what the footer says of a row group."""
        may_be_logged = self.keys is None or self.file.may_have_any(group, self.keys)
        may_win = may_be_logged and self.lowest is not None and self.lowest.may_lose(self.file, group)
        return _Verdict(group in self.candidates, may_be_logged, may_win)


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
    def of(versions: Versions, task: ReadTask, stored: pa.Schema) -> _Lowest | None:
        """Return it; None if base rows win over no log record."""
        may_lose = ~versions.is_commit_time_ordering_delete
        names = [name for name in ordering_fields(task.config) if name in task.schema.names]
        values = versions.ordering
        if not may_lose.all():
            values = tuple(column.filter(pa.array(may_lose)) for column in values)
        if not values or not len(values[0]):
            return None
        first, is_alone, kind = values[0], len(values) == 1, task.schema.field(names[0]).type
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


def _are_integers(task: ReadTask) -> bool:
    """Return whether all key columns of the table are integers."""
    fields, schema = task.config.record_key_fields, task.schema
    return all(field in schema.names and pt.is_integer(schema.field(field).type) for field in fields)


def _beside(
    facts: Sequence[pa.RecordBatch], others: Iterator[pa.RecordBatch] | None
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield batches and further columns of the same rows; the batches twice if there are no others."""
    if others is None:
        yield from ((batch, batch) for batch in facts)
    else:
        yield from side_by_side(iter(facts), others)
