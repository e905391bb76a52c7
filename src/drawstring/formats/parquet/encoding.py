"""Choice of dictionary encoding and compression for the columns of a Parquet file.

A dictionary of values that hardly repeat costs time and makes the file larger: it outgrows its page, and the
codec cannot compress similar adjacent values. So a sample of the first rows of a file decides:

    meta columns that repeat       a dictionary always; their Arrow type is a dictionary, too
    record key, sequence number    no dictionary
    booleans, nested columns       Arrow's default
    any other                      a dictionary if the sample repeats as expected with `DISTINCT_SHARE`

A codec does not pay either if it saves next to nothing: writing and reading random numbers with it takes
several times as long as without. The same sample decides:

    meta column of one value       no compression, since its pages have a few bytes
    with a dictionary              the codec; later rows may have long and many values
    plain, or a boolean            the codec, if it saves `GAIN_MIN` of the sample; of few rows, only floats
                                   are asked, which are what it most often saves nothing of

Of a column of less than `FEW_BYTES` in a log block nothing is asked: it is stored plain and not compressed,
unless it is a meta column that repeats, which gets a dictionary. The frames of a codec take most of what it
would save, and calling it for each column takes longer than everything else, for the reader as well. Small
upserts write many such blocks.

The small files of a write share a choice (`SharedEncodings`), and so do some log files or blocks of a table
that one process writes one after the other: for some hundred rows it takes longer than encoding them, and
rows of other partitions or of the next write are hardly of another kind.

The default codec is zstd at level 1, where Hudi's default is gzip: a million rows of 19 columns take a fifth
of gzip's time and fewer bytes. Hudi's main branch writes zstd as well. A table may have files of several
codecs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.schema.logical_types import is_vector, vector_width
from drawstring.schema.meta import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY

STRETCHES: Final = 16
STRETCHES_MIN: Final = 4
STRETCH_ROWS: Final = 128
"""Number and length of the runs of rows in a sample; runs, because adjacent rows often repeat values."""

ROWS_A_STRETCH: Final = 1_024
"""Rows of a file for each run of its sample: of a small one a full sample would take a tenth of a load."""

DISTINCT_SHARE: Final = 1 / 3
"""Ratio of distinct values to rows up to which a column gets a dictionary."""

GAIN_MIN: Final = 1 / 10
"""Fraction of a plain column's bytes that a codec has to save."""

FEW_BYTES: Final = 512
"""Size in memory below which a column of a log block is stored as it is."""

SHARED_ROWS_MAX: Final = 32_768
"""Rows of a file up to which it takes the encodings of another one of about its size."""

REPEATING: Final = frozenset((COMMIT_TIME, PARTITION_PATH, FILE_NAME))
_UNIQUE: Final = frozenset((COMMIT_SEQNO, RECORD_KEY))


_SCHEMAS_KEPT: Final = 64
"""Each file and log block of a write has the same schema."""


@lru_cache(maxsize=_SCHEMAS_KEPT)
def physical(schema: pa.Schema) -> pa.Schema:
    """Return the columns that are handed to Arrow's writer: as `repeating` has them, and vectors as bytes."""
    return pa.schema([_physical_field(field) for field in repeating(schema)])


def _physical_field(field: pa.Field) -> pa.Field:
    return field.with_type(pa.binary(vector_width(field.type))) if is_vector(field.type) else field


@lru_cache(maxsize=_SCHEMAS_KEPT)
def repeating(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which repeating meta columns have a dictionary type, so that writes copy indices."""
    return pa.schema([_repeating_field(field) for field in schema])


def _repeating_field(field: pa.Field) -> pa.Field:
    if field.name not in REPEATING:
        return field
    return pa.field(field.name, pa.dictionary(pa.int32(), pa.string()), field.nullable)


@dataclass(frozen=True, slots=True)
class Encodings:
    """The encodings of the leaf columns of a file.

    Attributes:
        dictionaries: names of the columns with dictionary encoding.
        codecs: the codec of each column; those that are not named are not compressed.
    """

    dictionaries: list[str]
    codecs: dict[str, str]


def encodings_of(rows: pa.Table, codec: str) -> Encodings:
    """Choose the encodings of a file.

    Args:
        rows: the first rows of the file.
        codec: Arrow's name of the codec for columns that it compresses well.
    """
    chosen = Encodings([], {})
    sample = _sample(rows)
    for field, column in zip(rows.schema, sample.columns, strict=True):
        has_dictionary, is_compressed = _encoding_by_sample(field, column, rows.num_rows)
        leaves = _leaves(field.type, field.name)
        if has_dictionary:
            chosen.dictionaries.extend(leaves)
        chosen.codecs.update(dict.fromkeys(leaves, codec if is_compressed else "none"))
    return chosen


class SharedEncodings:
    """Chooses the encodings of files with the same columns. Several threads may use it.

    Args:
        files_max: number of files after which a choice is made anew; None for never.
    """

    def __init__(self, files_max: int | None = None) -> None:
        self._files_max = files_max
        self._chosen: dict[tuple[int, str], tuple[Encodings, int]] = {}
        self._lock = threading.Lock()

    def of(self, rows: pa.Table, codec: str) -> Encodings:
        """Return the encodings of a file; see `encodings_of`."""
        return self._shared(rows, codec, encodings_of)

    def of_block(self, rows: pa.Table, codec: str) -> Encodings:
        """Return the encodings of a log block; see `block_encodings`."""
        return self._shared(rows, codec, block_encodings)

    def _shared(self, rows: pa.Table, codec: str, choose: Callable[[pa.Table, str], Encodings]) -> Encodings:
        count = rows.num_rows
        if not 0 < count <= SHARED_ROWS_MAX:
            return choose(rows, codec)
        size = count.bit_length(), codec
        with self._lock:
            chosen, files = self._chosen.get(size, (None, 0))
            if chosen is None or files == self._files_max:
                chosen, files = choose(rows, codec), 0
            self._chosen[size] = chosen, files + 1
        return chosen


def block_encodings(rows: pa.Table, codec: str) -> Encodings:
    """Choose the encodings of a log block; see `encodings_of`.

    Args:
        rows: all its rows.
        codec: Arrow's name of the codec for columns that it compresses well.
    """
    if not _is_known(codec):
        return encodings_of(rows, codec)
    sizes = zip(rows.schema, (column.nbytes for column in rows.columns), strict=True)
    small = [field for field, size_bytes in sizes if size_bytes < FEW_BYTES]
    repeating = [field.name for field in small if pa.types.is_dictionary(field.type)]
    asked = {*rows.column_names}.difference(field.name for field in small)
    chosen = encodings_of(rows.select([name for name in rows.column_names if name in asked]), codec)
    return Encodings([*repeating, *chosen.dictionaries], chosen.codecs)


def _is_known(codec: str) -> bool:
    """Return whether there is such a codec; the writer tells what is wrong with others."""
    try:
        return codec == "none" or pa.Codec.is_available(codec)
    except ValueError:
        return False


@lru_cache(maxsize=_SCHEMAS_KEPT)
def statistics_leaves(schema: pa.Schema) -> Sequence[str]:
    """Return the leaf columns that get min/max statistics: all except floats.

    Arrow ignores NaN in statistics, while in Spark NaN is greater than any number: for `fare > 5` it would
    skip row groups that have NaN. Spark's own writer stores no statistics for a chunk with NaN, but Arrow has
    to know this before it writes the first row.
    """
    return [
        leaf
        for field in schema
        for leaf, kind in _typed_leaves(field.type, field.name)
        if not _is_float(kind)
    ]


def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind))


def _encoding_by_sample(field: pa.Field, sample: pa.ChunkedArray, rows: int) -> tuple[bool, bool]:
    """Return whether a column gets a dictionary, and whether it is compressed; `rows` is its total length."""
    kind = field.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind) or not rows:
        return True, True
    is_small = len(sample) == rows
    values = sample.drop_null()
    if pa.types.is_boolean(kind) or field.name in _UNIQUE:
        return field.name not in _UNIQUE, is_small or _gains(values)
    distinct = len(pc.unique(values))
    if pa.types.is_dictionary(kind):
        return True, distinct > 1
    repeating = _distinct_expected(len(values), rows * len(values) / len(sample) * DISTINCT_SHARE)
    if distinct <= max(1.0, repeating):
        return True, True
    return False, (is_small and not _is_float(kind)) or _gains(values)


def _gains(values: pa.ChunkedArray) -> bool:
    """Return whether a codec compresses plain non-null values well; zstd is representative of all codecs."""
    if not len(values):
        return True
    buffers = pa.concat_arrays(values.chunks).buffers()[1:]
    plain = b"".join(bytes(buffer) for buffer in buffers if buffer is not None)
    return len(pa.compress(plain, codec="zstd", asbytes=True)) < len(plain) * (1 - GAIN_MIN)


def _sample(rows: pa.Table) -> pa.Table:
    """Return evenly spread runs of the rows, or all rows if there are few."""
    count = rows.num_rows
    stretches = min(STRETCHES, max(STRETCHES_MIN, count // ROWS_A_STRETCH))
    if count <= stretches * STRETCH_ROWS:
        return rows
    starts = (number * count // stretches for number in range(stretches))
    return pa.concat_tables([rows.slice(start, STRETCH_ROWS) for start in starts]).combine_chunks()


def _distinct_expected(draws: int, values: float) -> float:
    """Return the expected number of distinct values in random draws from equally likely values."""
    return values * -math.expm1(-draws / values) if values else 0.0


def _leaves(kind: pa.DataType, path: str) -> list[str]:
    return [leaf for leaf, _ in _typed_leaves(kind, path)]


def _typed_leaves(kind: pa.DataType, path: str) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        return [leaf for child in kind for leaf in _typed_leaves(child.type, f"{path}.{child.name}")]
    if pa.types.is_map(kind):
        return [
            *_typed_leaves(kind.key_type, f"{path}.key_value.key"),
            *_typed_leaves(kind.item_type, f"{path}.key_value.value"),
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _typed_leaves(kind.value_type, f"{path}.list.element")
    return [(path, kind)]
