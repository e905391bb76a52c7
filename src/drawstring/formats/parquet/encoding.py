"""How the columns of a Parquet file are encoded.

A dictionary of values that hardly repeat is work without a gain: it is built, outgrows its page and
makes the file larger, for it keeps alike neighbours apart that the codec would shorten. So the first
rows of a file are asked how often their values come again:

    meta columns that repeat       always, and their Arrow type is a dictionary
    record key, sequence number    never
    booleans, columns of columns   as Arrow does by default
    any other                      if a sample of the rows repeats as it would with `DISTINCT_SHARE`

Nor is a codec worth its while where it shortens next to nothing: writing and reading random numbers with it
takes several times as long as copying them. The same sample tells:

    meta column of one value       as it is, for its pages are a few bytes
    with a dictionary              with the codec; the rows to come may have long and many values
    plain, or a boolean            with the codec, if rows are few or it saves `GAIN_MIN` of the sample
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.schema.meta import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY

STRETCHES: Final = 16
STRETCH_ROWS: Final = 128
"""The sample is so many stretches of so many rows: stretches, for values may come again side by side."""

DISTINCT_SHARE: Final = 1 / 3
"""Distinct values by rows up to which a column gets a dictionary."""

GAIN_MIN: Final = 1 / 10
"""Share of a plain column's bytes that a codec has to save."""

REPEATING: Final = frozenset((COMMIT_TIME, PARTITION_PATH, FILE_NAME))
_UNIQUE: Final = frozenset((COMMIT_SEQNO, RECORD_KEY))


def physical(schema: pa.Schema) -> pa.Schema:
    """Give the repeating meta columns a dictionary type: writing then copies indices, not texts."""
    return pa.schema([_physical_field(field) for field in schema])


def _physical_field(field: pa.Field) -> pa.Field:
    if field.name not in REPEATING:
        return field
    return pa.field(field.name, pa.dictionary(pa.int32(), pa.string()), field.nullable)


@dataclass(frozen=True, slots=True)
class Encodings:
    """How the leaf columns of a file are written.

    Attributes:
        dictionaries: those that are dictionary-encoded.
        codecs: the codec of each.
    """

    dictionaries: list[str]
    codecs: dict[str, str]


def encodings_of(rows: pa.Table, codec: str) -> Encodings:
    """Choose the encodings of a file.

    Args:
        rows: the file's columns and its first rows.
        codec: by Arrow's name, for columns that it makes shorter.
    """
    chosen = Encodings([], {})
    sample = _sample(rows)
    for field, column in zip(rows.schema, sample.columns, strict=True):
        has_dictionary, is_shortened = _told_by_sample(field, column, rows.num_rows)
        leaves = _leaves(field.type, field.name)
        if has_dictionary:
            chosen.dictionaries.extend(leaves)
        chosen.codecs.update(dict.fromkeys(leaves, codec if is_shortened else "none"))
    return chosen


def statistics_leaves(schema: pa.Schema) -> list[str]:
    """Name the leaf columns that get least and greatest values: all but floats.

    Arrow leaves NaN out of them, and Spark, for which NaN is greater than any number, would skip the row
    groups of `fare > 5` that have it. Its own writer gives none to a column with NaN; here that would be
    known when it is too late.
    """
    return [
        leaf
        for field in schema
        for leaf, kind in _typed_leaves(field.type, field.name)
        if not _is_float(kind)
    ]


def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind))


def _told_by_sample(field: pa.Field, sample: pa.ChunkedArray, rows: int) -> tuple[bool, bool]:
    """Tell whether a column of so many rows gets a dictionary, and whether its pages get the file's codec."""
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
    return False, is_small or _gains(values)


def _gains(values: pa.ChunkedArray) -> bool:
    """Tell whether a codec shortens plain values, none of them null: all look for what zstd finds."""
    if not len(values):
        return True
    buffers = pa.concat_arrays(values.chunks).buffers()[1:]
    plain = b"".join(bytes(buffer) for buffer in buffers if buffer is not None)
    return len(pa.compress(plain, codec="zstd", asbytes=True)) < len(plain) * (1 - GAIN_MIN)


def _sample(rows: pa.Table) -> pa.Table:
    """Return stretches of the rows, spread evenly, or all of few."""
    count = rows.num_rows
    if count <= STRETCHES * STRETCH_ROWS:
        return rows
    starts = (number * count // STRETCHES for number in range(STRETCHES))
    return pa.concat_tables([rows.slice(start, STRETCH_ROWS) for start in starts]).combine_chunks()


def _distinct_expected(draws: int, values: float) -> float:
    """Return how many different values come up when so many are drawn, each as likely as the next."""
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
