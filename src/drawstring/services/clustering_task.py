"""Write the rows of one clustering group into new base files, sorted or copied.

`ClusterGroup` is the task. `RowOrder` is the sort order: by columns, or along a space-filling curve. A
space-filling curve places rows with similar values in several columns close to each other:

    column ── bits in the order of its values ──┐
    column ── bits in the order of its values ──┴─ interleaved ──> bytes to sort by   (z-order)
                                    Gray-coded and turned first ──> bytes to sort by   (Hilbert)

The bits are those of the values themselves, or of their ranks in a sample. Ranks give columns of very
different ranges equal weight.

Without a sort order, `copy_row_groups` copies row groups of small base files into new file groups without
decoding, where that pays off. It reads the key column for the bloom filter of the new file, because joined
filters of the small files would be full, and decodes nothing else. Page indexes are lost, and the codec and
the encodings of the small files stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.clock import Ids, Stopwatch
from drawstring.base.errors import InvalidError
from drawstring.config.keys.services import Clustering, Layout
from drawstring.config.table_types import split_list
from drawstring.engine.spill import SortedRanges
from drawstring.filegroups.base_file_writer import (
    BaseFileWriter,
    FileSettings,
    as_stored,
    ensure_partition_metadata,
)
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.filegroups.read_task import InstantRange, ReadTask, nullable
from drawstring.filegroups.sorted_merge import first_of_each_key
from drawstring.formats.parquet.footer import ChunkSource, chunk_source
from drawstring.formats.parquet.reader import has_table_units
from drawstring.formats.parquet.row_group_copy import can_concat, concat_files
from drawstring.model.commit import WriteStat
from drawstring.model.files import (
    PARQUET,
    BaseFile,
    FileSlice,
    TaskContext,
    file_extension,
    join_path,
    random_file_id,
)
from drawstring.model.plans import ClusteringGroup
from drawstring.services.clustering_plan import CURVE_METHOD, LAYOUT, SORT_COLUMNS
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage

_IO_TYPE: Final = "CREATE"


def copy_row_groups(
    settings: FileSettings, storage: Storage, slices: Sequence[FileSlice], write_token: str, ids: Ids
) -> list[WriteStat] | None:
    """Write the base files of file slices into new file groups by copying their row groups.

    Args:
        settings: of the new files.
        storage: the table's files.
        slices: of one partition.
        write_token: of the task attempt.
        ids: names file groups.

    Returns:
        The new files; None if rows have to be decoded: there are log files, different schemas, timestamps in
        units that the table does not have, or very small row groups.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    files = _base_files(slices)
    if files is None or any(settings.config.renames(each.instant) is not None for each in files):
        return None
    candidates = [chunk_source(storage, each.status.path) for each in files]
    sources = [each for each in candidates if each is not None]
    row_groups = sum(len(each.row_groups) for each in sources)
    size_bytes = sum(each.status.size_bytes for each in files)
    if len(sources) < len(candidates) or not sources or not can_concat(sources):
        return None
    if not has_table_units(sources[0], settings.full_schema):
        return None
    if size_bytes < row_groups * limits.in_force.stitched_group_bytes_min:
        return None
    sized_sources = [(source, file.status.size_bytes) for source, file in zip(sources, files, strict=True)]
    parts = [
        (each, random_file_id(ids.uuid())) for each in _files_of(sized_sources, settings.base_file_bytes_max)
    ]
    return [
        _write(settings, storage, part, BaseFile.name_of(file_id, write_token, settings.instant))
        for part, file_id in parts
    ]


def _base_files(slices: Sequence[FileSlice]) -> list[BaseFile] | None:
    files = [each.base for each in slices if each.base is not None and not each.logs]
    if len(files) < len(slices) or not all(_has_own_rows(each) for each in files):
        return None
    return files


def _has_own_rows(base: BaseFile) -> bool:
    return base.source is None and file_extension(base.status.name) == PARQUET


def _files_of(sources: Sequence[tuple[ChunkSource, int]], bytes_max: int) -> Iterator[list[ChunkSource]]:
    """Divide the sources into new files, in order."""
    group: list[ChunkSource] = []
    group_bytes = 0
    for source, size_bytes in sources:
        if group and group_bytes + size_bytes > bytes_max:
            yield group
            group, group_bytes = [], 0
        group.append(source)
        group_bytes += size_bytes
    yield group


def _write(settings: FileSettings, storage: Storage, sources: Sequence[ChunkSource], name: str) -> WriteStat:
    watch = Stopwatch()
    partition = sources[0].path.rpartition("/")[0]
    path = join_path(partition, name)
    has_meta = settings.config.populate_meta_fields
    ensure_partition_metadata(storage, partition, settings.instant)
    markers = settings.markers(storage)
    markers.create(path, _IO_TYPE)
    size_bytes = concat_files(storage, sources, path, name if has_meta else None, bloom=settings.key_filter)
    markers.confirm(path, _IO_TYPE)
    rows = sum(each.rows for each in sources)
    return WriteStat(
        partition=partition,
        file_id=name.partition("_")[0],
        path=path,
        num_writes=rows,
        num_inserts=rows,
        size_bytes=size_bytes,
        seconds=watch.seconds(),
        created=True,
    )


Bits: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

RANK_BITS: Final = 12
"""Bits of a rank; a sample has no finer resolution."""

_SIGN: Final = np.uint64(1 << 63)
_WIDTH: Final = 64


def ordered_bits(column: pa.Array) -> Bits:
    """Return a number for each value, in the order of the values; null comes first.

    Args:
        column: numbers, decimals, times, booleans, texts or bytes; only the first eight bytes of the last
            two count.

    Raises:
        InvalidError: values of the type cannot be ordered.
    """
    bits = _bits(column)
    bits[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return bits


def sample_cuts(sample: Bits) -> Bits:
    """Return distinct values that divide a sample into equal parts."""
    ordered = np.sort(sample)
    positions = np.linspace(0, len(ordered) - 1, min(len(ordered), 1 << RANK_BITS)).astype(int)
    return np.unique(ordered[positions])


def ranks(bits: Bits, cuts: Bits) -> Bits:
    """Return the rank of each value among the cuts of a sample, in the highest bits."""
    rank = np.searchsorted(cuts, bits) * (1 << RANK_BITS) // max(1, len(cuts))
    return np.minimum(rank, (1 << RANK_BITS) - 1).astype(np.uint64) << np.uint64(_WIDTH - RANK_BITS)


def curve(columns: Sequence[Bits], *, hilbert: bool) -> pa.Array:
    """Return the position of each row on a curve, as bytes that sort in curve order.

    Args:
        columns: bits of each column, all of the same length.
        hilbert: True for a Hilbert curve, False for z-order.
    """
    axes = _hilbert_axes([bits.copy() for bits in columns]) if hilbert else list(columns)
    stacked = np.stack(axes, axis=1).astype(">u8")
    rows, width = len(stacked), 8 * len(axes)
    single = np.unpackbits(stacked.view(np.uint8), axis=1).reshape(rows, len(axes), _WIDTH)
    interleaved = np.packbits(single.transpose(0, 2, 1).reshape(rows, 8 * width), axis=1)
    return pa.Array.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(interleaved.tobytes())])


def _bits(column: pa.Array) -> Bits:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _bits(column.dictionary_decode())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
        bits = numbers.view(np.uint64).copy()
        ordered: Bits = np.where(bits & _SIGN, ~bits, bits | _SIGN)
        return ordered
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return _first_bytes(column)
    if pa.types.is_fixed_size_binary(kind):
        return _first_bytes(column.cast(pa.binary()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            column = column.cast(pa.int32())
        whole = pc.fill_null(column.cast(pa.int64(), safe=False), 0).to_numpy(zero_copy_only=False)
        flipped: Bits = whole.view(np.uint64) ^ _SIGN
        return flipped
    raise InvalidError(f"A column of type {kind} cannot be sorted. Sort by other columns.")


def _first_bytes(column: pa.Array) -> Bits:
    data = pc.fill_null(column.cast(pa.binary()), b"")
    padded = pc.binary_join_element_wise(data, b"\0" * 8, b"")
    first = pc.binary_slice(padded, 0, 8).cast(pa.binary(8))
    start = first.offset * 8
    raw = np.frombuffer(first.buffers()[1], dtype=np.uint8)[start : start + 8 * len(first)]
    return raw.view(">u8").astype(np.uint64)


def _hilbert_axes(axes: list[Bits]) -> list[Bits]:
    """Transform coordinates into those of a Hilbert curve (Skilling, 2004, AxestoTranspose)."""
    for shift in range(_WIDTH - 1, 0, -1):
        bit = np.uint64(1 << shift)
        below = bit - np.uint64(1)
        for number, axis in enumerate(axes):
            is_set = (axis & bit) != 0
            swapped = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & below)
            axes[0] = axes[0] ^ np.where(is_set, below, swapped)
            axes[number] = axes[number] ^ swapped if number else axes[0]
    for number in range(1, len(axes)):
        axes[number] = axes[number] ^ axes[number - 1]
    flip = np.zeros_like(axes[0])
    for shift in range(_WIDTH - 1, 0, -1):
        bit = np.uint64(1 << shift)
        flip ^= np.where((axes[-1] & bit) != 0, bit - np.uint64(1), np.uint64(0))
    return [axis ^ flip for axis in axes]


SORT_BYTES: Final = 256 << 20
"""Greatest number of bytes of rows that sorting one group keeps in memory."""

_PLACE: Final = "_drawstring_place"
_SAMPLE_ROWS: Final = 2_048


@dataclass(frozen=True, slots=True)
class RowOrder:
    """A sort order of rows.

    Attributes:
        columns: the sort columns; none leaves rows in their order.
        layout: linear, or a space-filling curve through all columns.
        sampled: whether a curve goes through ranks of values, estimated from a sample.
    """

    columns: tuple[str, ...] = ()
    layout: str = Layout.LINEAR.value
    sampled: bool = False

    @staticmethod
    def of(parameters: Mapping[str, str], clustering: Clustering) -> RowOrder:
        """Return the order of a plan; Hudi's plans do not contain the kind of curve.

        Args:
            parameters: strategy parameters of the plan.
            clustering: the caller's options, used where the plan has no value.
        """
        layout = parameters.get(LAYOUT, clustering.layout).upper()
        method = parameters.get(CURVE_METHOD, clustering.curve_method)
        return RowOrder(split_list(parameters.get(SORT_COLUMNS, "")), layout, method.upper() == "SAMPLE")

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that rows cannot be sorted by.

        Raises:
            InvalidError: the table lacks a column, or its type has no order.
        """
        for name in self.columns:
            if name not in schema.names:
                raise InvalidError(
                    f"There is no column {name} to sort by. The columns of the table are {_listed(schema)}."
                )
            ordered_bits(pa.nulls(0, schema.field(name).type))

    @property
    def needs_sample(self) -> bool:
        """Whether rows have to be sampled before they are sorted."""
        return self.sampled and self._is_curve

    def sample(self, batches: Iterable[pa.RecordBatch]) -> dict[str, Bits]:
        """Return values that divide the values of each column evenly.

        Args:
            batches: all rows, with at least the sort columns.
        """
        samples: dict[str, list[Bits]] = {name: [] for name in self.columns}
        for batch in batches:
            step = max(1, batch.num_rows // _SAMPLE_ROWS)
            rows = pa.array(np.arange(0, batch.num_rows, step))
            for name in self.columns:
                samples[name].append(ordered_bits(batch.column(name).take(rows)))
        return {name: sample_cuts(np.concatenate(bits)) for name, bits in samples.items() if bits}

    def sorted(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, rank_bounds: Mapping[str, Bits]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; beyond `SORT_BYTES` they are spilled to disk.

        Args:
            batches: the rows.
            schema: of the rows.
            rank_bounds: result of `sample`, by column; empty for none.
        """
        if not self.columns:
            yield from batches
            return
        batches_with_place = self._placed(batches, rank_bounds) if self._is_curve else batches
        sort_columns = (_PLACE,) if self._is_curve else self.columns
        sorted_schema = pa.schema([*schema, *([self._place_field] if self._is_curve else [])])
        ranges = SortedRanges(sorted_schema, sort_columns, SORT_BYTES, parts=1)
        try:
            ranges.take(_as(each, sorted_schema) for each in batches_with_place)
            for part in ranges.parts():
                for batch in part:
                    yield batch.select(schema.names)
        finally:
            ranges.close()

    @property
    def _is_curve(self) -> bool:
        return self.layout != Layout.LINEAR and len(self.columns) > 1

    @property
    def _place_field(self) -> pa.Field:
        return pa.field(_PLACE, pa.binary(8 * len(self.columns)))

    def _placed(
        self, batches: Iterable[pa.RecordBatch], rank_bounds: Mapping[str, Bits]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            axes = [ordered_bits(batch.column(name)) for name in self.columns]
            if rank_bounds:
                axes = [ranks(bits, rank_bounds[name]) for name, bits in zip(self.columns, axes, strict=True)]
            places = curve(axes, hilbert=self.layout == Layout.HILBERT)
            yield batch.append_column(self._place_field, places)


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with exactly the types of a schema: constant columns may come dictionary-encoded."""
    columns = [batch.column(field.name) for field in schema]
    plain = [
        column.cast(field.type) if column.type != field.type else column
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(plain, schema=schema)


def _listed(schema: pa.Schema) -> str:
    return ", ".join(schema.names)


Numbered = tuple[int, ClusteringGroup]
"""A clustering group with its number in the plan."""


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """A task that rewrites the rows of one clustering group, in a sort order if one is requested.

    If rows stay as they are, base files of the same schema are copied without decoding them.

    Attributes:
        settings: of the new base files, including their target size.
        instants: decides which log blocks count.
        order: the sort order.
        keeps_commit_times: whether rows keep their meta columns, except for the file name.
        ids: names file groups, and gives every attempt its own write token.
    """

    settings: FileSettings
    instants: InstantRange
    order: RowOrder
    keeps_commit_times: bool
    ids: Ids

    def __call__(self, numbered: Numbered) -> list[WriteStat]:
        """Write the base files of a group."""
        number, group = numbered
        storage = open_spec(self.settings.storage)
        slices, context = located(group, storage), self.context(number)
        if self.keeps_commit_times and not self.order.columns:
            copied_stats = copy_row_groups(self.settings, storage, slices, context.write_token, self.ids)
            if copied_stats is not None:
                return copied_stats
        names = tuple(self.settings.full_schema.names)
        rank_bounds = (
            self.order.sample(self.read(slices, self.order.columns)) if self.order.needs_sample else {}
        )
        schema = nullable(self.settings.full_schema, names)
        rows = self.order.sorted(self.read(slices, names), schema, rank_bounds)
        if self.settings.config.has_sorted_files:
            return self._write_sorted(storage, group.partition, rows, context)
        return self._write(storage, group.partition, rows, context)

    def _write_sorted(
        self, storage: Storage, partition: str, rows: Iterable[pa.RecordBatch], context: TaskContext
    ) -> list[WriteStat]:
        """Write rows that are sorted by key to files with each key once: other rows go to further files.

        Inserts may have added a key to several file groups.
        """
        stats: list[WriteStat] = []
        while True:
            repeated: list[pa.RecordBatch] = []
            stats += self._write(storage, partition, first_of_each_key(rows, repeated), context)
            if not repeated:
                return stats
            rows = repeated

    def context(self, number: int) -> TaskContext:
        """Return the context of one attempt at a group, given its number."""
        return TaskContext(number, 0, int(self.ids.uuid()[:6], 16))

    def read(self, slices: Iterable[FileSlice], columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows of file slices, one slice after the other."""
        settings = self.settings
        for each in slices:
            task = ReadTask(
                settings.storage,
                settings.config,
                each,
                settings.full_schema,
                columns,
                instants=self.instants,
            )
            yield from read_slice(task)

    def _write(
        self, storage: Storage, partition: str, rows: Iterable[pa.RecordBatch], context: TaskContext
    ) -> list[WriteStat]:
        settings = self.settings
        meta_columns = None if self.keeps_commit_times else settings.meta_column_writer(context.task)
        stats: list[WriteStat] = []
        writer: BaseFileWriter | None = None
        try:
            for batch in rows:
                if writer is None:
                    file_id = random_file_id(self.ids.uuid())
                    writer = BaseFileWriter(settings, storage, partition, file_id, context.write_token)
                if meta_columns is None:
                    writer.write(as_stored(batch, writer.name, settings.config))
                else:
                    writer.write(meta_columns.apply(batch, writer.name))
                if writer.bytes_written >= settings.base_file_bytes_max:
                    stats.append(writer.close(inserts=writer.rows))
                    writer = None
        except BaseException:
            if writer is not None:
                writer.abort()
            raise
        return [*stats, writer.close(inserts=writer.rows)] if writer else stats


def located(group: ClusteringGroup, storage: Storage) -> list[FileSlice]:
    """Return the file slices of a group, with the sizes of their files."""
    files = {status.path: status for status in storage.list_files(group.partition)}
    return [each.located(files) for each in group.slices]
