"""Spill record batches to disk beyond a memory bound, and sort more rows than fit in memory.

`SpillingGroups` holds batches by group, `SpillingTables` tables of any columns:

    add(group, batch) ...  -> memory, until `limit_bytes`
                           -> one Arrow IPC file per overflow, batches of a group in order
    batches(group)         -> its batches from every overflow file, then those still in memory

Overflow files are in a temporary folder of the machine, not in the table, and are deleted with the lists.

`SortedRanges` sorts by ranges:

    stream ── store and sample ──> cut points ── split ──> ranges, on disk beyond a bound
    ranges, each sorted when it is read ──> for each part one stream of neighbouring ranges
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.errors import temporary_disk_errors
from drawstring.base.resources import BATCH_ROWS, TemporaryFolder
from drawstring.engine.grouping import SMALL_BYTES_MAX

_RUN_ROWS: Final = 8_192
"""Rows of a batch of an arranged run: whoever merges runs holds some batches of each."""

_IPC: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class SpillingGroups:
    """Record batches by group, in the order of arrival, with bounded memory.

    Args:
        schema: schema of every batch.
        limit_bytes: bytes of batches kept in memory.
        arrange: puts the batches of a group that are in memory in order, before they are stored or become a
            run; None to keep them as they came.
        folder: where files are spilled to; None for the temporary folder of the machine.
    """

    def __init__(
        self,
        schema: pa.Schema,
        limit_bytes: int,
        arrange: Callable[[list[pa.RecordBatch]], pa.Table] | None = None,
        folder: str | None = None,
    ) -> None:
        self._above = folder
        self._schema = schema
        self._arrange = arrange
        self._limit_bytes = limit_bytes
        self._held: dict[Hashable, list[pa.RecordBatch]] = defaultdict(list)
        self._held_bytes = 0
        self._drains = False
        self._folder: TemporaryFolder | None = None
        self._runs: list[tuple[str, dict[Hashable, list[int]]]] = []
        self._groups: dict[Hashable, int] = {}

    def add(self, group: Hashable, batch: pa.RecordBatch) -> None:
        """Append a batch to a group."""
        size_bytes = batch.nbytes
        self._groups[group] = self._groups.get(group, 0) + size_bytes
        self._held[group].append(batch)
        self._held_bytes += size_bytes
        if self._held_bytes > self._limit_bytes:
            self._spill()

    def groups(self) -> list[Hashable]:
        """Return the groups in the order of their first batches."""
        return list(self._groups)

    @property
    def are_little(self) -> bool:
        """Whether one thread works through all groups in less time than it takes to start several."""
        return sum(self._groups.values()) <= SMALL_BYTES_MAX

    def parts(self, count: int) -> list[list[Hashable]]:
        """Return the groups in parts: small ones together, but a number of parts if there are so many."""
        small = [group for group, size_bytes in self._groups.items() if size_bytes <= SMALL_BYTES_MAX]
        together = min(limits.in_force.groups_ahead_max, -(-len(small) // count))
        large = [[group] for group, size_bytes in self._groups.items() if size_bytes > SMALL_BYTES_MAX]
        return large + [small[start : start + together] for start in range(0, len(small), together or 1)]

    def batches(self, group: Hashable) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a group in the order in which they were added."""
        for path, index in self._runs:
            if group in index:
                yield from _stored(path, index[group])
        held = self._held.get(group, [])
        if not self._drains:
            yield from held
            return
        held.reverse()
        while held:
            yield held.pop()

    def runs(self, group: Hashable) -> list[Iterator[pa.RecordBatch]]:
        """Return the batches of a group as they are stored, file by file, and those in memory at last."""
        stored = [_stored(path, index[group]) for path, index in self._runs if group in index]
        held = self._held.get(group)
        return [*stored, iter(self._arranged(held))] if held else stored

    def drain(self) -> None:
        """Free batches in memory as they are read: the next reading is the last one."""
        self._drains = True

    def drop(self, group: Hashable) -> None:
        """Free a group's batches in memory."""
        self._held.pop(group, None)

    def close(self) -> None:
        """Free the batches in memory and delete the files on disk."""
        self._held.clear()
        if self._folder is not None:
            self._folder.drop()
            self._folder = None

    def _spill(self) -> None:
        with temporary_disk_errors(self._above):
            self._write_run()

    def _write_run(self) -> None:
        if self._folder is None:
            self._folder = TemporaryFolder("spill", self._above)
        path = os.path.join(self._folder.path, f"{len(self._runs)}.arrow")
        index: dict[Hashable, list[int]] = {}
        position = 0
        with pa.ipc.new_file(path, self._schema, options=_IPC) as sink:
            for group, batches in self._held.items():
                index[group] = []
                for batch in self._arranged(batches):
                    sink.write_batch(batch)
                    index[group].append(position)
                    position += 1
        self._runs.append((path, index))
        self._held.clear()
        self._held_bytes = 0

    def _arranged(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        if self._arrange is None:
            return batches
        arranged: list[pa.RecordBatch] = self._arrange(batches).to_batches(max_chunksize=_RUN_ROWS)
        return arranged


class SpillingTables:
    """Tables in the order of arrival, each with columns of its own, with bounded memory. They are read once.

    Args:
        limit_bytes: bytes of tables kept in memory.
        folder: where files are spilled to; None for the temporary folder of the machine.
    """

    def __init__(self, limit_bytes: int, folder: str | None = None) -> None:
        self._above = folder
        self._limit_bytes = limit_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._folder: TemporaryFolder | None = None
        self._paths: deque[str] = deque()
        self._spilled = 0

    def add(self, rows: pa.Table) -> None:
        """Append the rows of a table."""
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes > self._limit_bytes:
            with temporary_disk_errors(self._above):
                self._write_held()

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, and forget those that were read."""
        while self._paths:
            with pa.memory_map(self._paths[0]) as source:
                yield from pa.ipc.open_stream(source)
            os.remove(self._paths.popleft())
        self._held.reverse()
        while self._held:
            yield from self._held.pop().to_batches(BATCH_ROWS)

    def _write_held(self) -> None:
        """Store the tables in memory, a file for those with the same columns that follow each other."""
        if self._folder is None:
            self._folder = TemporaryFolder("spill", self._above)
        for schema, tables in groupby(self._held, lambda each: each.schema):
            path = os.path.join(self._folder.path, f"{self._spilled}.arrow")
            with pa.ipc.new_stream(path, schema, options=_IPC) as sink:
                for each in tables:
                    sink.write_table(each, BATCH_ROWS)
            self._paths.append(path)
            self._spilled += 1
        self._held.clear()
        self._held_bytes = 0


def _stored(path: str, positions: list[int]) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(path) as source:
        reader = pa.ipc.open_file(source)
        for position in positions:
            yield reader.get_batch(position)


_SAMPLE_ROWS = 64
_ALL_ROWS = "rows"


class SortedRanges:
    """Divides rows into ranges and returns them sorted.

    Args:
        schema: columns of the rows.
        by: columns to sort by; null comes first.
        memory_bytes: bytes of rows kept in memory.
        parts: number of streams that are read at the same time.
        folder: where files are spilled to; None for the temporary folder of the machine.
    """

    def __init__(
        self,
        schema: pa.Schema,
        by: Sequence[str],
        memory_bytes: int,
        parts: int,
        folder: str | None = None,
    ) -> None:
        self._by = tuple(by)
        self._schema = schema
        self._range_bytes = max(1, memory_bytes // (4 * parts))
        self._parts = parts
        self._rows = SpillingGroups(schema, memory_bytes // 4, folder=folder)
        self._ranges = SpillingGroups(schema, memory_bytes // 4, folder=folder)

    def take(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Read all rows and divide them into ranges."""
        sample: list[pa.RecordBatch] = []
        size_bytes = 0
        for batch in batches:
            if batch.num_rows:
                self._rows.add(_ALL_ROWS, batch)
                step = max(1, batch.num_rows // _SAMPLE_ROWS)
                sample.append(batch.select(self._by).take(pa.array(np.arange(0, batch.num_rows, step))))
                size_bytes += batch.nbytes
        if not sample:
            return
        count = max(self._parts, -(-size_bytes // self._range_bytes))
        cuts = _cut_points(pa.Table.from_batches(sample), self._by, count)
        for batch in self._rows.batches(_ALL_ROWS):
            for number, rows in _split(batch, self._by, cuts):
                self._ranges.add(number, rows)
        self._rows.close()

    def parts(self) -> list[Iterator[pa.RecordBatch]]:
        """Return streams of neighbouring ranges, each sorted."""
        numbers = sorted(number for number in self._ranges.groups() if isinstance(number, int))
        ends = np.linspace(0, len(numbers), min(self._parts, len(numbers)) + 1).astype(int).tolist()
        return [self._stream(numbers[start:end]) for start, end in pairwise(ends)]

    def close(self) -> None:
        """Delete the files on disk."""
        self._rows.close()
        self._ranges.close()

    def _stream(self, numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for number in numbers:
            rows = pa.Table.from_batches(list(self._ranges.batches(number)), self._schema)
            self._ranges.drop(number)
            yield from rows.take(sorted_order(rows, self._by)).to_batches(max_chunksize=BATCH_ROWS)


def sorted_order(rows: pa.Table, by: Sequence[str]) -> pa.Array:
    """Return the row numbers in sorted order; the sort is stable."""
    columns: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(by):
        if rows.column(name).null_count:
            columns[f"{number} is valid"] = pc.is_valid(rows.column(name))
        columns[str(number)] = rows.column(name)
    return pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])


def _cut_points(sample: pa.Table, by: Sequence[str], count: int) -> pa.Table:
    """Return the rows of a sample at which the second and all later ranges begin."""
    ordered = sample.take(sorted_order(sample, by))
    positions = np.unique(np.linspace(0, len(ordered), count + 1).astype(int)[1:-1])
    return ordered.take(pa.array(positions))


def _split(batch: pa.RecordBatch, by: Sequence[str], cuts: pa.Table) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Divide a batch into ranges; rows that equal a cut belong to the range that begins there."""
    keys = pa.Table.from_batches([batch.select(list(by))])
    order = sorted_order(pa.concat_tables([cuts, keys]), by).to_numpy().astype(np.int64)
    is_row = order >= len(cuts)
    ordered = batch.take(pa.array(order[is_row] - len(cuts)))
    ends = np.cumsum(is_row)[~is_row].tolist()
    for number, (start, end) in enumerate(pairwise((0, *ends, batch.num_rows))):
        if end > start:
            yield number, ordered.slice(start, end - start)
