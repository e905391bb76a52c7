"""Footers of Parquet files with the units that the timestamps of the table have (`schema.timestamp_units`).

Bounds and pages stay as they are: where the footer says milliseconds, every reader takes them for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.formats.parquet.column_chunks import ChunkSource, footer_in, metadata_of, with_tail
from drawstring.formats.parquet.thrift import INT32, STRUCT, Struct, encode_struct
from drawstring.schema.timestamp_units import has_millis, table_units

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
