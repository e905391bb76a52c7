"""Records of a file slice before and after each of several writes to its log files.

    log files ──> the records of the keys that these writes touched, block by block ──┐
    base file ──> the rows of the same keys ──────────────────────────────────────────┴─> cached once
    a time    ──> the blocks visible then, for the keys of one write ──> merged ──> its rows

A write to a log file changes only its own keys, so the other rows of the slice are neither read again for
each write nor cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final
from weakref import ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.cached import cached_property
from drawstring.filegroups.read.log_blocks import PlacedBlock, blocks_to_merge
from drawstring.filegroups.read.log_records import merged_records
from drawstring.filegroups.read.open_logs import LogPiece, open_logs
from drawstring.filegroups.read.slice_merge import base_rows, base_schema, log_reading
from drawstring.filegroups.read.slice_reader import merge_base_rows
from drawstring.filegroups.read.tasks import LogReading, ReadTask
from drawstring.merge.order import Array
from drawstring.merge.versions import flat
from drawstring.schema.meta import RECORD_KEY

HELD_BYTES_MAX: Final = 256 << 20
"""Bytes of records that are cached across all slices; records beyond it are read again."""


class LogHistory:
    """A slice and some writes to its log files; loads on first use, frees its memory after the last use.

    Args:
        newest: reads the slice as the newest of the writes left it.
        writes: requested times of the writes.
        uses: how often `around` will be called.
    """

    def __init__(self, newest: ReadTask, writes: frozenset[str], uses: int) -> None:
        self._newest, self._writes, self._uses = newest, writes, uses
        self._lock = Lock()
        self._held: _Held | None = None
        self._left = uses

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the cached records."""
        return LogHistory, (self._newest, self._writes, self._uses)

    def around(
        self, write: str, before: ReadTask | None, after: ReadTask | None
    ) -> tuple[pa.Table | None, pa.Table | None]:
        """Return the records that a write touched, as they were before and after it.

        Args:
            write: its requested time.
            before: reads the slice before it; None if not needed, or if there was no slice.
            after: reads the slice after it; None if not needed.
        """
        held = self._load()
        keys = held.keys_of(write)
        tables = tuple(None if task is None else held.rows(task, keys) for task in (before, after))
        self._done()
        return tables[0], tables[1]

    def _load(self) -> _Held:
        with self._lock:
            held = self._held
            if held is None:
                held = self._held = _held(self._newest, self._writes)
        _HOLDERS.note(self, held.size_bytes)
        return held

    def _done(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left <= 0:
                self._held, self._left = None, self._uses
                _HOLDERS.forget(self)

    def let_go(self) -> None:
        """Free the cached records; they are read again when needed."""
        self._held = None


class _Holders:
    """The histories that cache records, least recently used first; evicts beyond the limit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sizes: OrderedDict[int, tuple[ref[LogHistory], int]] = OrderedDict()

    def forget(self, history: LogHistory) -> None:
        with self._lock:
            self._sizes.pop(id(history), None)

    def note(self, history: LogHistory, size_bytes: int) -> None:
        with self._lock:
            self._sizes[id(history)] = ref(history), size_bytes
            self._sizes.move_to_end(id(history))
            total = sum(size for _, size in self._sizes.values())
            while total > HELD_BYTES_MAX and len(self._sizes) > 1:
                _, (holder, size) = self._sizes.popitem(last=False)
                total -= size
                if (other := holder()) is not None:
                    other.let_go()


_HOLDERS: Final = _Holders()


@dataclass(frozen=True)
class _Held:
    """The records of a slice with the keys that the writes touched.

    Attributes:
        reading: settings with which the log files were read.
        placed: all blocks of the log files.
        pieces: the records of the blocks that are visible at some time, by block number.
        base: the base rows.
    """

    reading: LogReading
    placed: Sequence[PlacedBlock]
    pieces: dict[int, LogPiece]
    base: pa.Table

    @cached_property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return int(self.base.nbytes) + sum(int(piece.rows.nbytes) for piece in self.pieces.values())

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return {id(placed): at for at, placed in enumerate(self.placed)}

    @cached_property
    def _logs(self) -> _Rows:
        return _Rows([flat(piece.keys) for piece in self.pieces.values()])

    @cached_property
    def _bases(self) -> _Rows:
        return _Rows([flat(self.base.column(RECORD_KEY))])

    def keys_of(self, write: str) -> pa.Array:
        """Return the keys that a write touched."""
        keys = [flat(piece.keys) for at, piece in self.pieces.items() if self.placed[at].instant == write]
        return pc.unique(pa.concat_arrays([pa.array([], pa.string()), *keys]))

    def rows(self, task: ReadTask, keys: pa.Array) -> pa.Table:
        """Return the records with the given keys as of a task's slice and instants."""
        paths = {log.status.path for log in task.file_slice.logs}
        chosen = blocks_to_merge(
            (each for each in self.placed if each.file.status.path in paths), task.instants
        )
        order = [self._numbers[id(each)] for each in chosen]
        numbers = list(self.pieces)
        places = {numbers[at]: rows for at, rows in self._logs.rows_of(keys).items()}
        parts = [self.pieces[at].take(places[at]) for at in order if at in places]
        log = merged_records(self.reading, parts, [self.pieces[at] for at in order])
        found = self._bases.rows_of(keys).get(0, np.zeros(0, dtype=np.int64))
        base = self.base.take(pa.array(found))
        merged = merge_base_rows(log, base.combine_chunks().to_batches(), task)
        return pa.Table.from_batches(merged, task.output_schema)


class _Rows:
    """Index of the rows of several pieces by key.

    Args:
        keys: the keys of the rows of each piece.
    """

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        ends = np.cumsum([0, *map(len, keys)])
        self._starts = ends[:-1]
        encoded = pa.concat_arrays([pa.array([], pa.string()), *keys]).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self._distinct = encoded.dictionary
        self._order = np.argsort(codes, kind="stable")
        self._firsts = np.searchsorted(codes[self._order], np.arange(len(self._distinct) + 1))

    def rows_of(self, keys: pa.Array) -> dict[int, Array]:
        """Return the ascending row numbers with the given keys, by piece number."""
        codes = pc.index_in(keys, value_set=self._distinct).drop_null().to_numpy(zero_copy_only=False)
        counts = self._firsts[codes + 1] - self._firsts[codes]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.sort(self._order[np.repeat(self._firsts[codes], counts) + within])
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        pieces, firsts = np.unique(owners, return_index=True)
        parts = np.split(rows, firsts[1:])
        return {int(at): part - self._starts[at] for at, part in zip(pieces, parts, strict=False)}


def _held(newest: ReadTask, writes: frozenset[str]) -> _Held:
    """Read the writes' own blocks first: they determine the keys to read from the other blocks."""
    reading = log_reading(newest)
    with open_logs(reading, newest.file_slice) as logs:
        counting = [
            at
            for at, placed in enumerate(logs.placed)
            if placed.holds_records and newest.instants.admits(placed.instant)
        ]
        own = {at: logs.read(logs.placed[at]) for at in counting if logs.placed[at].instant in writes}
        keys = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *(flat(p.keys) for p in own.values())]))
        pieces = {at: own[at] if at in own else _only(logs.read(logs.placed[at]), keys) for at in counting}
        placed = logs.placed
    batches = base_rows(newest, pc.field(RECORD_KEY).isin(keys)) if len(keys) else ()
    return _Held(reading, placed, pieces, pa.Table.from_batches(batches, base_schema(newest)))


def _only(piece: LogPiece, keys: pa.Array) -> LogPiece:
    is_selected = pc.is_in(piece.keys, value_set=keys).to_numpy()
    return piece if is_selected.all() else piece.take(np.flatnonzero(is_selected))
