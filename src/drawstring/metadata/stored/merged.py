"""Merge of a slice of the metadata table in bounded memory: all files are sorted by key.

    base file ──> blocks ──┐
    log block ──> blocks ──┼── up to a common fence (`sorted_runs`) ── newest or combined ──> records
    log block ──> blocks ──┘

Where only the newest version of a key counts, records are copied as they are encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pyarrow as pa

from drawstring.base.errors import REPAIR
from drawstring.filegroups.read.open_logs import open_logs
from drawstring.filegroups.read.sorted_runs import (
    BASE_WINDOW_BYTES,
    WINDOWS_HELD,
    SortedRun,
    fenced,
    gathered,
)
from drawstring.formats.log_inline import BlockType
from drawstring.merge.versions import flat
from drawstring.metadata.merging import newest, removed_keys
from drawstring.metadata.partitions import IS_REMOVED, KEY, Kind, record_schema
from drawstring.metadata.statistics import combined, with_cuts
from drawstring.metadata.stored.rows import ENCODED, MetadataFiles, SliceRows
from drawstring.model.files import FileSlice

_COMBINED: Final = (Kind.STATISTICS, Kind.EXPRESSION_INDEX)
_UNSORTED: Final = f"An HFile is damaged (its keys are not in order). To repair the table, {REPAIR}."
_Run = SortedRun[pa.Table]


def merged_parts(table: MetadataFiles, file_slice: FileSlice, kind: Kind) -> Iterator[pa.Table]:
    """Yield the merged records of a slice, part by part, by ascending keys.

    Args:
        table: the metadata table.
        file_slice: one of its slices, not of `files`.
        kind: what its records hold.

    Returns:
        The columns of `record_schema`, or of `ENCODED`.

    Raises:
        CorruptTableError: a file is missing, damaged or not sorted.
    """
    merge, schema = _merge_of(kind)
    with _opened(SliceRows(table, file_slice, schema, None)) as runs:
        for base, *logs in fenced(runs):
            if any(logs):
                yield merge(pa.concat_tables([*base, *(window for run in logs for window in run)]))
            else:
                yield from (window.drop_columns([IS_REMOVED]) for window in base)


def logged_parts(
    table: MetadataFiles, file_slice: FileSlice, kind: Kind
) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Yield what the log files of a slice say, part by part, by ascending keys: records and removed keys.

    A removal comes before the record of the same key.

    Args:
        table: the metadata table.
        file_slice: one of its slices, not of `files`.
        kind: what its records hold.

    Raises:
        CorruptTableError: a file is missing, damaged or not sorted.
    """
    merge, schema = _merge_of(kind)
    with _opened(SliceRows(table, replace(file_slice, base=None), schema, None)) as runs:
        for windows in fenced(runs):
            rows = pa.concat_tables([window for run in windows for window in run])
            rows = with_cuts(rows) if kind in _COMBINED else rows
            yield merge(rows), removed_keys(rows)


def _merge_of(kind: Kind) -> tuple[Callable[[pa.Table], pa.Table], pa.Schema]:
    return (combined, record_schema(kind)) if kind in _COMBINED else (newest, ENCODED)


@contextmanager
def _opened(rows: SliceRows) -> Iterator[Sequence[_Run]]:
    """Open the base file and the blocks of log files that count, in the order of merging."""
    with open_logs(rows.reading, rows.file_slice) as logs:
        base = rows.file_slice.base
        windows = gathered(rows.of_base(), _keys, BASE_WINDOW_BYTES)
        runs = [_run(windows, "" if base is None else base.status.path, 1)]
        for placed in logs.blocks_to_merge(rows.table.instants):
            windows = map(_one, rows.of_block(placed, logs.files[placed.file]))
            in_order = map(_sorted, windows) if placed.block.kind is BlockType.DELETE else windows
            runs.append(_run(in_order, placed.file.status.path, WINDOWS_HELD))
        yield runs


def _run(windows: Iterator[pa.Table], path: str, held: int) -> _Run:
    return SortedRun([(path, windows)], _keys, held, _UNSORTED, once=True)


def _keys(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    return flat(rows.column(KEY))


def _one(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _sorted(removed: pa.Table) -> pa.Table:
    """Return the entries of a delete block in the order of their keys."""
    return removed.sort_by(KEY)
