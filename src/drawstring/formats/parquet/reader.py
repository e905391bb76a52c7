r"""Read Parquet base files and log blocks as a stream of record batches.

    footer -> row groups that `where` cannot exclude -> batches -> rows that match `where`
          \-> nothing, if the footer's bloom filter excludes all record keys of `where`

One row group is in memory at a time (several small ones together), or a piece of each column of a large one.
Page checksums, which parquet-mr writes, are verified: with codecs other than GZIP, a flipped bit could
otherwise go unnoticed.

Pruning of row groups by min/max statistics (`groups_that_may_match`): most writers ignore NaN in statistics,
but a predicate may be true for NaN. So the reader also reads an excluded row group if it may have NaN and the
predicate can be true with it:

    groups = groups(statistics) + groups(statistics, column is NaN), for each column of floats

parquet-mr, from 1.10 to 1.16, compares by `Double.compare`, to which NaN is the greatest value: without it
among the bounds of a row group, the row group has none. Versions before 1.10 left NaN out, and versions after
1.16 may leave it out again.

Rows of a row group (`late_materialized`): the reader decodes the columns of the condition first.

    columns of the condition ── no row matches ──> nothing more is decoded
        │ some do
    other columns, up to the last row that matches ──> the rows that match

So a point read decodes half of a row group on average, and nothing of a row group that its bounds did not
exclude but that has no match.

Text columns that expand (`expanding_columns`): a dictionary stores a text once, and with run lengths further
rows take no bytes. A file of 4 kB can have 60,000 rows of 40 kB each. Text columns with few stored bytes per
row are therefore read as dictionaries, and decoded in pieces of bounded size.

`read_parquet_part` reads a Parquet file within another file: a block of an inline log file. `parquet_footer`,
`parquet_schema` and `stored_summary` return a footer's entries, its schema and its key summary.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.resources import BATCH_ROWS
from drawstring.formats.bloom_footer import (
    FILTER,
    FILTER_TYPE,
    LARGEST_KEY,
    SMALLEST_KEY,
    StoredSummary,
    may_hold_any,
)
from drawstring.formats.errors import about_file
from drawstring.formats.filter import bound_columns, keep_rows, matching_numbers, with_table_types
from drawstring.formats.parquet.footer import (
    INT32,
    STRUCT,
    ChunkSource,
    Struct,
    encode_struct,
    footer_in,
    metadata_of,
    with_tail,
)
from drawstring.formats.predicate_bounds import guarantee
from drawstring.schema.fields import RECORD_KEY
from drawstring.schema.timestamp_units import has_millis, table_units
from drawstring.storage.protocol import Storage
from drawstring.storage.streams import RangeFile

ROWS_MIN: Final = 8_192
"""Rows up to which all columns are decoded at once: decoding in two steps costs more than it saves."""

COLUMNS_MIN: Final = 32
"""Columns beside those of the condition from which on it saves something, however few the rows are."""

Decode: TypeAlias = Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]
"""Yields some columns of all rows, so many rows at a time."""

Match: TypeAlias = Callable[[pa.RecordBatch], pa.Array]
"""Returns the numbers of the rows of a batch that match, ascending."""


def late_materialized(
    decode: Decode,
    looked_at: Sequence[str],
    requested: Sequence[str],
    match: Match,
) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of the rows that match.

    Args:
        decode: decodes columns.
        looked_at: the columns of the condition, at least one.
        requested: the columns to yield, of which the condition lacks some.
        match: finds the rows that match.
    """
    known: list[pa.RecordBatch] = []
    places: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    rows = known_bytes = 0
    for batch in decode(looked_at, BATCH_ROWS):
        numbers = match(batch)
        if len(numbers):
            places.append(numbers.to_numpy().astype(np.int64) + rows)
            if known_bytes <= limits.in_force.matched_bytes_max:
                known.append(batch if len(numbers) == batch.num_rows else batch.take(numbers))
                known_bytes += known[-1].nbytes
        rows += batch.num_rows
    if not places:
        return
    is_known = known_bytes <= limits.in_force.matched_bytes_max
    others = [name for name in requested if name not in looked_at] if is_known else requested
    found, wanted = pa.Table.from_batches(known) if is_known else None, np.concatenate(places)
    known.clear()
    start = done = 0
    for batch in decode(others, min(BATCH_ROWS, int(wanted[-1]) + 1)):
        end = start + batch.num_rows
        stop = int(np.searchsorted(wanted, end))
        if stop - done < batch.num_rows:
            batch = batch.take(pa.array(wanted[done:stop] - start))
        if found is not None:
            yield from _joined(found.slice(done, stop - done), batch, requested)
        elif batch.num_rows:
            yield batch.select(list(requested))
        start, done = end, stop
        if done == len(wanted):
            return


def _joined(found: pa.Table, others: pa.RecordBatch, requested: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of the same rows side by side."""
    start, in_found = 0, {*found.column_names}
    for batch in found.to_batches():
        beside = others.slice(start, batch.num_rows)
        start += batch.num_rows
        columns = [(batch if name in in_found else beside).column(name) for name in requested]
        yield pa.RecordBatch.from_arrays(columns, names=list(requested))


_ROWS_ALWAYS: Final = 1 << 20
_ROWS_PER_BYTE_MAX: Final = 256
"""Largest number of rows per stored byte of a file with more than `_ROWS_ALWAYS`; distinct keys take more."""

_EXPANDING_BYTES_PER_ROW: Final = 4
_LITTLE_BYTES: Final = 1 << 20
"""Stored bytes up to which a column counts as folded, regardless of its number of rows."""

_FEW_ROWS: Final = 1_000
_DICTIONARIES: Final = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


def check_row_count(rows: int, size_bytes: int) -> None:
    """Refuse a file that claims more rows than its size allows.

    Args:
        rows: number of rows according to the footer.
        size_bytes: size of the file.

    Raises:
        pa.ArrowInvalid: there are too many rows.
    """
    if rows > _ROWS_ALWAYS + _ROWS_PER_BYTE_MAX * size_bytes:
        raise pa.ArrowInvalid(f"it claims {rows} rows in {size_bytes} bytes")


def expanding_columns(
    parquet: pq.ParquetFile, groups: Sequence[int], names: Collection[str], others: Collection[str]
) -> list[str]:
    """Return the text columns that may take far more memory than their stored size.

    Args:
        parquet: the file.
        groups: numbers of the row groups to read.
        names: columns to read.
        others: columns that remain dictionaries anyway.
    """
    metadata = parquet.metadata
    if metadata.num_rows <= _FEW_ROWS:
        return []
    texts = {
        field.name
        for field in parquet.schema_arrow
        if field.name in names and field.name not in others and _is_text(field.type)
    }
    if not texts:
        return []
    places = [(at, path) for at in range(metadata.num_columns) if (path := _path(metadata, at)) in texts]
    return [
        path for at, path in places if any(_is_expanding(metadata.row_group(group), at) for group in groups)
    ]


def decoded_in_pieces(batch: pa.RecordBatch, folded: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield a batch with its folded columns decoded, in pieces of bounded size.

    Args:
        batch: rows with dictionary-encoded columns.
        folded: columns to decode.
    """
    places = [at for at, name in enumerate(batch.schema.names) if name in folded]
    if not places:
        yield batch
        return
    for start, stop in _pieces([batch.column(at) for at in places], batch.num_rows):
        columns = batch.slice(start, stop - start).columns
        for at in places:
            columns[at] = columns[at].dictionary_decode()
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _pieces(columns: Sequence[pa.DictionaryArray], rows: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of pieces that do not exceed the bound or have a single row."""
    lengths = [pc.binary_length(each.dictionary).fill_null(0).to_numpy().astype(np.int64) for each in columns]
    if sum(int(each.max(initial=0)) for each in lengths) * rows <= limits.in_force.expanded_bytes_max:
        yield 0, rows
        return
    ends = np.cumsum(sum(map(_bytes_of_rows, columns, lengths)))
    start = 0
    while start < rows:
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + limits.in_force.expanded_bytes_max, side="right"))
        yield start, max(stop, start + 1)
        start = max(stop, start + 1)


def _bytes_of_rows(column: pa.DictionaryArray, lengths: Any) -> Any:
    indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return lengths[indices] if len(lengths) else np.zeros(len(indices), np.int64)


def _is_expanding(group: pq.RowGroupMetaData, at: int) -> bool:
    column = group.column(at)
    stored_bytes = column.total_compressed_size
    is_little = stored_bytes <= max(_LITTLE_BYTES, _EXPANDING_BYTES_PER_ROW * group.num_rows)
    return is_little and not _DICTIONARIES.isdisjoint(column.encodings)


def _path(metadata: pq.FileMetaData, at: int) -> str:
    return str(metadata.schema.column(at).path)


def _is_text(kind: pa.DataType) -> bool:
    return any(matches(kind) for matches in (pt.is_string, pt.is_binary))


_FLOAT_COLUMNS_MAX: Final = 2
"""Number of float columns up to which each combination of NaNs is tested; with more, all groups are read."""

_NAN: Final = float("nan")

_BOUNDS_WITH_NAN: Final = re.compile(r"parquet-mr version 1\.1[0-6]\.\d")
"""Beginning of the name of the writers whose bounds of floats tell of NaN."""


def groups_that_may_match(
    fragment: ds.ParquetFileFragment, where: pc.Expression, bound: pa.Schema, present: pa.Schema
) -> list[int]:
    """Return the row groups whose statistics do not exclude a match.

    Args:
        fragment: the file, with a guarantee that holds for all of its rows.
        where: the predicate.
        bound: the predicate's columns, with their types in its evaluation.
        present: the columns of the file and those with a known value. Statistics have the file's types: a
            column with another type in the predicate excludes nothing.
    """
    everything = [group.id for group in fragment.row_groups]
    floats = _with_groups(fragment, (field.name for field in bound if pt.is_floating(field.type)))
    if (
        not all(
            field.name in present.names and present.field(field.name).type == field.type for field in bound
        )
        or any(_has_floats_inside(field.type) for field in bound)
        or len(floats) > _FLOAT_COLUMNS_MAX
    ):
        return everything
    try:
        groups = _matching(fragment, where, present)
        for other, among in _with_nan(fragment, floats):
            groups |= _matching(other, where, present) & among
    except pa.ArrowException:
        # A constant part of the predicate fails; evaluating it on rows, if there are any, reports the error.
        return everything
    return sorted(groups)


def _matching(fragment: ds.ParquetFileFragment, where: pc.Expression, present: pa.Schema) -> set[int]:
    return {group.id for group in fragment.subset(filter=where, schema=present).row_groups}


def _with_groups(fragment: ds.ParquetFileFragment, names: Iterable[str]) -> dict[str, set[int]]:
    """Return the row groups in which columns of floats may be NaN; columns without one are omitted."""
    metadata = fragment.metadata
    groups = range(metadata.num_row_groups)
    if _BOUNDS_WITH_NAN.match(metadata.created_by or "") is None:
        return {name: set(groups) for name in names}
    found = {
        name: {group for group in groups if _may_have_nan(metadata.row_group(group), name)} for name in names
    }
    return {name: among for name, among in found.items() if among}


def _may_have_nan(group: pq.RowGroupMetaData, name: str) -> bool:
    """Return whether the bounds of a column, if NaN counts in them, do not exclude NaN."""
    for at in range(group.num_columns):
        chunk = group.column(at)
        if chunk.path_in_schema == name:
            stored = chunk.statistics
            if stored is None or not stored.has_min_max:
                return True
            return bool(stored.min != stored.min or stored.max != stored.max)
    return True


def _with_nan(
    fragment: ds.ParquetFileFragment, floats: Mapping[str, set[int]]
) -> Iterator[tuple[ds.ParquetFileFragment, set[int]]]:
    """Yield fragments that assume NaN in one or several columns, and their row groups that may have it.

    Nothing is read again.
    """
    if not floats:
        return
    footer = pa.BufferOutputStream()
    fragment.metadata.write_metadata_file(footer)
    for count in range(1, len(floats) + 1):
        for names in itertools.combinations(floats, count):
            known = fragment.partition_expression
            for name in names:
                known = known & (pc.field(name) == pc.scalar(_NAN))
            other = ds.ParquetFileFormat().make_fragment(
                pa.BufferReader(footer.getvalue()), partition_expression=known
            )
            yield other, set.intersection(*(floats[name] for name in names))


def _has_floats_inside(kind: pa.DataType) -> bool:
    if not pt.is_nested(kind):
        return False
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return any(pt.is_floating(each) or _has_floats_inside(each) for each in inner)


# Field ids and values of parquet.thrift.
_CHILDREN, _CONVERTED, _LOGICAL, _TIMESTAMP, _UNIT = 5, 6, 10, 8, 2
_CONVERTED_MILLIS: Final = (INT32, 9)
_NO_FIELDS: Struct = {}
_MILLIS: Final = (STRUCT, {1: (STRUCT, _NO_FIELDS)})


def in_table_units(metadata: pq.FileMetaData, types: pa.Schema | None) -> pq.FileMetaData:
    """Return the footer of a file with the units that the timestamps of the table have.

    Args:
        metadata: the footer.
        types: the columns of the table, by their names in the file; None if they are unknown.

    Returns:
        The same object if the file has these units.
    """
    if types is None or not has_millis(types):
        return metadata
    places = _mislabelled(metadata.schema.to_arrow_schema(), types)
    if not places:
        return metadata
    footer = footer_in(footer_bytes(metadata))
    leaves = [element for element in ChunkSource("", footer).columns if _CHILDREN not in element]
    for place in places:
        _relabel(leaves[place])
    return metadata_of(with_tail(encode_struct(footer)))


def has_table_units(source: ChunkSource, types: pa.Schema) -> bool:
    """Return whether the timestamps of a file have the units of the table.

    Args:
        source: the file.
        types: the columns of the table.
    """
    if not has_millis(types):
        return True
    stored = metadata_of(with_tail(encode_struct(source.footer)))
    return in_table_units(stored, types) is stored


def footer_bytes(metadata: pq.FileMetaData) -> pa.Buffer:
    """Return a footer as a Parquet file of which the rows are left out."""
    target = pa.BufferOutputStream()
    metadata.write_metadata_file(target)
    return target.getvalue()


def _mislabelled(stored: pa.Schema, types: pa.Schema) -> list[int]:
    """Return the places of the mislabelled columns among all that are not nested."""
    own = list(_leaves(pa.struct(list(stored))))
    wanted = list(_leaves(table_units(pa.struct(list(stored)), pa.struct(list(types)))))
    return [place for place, kind in enumerate(wanted) if kind != own[place]]


def _leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if not kind.num_fields:
        yield kind
    for place in range(kind.num_fields):
        yield from _leaves(kind.field(place).type)


def _relabel(element: Struct) -> None:
    if _CONVERTED in element:
        element[_CONVERTED] = _CONVERTED_MILLIS
    if _LOGICAL in element:
        timestamp: Struct = element[_LOGICAL][1][_TIMESTAMP][1]
        timestamp[_UNIT] = _MILLIS


WHOLE_BYTES_MAX: Final = 64 << 20
"""Compressed size up to which the columns of a row group are fetched at once instead of in pieces."""

_PIECE_BYTES: Final = 4 << 20
_BATCH_ROWS_MIN: Final = 256

_SMALL_FILE_BYTES: Final = 1 << 20
"""Size up to which a file is decoded on one thread, and fetched at once from where a request takes long."""


@dataclass(frozen=True, slots=True)
class ParquetQuery:
    """The columns and rows to read from a file.

    Attributes:
        columns: top-level columns to yield, in this order; those that the file lacks are omitted.
            None yields all.
        where: predicate of the rows, in which columns that the file lacks are null; None for all rows.
        batch_rows: largest number of rows in a batch.
        types: the table's columns by their names in the file, which may have narrower types: `where` is
            evaluated with these, and timestamps have their units. None if the file is of no table.
        constants: columns with a known value, with which `where` is evaluated instead of the file's values.
            They are only yielded if the file has them.
        dictionaries: text columns to yield dictionary-encoded.
        keys: the only record keys that rows of `where` can have; None for any.
        ahead_bytes: size of small row groups that are read together; None for `Limits.read_ahead_bytes`.
    """

    columns: Sequence[str] | None = None
    where: pc.Expression | None = None
    batch_rows: int = BATCH_ROWS
    types: pa.Schema | None = None
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    dictionaries: Sequence[str] = ()
    keys: Sequence[str] | None = None
    ahead_bytes: int | None = None


_EVERYTHING: Final = ParquetQuery()


def read_parquet(storage: Storage, path: str, query: ParquetQuery = _EVERYTHING) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, in its order, a bounded batch at a time.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        query: the columns and rows to read; all by default.

    Raises:
        CorruptTableError: the file is missing or damaged.
        InvalidError: the predicate does not fit the columns' types, or fails on a row.
    """
    with about_file(path), storage.open(path) as file:
        yield from _batches(file, query)


def read_parquet_rows(
    storage: Storage,
    path: str,
    columns: Sequence[str],
    dictionaries: Sequence[str],
    metadata: pq.FileMetaData,
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a file that is being rewritten.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        columns: top-level columns to yield; those that the file lacks are omitted.
        dictionaries: text columns to yield dictionary-encoded, for the writer.
        metadata: the file's footer, with the units of the table.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        yield from _batches(file, ParquetQuery(columns, dictionaries=dictionaries), metadata)


def read_parquet_bytes(
    data: bytes | pa.Buffer, query: ParquetQuery = _EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in memory; see `read_parquet`."""
    with about_file(None):
        yield from _batches(pa.BufferReader(data), query)


def read_open_parquet(
    file: pa.NativeFile, query: ParquetQuery, metadata: pq.FileMetaData | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open file, whose footer may have been read already; see `read_parquet`."""
    file.seek(0)
    yield from _batches(file, query, metadata)


def open_file(
    file: pa.NativeFile,
    metadata: pq.FileMetaData | None = None,
    dictionaries: Sequence[str] = (),
    *,
    in_pieces: bool = False,
) -> pq.ParquetFile:
    """Open a Parquet file as all reads do.

    Args:
        file: the file.
        metadata: its footer, if it was read already.
        dictionaries: text columns to read dictionary-encoded.
        in_pieces: whether to fetch columns piece by piece instead of at once.
    """
    return pq.ParquetFile(
        file,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        coerce_int96_timestamp_unit="us",
        pre_buffer=not in_pieces and not isinstance(file, pa.BufferReader) and not is_small(file),
        buffer_size=_PIECE_BYTES if in_pieces else 0,
        page_checksum_verification=True,
    )


def columns_of(parquet: pq.ParquetFile) -> pa.Schema:
    """Return the file's schema without metadata, since each batch would carry the footer's entries."""
    return pa.schema([field.remove_metadata() for field in parquet.schema_arrow])


def fetch_if_small(file: pa.NativeFile) -> pa.NativeFile:
    """Return a small file as bytes in memory, another one as it is."""
    if isinstance(file, pa.BufferReader):
        return file
    bytes_max = limits.in_force.local_copy_bytes_max if isinstance(file, pa.OSFile) else _SMALL_FILE_BYTES
    return pa.BufferReader(file.read_buffer()) if file.size() <= bytes_max else file


def is_small(file: pa.NativeFile) -> bool:
    """Return whether a file is decoded on one thread."""
    size_bytes: int = file.size()
    return size_bytes <= _SMALL_FILE_BYTES


def _batches(
    file: pa.NativeFile, query: ParquetQuery, metadata: pq.FileMetaData | None = None
) -> Iterator[pa.RecordBatch]:
    if metadata is not None and query.where is not None and _excludes(query, metadata):
        return
    file = fetch_if_small(file)
    if query.where is not None:
        yield from _matching_batches(file, query, query.where, metadata)
        return
    parquet = open_in_table_units(file, query, metadata)
    names = requested(query, parquet.schema_arrow)
    yield from group_rows(file, parquet, range(parquet.num_row_groups), names, query)


def _matching_batches(
    file: pa.NativeFile, query: ParquetQuery, where: pc.Expression, metadata: pq.FileMetaData | None
) -> Iterator[pa.RecordBatch]:
    parquet, fragment = open_for_condition(file, query, metadata)
    if metadata is None and _excludes(query, parquet.metadata):
        return
    present = columns_of(parquet)
    known = types_of(query.constants)
    bound = bound_columns(where, with_table_types(known, with_table_types(present, query.types)))
    asked = requested(query, present)
    stored = {*present.names} - query.constants.keys()
    in_predicate = (name for name in bound.names if name in stored)
    needed = list(dict.fromkeys([*asked, *in_predicate]))
    groups: Sequence[int] = range(parquet.num_row_groups)
    if fragment is not None:
        groups = groups_that_may_match(fragment, where, bound, with_table_types(present, known))
    match = partial(matching_numbers, where=where, bound=bound, constants=query.constants)
    looked_at = [name for name in needed if name in bound.names]
    # Where a request takes long, all columns are fetched by one.
    is_wide = len(needed) - len(looked_at) >= COLUMNS_MIN
    in_steps = 0 < len(looked_at) < len(needed) and (
        isinstance(file, pa.OSFile) or (is_wide and isinstance(file, pa.BufferReader))
    )
    for span in spans(parquet.metadata, groups, query.ahead_bytes) if in_steps else [groups]:
        if in_steps and _pays_late_materialization(parquet, span, is_wide=is_wide):
            decode = partial(_columns, file, parquet, span, query)
            yield from late_materialized(decode, looked_at, asked, match)
            continue
        for batch in group_rows(file, parquet, span, needed, query):
            kept = keep_rows(batch, where, bound, query.constants)
            if kept.num_rows:
                yield kept.select(asked)


def open_in_table_units(
    file: pa.NativeFile, query: ParquetQuery, metadata: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """Open a file of a table.

    Args:
        file: the file.
        query: has the columns of the table, and those to read as dictionaries.
        metadata: its footer, if it was read already.
    """
    parquet = open_file(file, metadata, query.dictionaries)
    stored = parquet.metadata
    right = in_table_units(stored, query.types)
    return parquet if right is stored else open_file(file, right, query.dictionaries)


def open_for_condition(
    file: pa.NativeFile, query: ParquetQuery, metadata: pq.FileMetaData | None = None
) -> tuple[pq.ParquetFile, ds.ParquetFileFragment | None]:
    """Open a file of which some rows are needed.

    Args:
        file: the file.
        query: what is read of it.
        metadata: its footer, if it was read already.

    Returns:
        The file, and what tells which row groups may match; None for a small file with one row group, which
        is decoded in less time.
    """
    if is_small(file):
        parquet = open_in_table_units(file, query, metadata)
        if parquet.num_row_groups <= 1:
            return parquet, None
        # Its footer alone, which has the units of the table.
        return parquet, fragment_of(pa.BufferReader(footer_bytes(parquet.metadata)), query.constants)
    fragment = fragment_of(file, query.constants)
    stored = fragment.metadata
    right = in_table_units(stored, query.types)
    if right is not stored:
        fragment = fragment_of(pa.BufferReader(footer_bytes(right)), query.constants)
    return open_file(file, right, query.dictionaries), fragment


def _pays_late_materialization(parquet: pq.ParquetFile, groups: Sequence[int], *, is_wide: bool) -> bool:
    metadata = [parquet.metadata.row_group(group) for group in groups]
    is_held = sum(group.total_byte_size for group in metadata) <= WHOLE_BYTES_MAX
    return is_held and (is_wide or bool(sum(group.num_rows for group in metadata) > ROWS_MIN))


def _columns(
    file: pa.NativeFile,
    parquet: pq.ParquetFile,
    groups: Sequence[int],
    query: ParquetQuery,
    names: Sequence[str],
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    rows = min(batch_rows, query.batch_rows)
    return group_rows(file, parquet, groups, names, replace(query, batch_rows=rows))


def _excludes(query: ParquetQuery, metadata: pq.FileMetaData) -> bool:
    """Return whether a file has none of the keys that are asked for, by its footer."""
    return query.keys is not None and not may_hold_any(metadata.metadata or {}, query.keys)


def fragment_of(file: pa.NativeFile, constants: Mapping[str, pa.Scalar]) -> ds.ParquetFileFragment:
    """Return a file as a fragment, whose statistics can be tested.

    Args:
        file: the file.
        constants: columns with a known value.
    """
    files = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    return files.make_fragment(file, partition_expression=guarantee(constants))


def types_of(constants: Mapping[str, pa.Scalar]) -> pa.Schema:
    """Return columns with a known value as a schema."""
    return pa.schema([(name, value.type) for name, value in constants.items()])


def requested(query: ParquetQuery, present: pa.Schema) -> list[str]:
    """Return the columns to read of a file.

    Args:
        query: what is read of it.
        present: its columns.
    """
    if query.columns is None:
        return list(present.names)
    stored = {*present.names}
    return [name for name in query.columns if name in stored]


def group_rows(
    file: pa.NativeFile,
    parquet: pq.ParquetFile,
    groups: Sequence[int],
    names: Sequence[str],
    query: ParquetQuery = _EVERYTHING,
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of some row groups.

    Args:
        file: the file.
        parquet: the same, opened.
        groups: numbers of the row groups.
        names: top-level columns, which the file has.
        query: the size of batches, and columns to yield as dictionaries.
    """
    use_threads = not is_small(file)
    check_row_count(parquet.metadata.num_rows, file.size())
    folded = expanding_columns(parquet, groups, names, query.dictionaries)
    for span in spans(parquet.metadata, groups, query.ahead_bytes):
        opened = parquet
        in_pieces = not isinstance(file, pa.BufferReader) and (
            stored_bytes(parquet, span, names) > WHOLE_BYTES_MAX
        )
        if folded or in_pieces:
            dictionaries = [*query.dictionaries, *folded]
            opened = open_file(file, parquet.metadata, dictionaries, in_pieces=in_pieces)
        rows = min(query.batch_rows, _rows_of_a_batch(parquet, span, names))
        batches = opened.iter_batches(rows, span, columns=names, use_threads=use_threads)
        for batch in batches:
            yield from decoded_in_pieces(batch.select(names).replace_schema_metadata(None), folded)


def _rows_of_a_batch(parquet: pq.ParquetFile, groups: Sequence[int], names: Sequence[str]) -> int:
    """Return how many rows of some columns in row groups take the bytes of a batch."""
    metadata = [parquet.metadata.row_group(group) for group in groups]
    size_bytes: int = sum(group.total_byte_size for group in metadata)
    if size_bytes > limits.in_force.batch_bytes:
        needed = set(names)
        columns = (group.column(at) for group in metadata for at in range(group.num_columns))
        size_bytes = sum(
            each.total_uncompressed_size
            for each in columns
            if each.path_in_schema.partition(".")[0] in needed
        )
    rows: int = sum(group.num_rows for group in metadata)
    return max(_BATCH_ROWS_MIN, rows * limits.in_force.batch_bytes // max(1, size_bytes))


def stored_bytes(parquet: pq.ParquetFile, groups: Sequence[int], names: Sequence[str]) -> int:
    """Return the compressed size of some columns in row groups; 0 if all columns together are small."""
    metadata = [parquet.metadata.row_group(group) for group in groups]
    if sum(group.total_byte_size for group in metadata) <= WHOLE_BYTES_MAX:
        return 0
    columns = [group.column(at) for group in metadata for at in range(group.num_columns)]
    needed = set(names)
    return sum(c.total_compressed_size for c in columns if c.path_in_schema.partition(".")[0] in needed)


def spans(
    metadata: pq.FileMetaData, groups: Sequence[int], ahead_bytes: int | None = None
) -> Iterator[list[int]]:
    """Group small neighbouring row groups into spans of similar size."""
    bytes_max = limits.in_force.read_ahead_bytes if ahead_bytes is None else ahead_bytes
    span: list[int] = []
    size_bytes = 0
    for group in groups:
        group_bytes = metadata.row_group(group).total_byte_size
        if span and size_bytes + group_bytes > bytes_max:
            yield span
            span, size_bytes = [], 0
        span.append(group)
        size_bytes += group_bytes
    if span:
        yield span


def read_parquet_part(
    file: pa.NativeFile, offset: int, size: int, query: ParquetQuery
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file within another file; if it is large, only its columns are fetched.

    Args:
        file: the other file, open for random access.
        offset: start of the Parquet file.
        size: size of the Parquet file in bytes.
        query: the columns to yield, and those of the table.

    Raises:
        CorruptTableError: the Parquet file is damaged.
    """

    def fetch(start: int, end: int) -> bytes:
        file.seek(offset + start)
        return bytes(file.read(end - start))

    if size <= limits.in_force.part_whole_bytes_max:
        yield from read_parquet_bytes(fetch(0, size), query)
        return
    with about_file(None):
        part = pa.PythonFile(RangeFile(fetch, size), mode="r")
        yield from read_open_parquet(part, query)


def read_part_of_keys(
    file: pa.NativeFile, offset: int, size: int, query: ParquetQuery, keys: pa.Array
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of those row groups of a Parquet file within another file that have any of some keys.

    A look-up reads log blocks of all file groups that may have a key; most do not have it.

    Args:
        file: the other file, open for random access.
        offset: start of the Parquet file.
        size: size of the Parquet file in bytes, which is read at once.
        query: the columns to yield, the record key among them, and those of the table.
        keys: the record keys (string).

    Raises:
        CorruptTableError: the Parquet file is damaged.
    """
    file.seek(offset)
    part = pa.BufferReader(file.read_buffer(size))
    with about_file(None):
        parquet = open_in_table_units(part, query)
        names = requested(query, columns_of(parquet))
        asked = [name for name in names if name == RECORD_KEY]
        for group in range(parquet.metadata.num_row_groups):
            found = (batch.column(0) for batch in group_rows(part, parquet, [group], asked))
            if not asked or any(pc.any(pc.is_in(each, value_set=keys)).as_py() for each in found):
                yield from group_rows(part, parquet, [group], names)


def parquet_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the schema of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        return columns_of(open_file(file))


def null_columns(storage: Storage, path: str, names: Iterable[str]) -> list[str]:
    """Return the columns of single values that are null in all rows of a file, as its footer says.

    Columns that the file lacks are among them.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        names: names of columns.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        metadata = pq.read_metadata(file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    valid = {name for group in groups for name in _columns_with_values(group)}
    return [name for name in names if name not in valid]


def _columns_with_values(group: pq.RowGroupMetaData) -> Iterator[str]:
    """Yield the columns, and those with fields below them, that may have other values than null."""
    for at in range(group.num_columns):
        chunk = group.column(at)
        stored = chunk.statistics
        if stored is None or not stored.has_null_count or stored.null_count < group.num_rows:
            yield chunk.path_in_schema.partition(".")[0]
            yield chunk.path_in_schema


def parquet_footer(storage: Storage, path: str) -> dict[str, str]:
    """Return the key-value entries of a file's footer.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        entries: Mapping[bytes, bytes] = pq.read_metadata(file).metadata or {}
        return {key.decode(): value.decode() for key, value in entries.items()}


def stored_summary(storage: Storage, path: str) -> StoredSummary:
    """Return the key summary in the footer of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        metadata = pq.read_metadata(file)
        entries: Mapping[bytes, bytes] = metadata.metadata or {}
        names = (FILTER, FILTER_TYPE, SMALLEST_KEY, LARGEST_KEY)
        texts = {name: entries[name.encode()].decode() for name in names if name.encode() in entries}
        return StoredSummary.of(texts, metadata.num_rows)
