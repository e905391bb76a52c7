r"""The reader of Parquet base files and log blocks, which returns a stream of record batches.

    footer -> row groups that `where` cannot exclude -> batches -> rows that match `where`
          \-> nothing, if the footer's bloom filter excludes all record keys of `where`

One row group is in memory at a time (several small ones together), or a piece of each column of a large one.
Page checksums, which parquet-mr writes, are verified: with codecs other than GZIP, a flipped bit could
otherwise go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from drawstring.base.bounds import BATCH_BYTES, BATCH_ROWS
from drawstring.formats.bloom.key_summary import may_hold_any
from drawstring.formats.conditions import bound_columns, keep_rows, matching_numbers, with_table_types
from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.folded import check_row_count, folded_columns, unfolded
from drawstring.formats.parquet.matching import COLUMNS_MIN, ROWS_MIN, matching_in_steps
from drawstring.formats.parquet.row_groups import groups_that_may_match
from drawstring.formats.parquet.units import footer_bytes, in_table_units
from drawstring.formats.partition_match import guarantee
from drawstring.storage.protocol import Storage

READ_AHEAD_BYTES: Final = 32 << 20
"""Largest uncompressed size of small row groups that are read together."""

WHOLE_BYTES_MAX: Final = 64 << 20
"""Compressed size up to which the columns of a row group are fetched at once instead of in pieces."""

_PIECE_BYTES: Final = 4 << 20
_BATCH_ROWS_MIN: Final = 256

_SMALL_FILE_BYTES: Final = 1 << 20
"""Size up to which a file is decoded on one thread, and fetched at once from where a request takes long."""

_COPIED_BYTES: Final = 64 << 10
"""Size up to which even a local file is fetched at once: of a larger one a query needs few columns."""


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
        ahead_bytes: size of small row groups that are read together; None for `READ_AHEAD_BYTES`.
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


def fetched_if_small(file: pa.NativeFile) -> pa.NativeFile:
    """Return a small file as bytes in memory, another one as it is."""
    if isinstance(file, pa.BufferReader):
        return file
    bytes_max = _COPIED_BYTES if isinstance(file, pa.OSFile) else _SMALL_FILE_BYTES
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
    file = fetched_if_small(file)
    if query.where is not None:
        yield from _matching(file, query, query.where, metadata)
        return
    parquet = open_in_table_units(file, query, metadata)
    names = requested(query, parquet.schema_arrow)
    yield from group_rows(file, parquet, range(parquet.num_row_groups), names, query)


def _matching(
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
        if in_steps and _is_worth_steps(parquet, span, is_wide=is_wide):
            decode = partial(_columns, file, parquet, span, query)
            yield from matching_in_steps(decode, looked_at, asked, match)
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


def _is_worth_steps(parquet: pq.ParquetFile, groups: Sequence[int], *, is_wide: bool) -> bool:
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
    folded = folded_columns(parquet, groups, names, query.dictionaries)
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
            yield from unfolded(batch.select(names).replace_schema_metadata(None), folded)


def _rows_of_a_batch(parquet: pq.ParquetFile, groups: Sequence[int], names: Sequence[str]) -> int:
    """Return how many rows of some columns in row groups take the bytes of a batch."""
    metadata = [parquet.metadata.row_group(group) for group in groups]
    size_bytes: int = sum(group.total_byte_size for group in metadata)
    if size_bytes > BATCH_BYTES:
        needed = set(names)
        columns = (group.column(at) for group in metadata for at in range(group.num_columns))
        size_bytes = sum(
            each.total_uncompressed_size
            for each in columns
            if each.path_in_schema.partition(".")[0] in needed
        )
    rows: int = sum(group.num_rows for group in metadata)
    return max(_BATCH_ROWS_MIN, rows * BATCH_BYTES // max(1, size_bytes))


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
    """Group small neighbouring row groups into spans of similar size, `READ_AHEAD_BYTES` by default."""
    bytes_max = READ_AHEAD_BYTES if ahead_bytes is None else ahead_bytes
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
