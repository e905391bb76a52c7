"""What the footer of a base file says of its row groups, for a merge that decodes columns in stages.

A row group matters to a merge by three questions: may its rows match the condition of the query, may they
have log records, and may they win over these?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.filegroups.read.log_records import LogRecords
from drawstring.filegroups.read.merge_memory import Decision
from drawstring.filegroups.read.tasks import ReadTask
from drawstring.formats.parquet.staged import StagedFile
from drawstring.merge.versions import Versions, ordering_fields


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
        lowest = _Lowest.of(log.versions, task, file.schema)
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
