"""What queries have learnt of slices with log files, so that later ones need not learn it again.

The log records of a slice, merged, and which base rows they replace, stay the same until the slice gets
another log file. A process keeps them for the slices that it read last, in bounded memory:

    first query    log files ── decoded, merged ──> log records ┐          keys of the base file
                                                                ├ kept ──> compared: base rows replaced, kept
    later queries  the columns that they need are there? ───────┘ no log file is opened, no key is decoded

What was kept is of use to a query that sees the same blocks of the same files with the same schema and
properties of the table. Columns that it lacks are read from the log files, and added.

Services, writes and queries of a few keys keep nothing. Neither do reads of tables in memory (`memory://`),
whose file names may come again. A log file that somebody deletes is missed by the first query only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, TypeAlias

import numpy as np

from drawstring.filegroups.read.log_records import LogRecords
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice

BYTES_MAX: Final = 64 << 20
"""Bytes that a process keeps of all slices."""

_PARTS_MIN: Final = 4
"""Number of slices for which there is room, whatever their size; those that take more are not kept."""

_DECISION_BYTES: Final = 16
"""Bytes of a decision for each log record."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How the rows of a row group and their log records were merged.

    Attributes:
        replaced: numbers of the rows whose log record won, ascending.
        lost: numbers of the log records that lost against a row.
    """

    replaced: Array
    lost: Array


NOTHING: Final = Decision(np.zeros(0, np.int32), np.zeros(0, np.int64))
"""Of rows without log records."""

Decisions: TypeAlias = dict[int, Decision]
"""By number of the row group, those that were compared as a whole."""


@dataclass(frozen=True, slots=True)
class KnownSlice:
    """What is known of a slice.

    Attributes:
        task: the task that it was read for.
        log: its log records, with the columns that were needed so far.
        decisions: the row groups of its base file that were merged; later merges add to them.
    """

    task: ReadTask
    log: LogRecords
    decisions: Decisions = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes that are kept."""
        versions = self.log.versions
        texts: int = versions.keys.nbytes
        columns: int = versions.rows.nbytes
        return columns + texts + _DECISION_BYTES * len(versions.keys)

    def has(self, columns: Iterable[str]) -> bool:
        """Return whether the log records have those of some columns that the table has."""
        present, known = {*self.log.versions.rows.column_names}, {*self.task.schema.names}
        return all(name in present or name not in known for name in columns)

    def is_of(self, task: ReadTask) -> bool:
        """Return whether a task sees the same records in the same way."""
        own = self.task
        return (
            own.file_slice == task.file_slice
            and own.by_position == task.by_position
            and self._sees_the_same(task.instants)
            and (own.schema is task.schema or own.schema.equals(task.schema))
            and (own.config is task.config or own.config == task.config)
        )

    def _sees_the_same(self, instants: InstantRange) -> bool:
        own = self.task.instants
        seen = self.log.instants or ()
        return own is instants or all(own.admits(each) == instants.admits(each) for each in seen)


class MergeMemory:
    """Keeps what is known of the slices that were read last.

    Args:
        bytes_max: bytes that are kept of all slices.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str, str], tuple[KnownSlice, int]] = OrderedDict()
        self._size_bytes = 0

    def recall(self, task: ReadTask) -> KnownSlice | None:
        """Return what is known of a task's slice; None if nothing is, or it is of no use to the task."""
        place = _place(task)
        with self._lock:
            kept = self._known.get(place)
            if kept is not None:
                self._known.move_to_end(place)
        return kept[0] if kept is not None and kept[0].is_of(task) else None

    def keep(self, known: KnownSlice) -> None:
        """Keep what was learnt of a slice, in place of what was known of it."""
        size_bytes, place = known.size_bytes, _place(known.task)
        with self._lock:
            self._size_bytes -= self._known.pop(place, (known, 0))[1]
            if size_bytes * _PARTS_MIN > self._bytes_max:
                return
            self._known[place] = known, size_bytes
            self._size_bytes += size_bytes
            while self._size_bytes > self._bytes_max:
                _, (_, dropped) = self._known.popitem(last=False)
                self._size_bytes -= dropped

    def forget(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._known.clear()
            self._size_bytes = 0


def _place(task: ReadTask) -> tuple[str, str, str]:
    file_slice: FileSlice = task.file_slice
    return task.storage.uri, file_slice.partition, file_slice.file_id


def with_columns_of(log: LogRecords, other: LogRecords) -> LogRecords:
    """Return log records with the columns that the same ones have elsewhere, too."""
    rows = log.versions.rows
    for field_, column in zip(other.versions.rows.schema, other.versions.rows.columns, strict=True):
        if field_.name not in rows.column_names:
            rows = rows.append_column(field_, column)
    return replace(log, versions=replace(log.versions, rows=rows))


MEMORY: Final = MergeMemory()
