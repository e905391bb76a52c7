"""Rows that say what is to be done with each: inserted, updated or deleted, in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.filegroups.write.changes import Changes, deletes, upserts, with_deletes
from drawstring.filegroups.write.settings import FileSettings
from drawstring.merge.order import Array, number_keys
from drawstring.merge.versions import flat
from drawstring.model.commit import WriteStat
from drawstring.schema.meta import RECORD_KEY

ACTION: Final = "_drawstring_action"


class RowAction(IntEnum):
    """What is to be done with a row."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


def acted(rows: pa.Table, settings: FileSettings) -> Changes:
    """Return the changes that rows bring to a file group; deletes by action win over all before them.

    Args:
        rows: prepared rows of one file group; without actions they are an upsert's.
        settings: of the write.

    Raises:
        InvalidError: several rows change one record, so that nobody can say what it becomes.
    """
    if ACTION not in rows.column_names:
        return upserts(rows, settings)
    actions = flat(rows.column(ACTION)).to_numpy(zero_copy_only=False)
    _check_unambiguous(rows, actions)
    is_delete = actions == RowAction.DELETE
    if not is_delete.any():
        return upserts(rows, settings)
    gone = deletes(rows.filter(pa.array(is_delete))).delete_keys
    return with_deletes(upserts(rows.filter(pa.array(~is_delete)), settings), gone)


class CountedActions:
    """Changes on their way into a log, which of them are inserts being counted where rows say what they are.

    Args:
        changes: piece by piece.
    """

    def __init__(self, changes: Iterable[Changes]) -> None:
        self._changes = changes
        self._inserts: int | None = None

    def __iter__(self) -> Iterator[Changes]:
        for each in self._changes:
            if ACTION in each.records.column_names:
                actions = flat(each.records.column(ACTION)).to_numpy(zero_copy_only=False)
                self._inserts = (self._inserts or 0) + int(np.count_nonzero(actions == RowAction.INSERT))
            yield each

    def told(self, stat: WriteStat) -> WriteStat:
        """Return the statistics of the log file with the inserts told apart; ask once all are written."""
        if self._inserts is None:
            return stat
        return replace(stat, num_inserts=self._inserts, num_updates=stat.num_writes - self._inserts)


def _check_unambiguous(rows: pa.Table, actions: Array) -> None:
    """Inserts of one key merge as in an upsert, and deletes of it are one; anything else says two things."""
    codes, distinct = number_keys(rows.column(RECORD_KEY))
    if distinct == len(codes):
        return
    times = np.bincount(codes, minlength=distinct)
    inserts = np.bincount(codes[actions == RowAction.INSERT], minlength=distinct)
    deleted = np.bincount(codes[actions == RowAction.DELETE], minlength=distinct)
    wrong = (times > 1) & (inserts < times) & (deleted < times)
    if wrong.any():
        key = rows.column(RECORD_KEY)[int(np.flatnonzero(wrong[codes])[0])].as_py()
        raise InvalidError(
            f"several rows change the record with key {key!r}, and nobody can say which of them counts: leave"
            " one source row for each record, or narrow the conditions; a record that the table has twice"
            " counts as several, too"
        )
