"""JSON objects to columns.

Arrow finds out the types of values, with two exceptions: text that looks like a time stays text, as for
Spark, unless the column is known to be a time; and columns that are known to be text or decimals are read as
such. Where Arrow fails, the records that it fails on are found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from drawstring.base.errors import InvalidError
from drawstring.ingestion.sources.columns import as_known, misfit
from drawstring.ingestion.sources.protocol import Reading, Rejected

_EMPTY: Final = pa.schema([])
Place: TypeAlias = Callable[[int], str]
"""Says where a record is, given its number."""


@dataclass(frozen=True, slots=True)
class ParsedRecords:
    """Records that were read.

    Attributes:
        rows: one for each record that could be read.
        kept: their numbers; None if all could be read.
    """

    rows: pa.Table
    kept: Sequence[int] | None


def parse_records(records: Sequence[bytes], reading: Reading, place: Place) -> ParsedRecords:
    """Return the rows of JSON objects.

    Args:
        records: the objects.
        reading: known columns, and what takes records that are no objects.
        place: says where a record is.

    Raises:
        InvalidError: the values of a column are of types that have nothing in common.
    """
    if not records:
        return ParsedRecords(_EMPTY.empty_table(), None)
    explicit = pa.schema(
        [each.with_type(kind) for each in reading.known if (kind := _told(each.type)) is not None]
    )
    try:
        return ParsedRecords(_fitting(records, explicit, reading), None)
    except pa.ArrowInvalid:
        return _parse_some(records, explicit, reading, place)


def _parse_some(
    records: Sequence[bytes], explicit: pa.Schema, reading: Reading, place: Place
) -> ParsedRecords:
    kept: list[int] = []
    parts: list[pa.Table] = []

    def look(first: int, stop: int) -> None:
        try:
            parts.append(_fitting(records[first:stop], explicit, reading))
            kept.extend(range(first, stop))
        except pa.ArrowInvalid as error:
            if stop - first > 1:
                middle = (first + stop) // 2
                look(first, middle)
                look(middle, stop)
            else:
                reason = " ".join(str(error).split()).removesuffix(" in row 0")
                reading.reject(Rejected(place(first), records[first], reason))

    look(0, len(records))
    return ParsedRecords(together(parts), kept)


def together(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of several tables as one.

    Raises:
        InvalidError: the values of a column are of types that have nothing in common.
    """
    try:
        return pa.concat_tables(parts, promote_options="permissive") if parts else _EMPTY.empty_table()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        told = " ".join(str(error).split())
        raise InvalidError(
            f"Records have values of different types ({told}). Give the types of their columns with"
            " hoodie.streamer.schemaprovider.source.schema.file."
        ) from error


def _fitting(records: Sequence[bytes], explicit: pa.Schema, reading: Reading) -> pa.Table:
    """Return the rows of objects with the known types of columns.

    Raises:
        pa.ArrowInvalid: a record is no object, or a value does not fit its column.
    """
    rows = as_known(_parse(records, explicit), reading.known)
    wrong = misfit(rows, reading.known) if reading.is_strict else None
    if wrong is not None:
        raise pa.ArrowInvalid(wrong)
    return rows


def _parse(records: Sequence[bytes], explicit: pa.Schema) -> pa.Table:
    """Return the rows of objects.

    Raises:
        pa.ArrowInvalid: a record is no object, or a value does not fit its column.
    """
    data = b"\n".join(records)
    while True:
        rows = pj.read_json(
            pa.BufferReader(data),
            pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pj.ParseOptions(explicit_schema=explicit),
        )
        timely = [each for each in rows.schema if _has_found_times(each.type)]
        if not timely:
            break
        names = {each.name for each in timely}
        others = [each for each in explicit if each.name not in names]
        explicit = pa.schema([*others, *(each.with_type(_as_text(each.type)) for each in timely)])
    if rows.num_rows != len(records):
        raise pa.ArrowInvalid(f"{len(records)} records have {rows.num_rows} objects")
    missing = [name for name in explicit.names if rows.column(name).null_count == rows.num_rows]
    return rows.drop_columns(missing)


def _told(kind: pa.DataType) -> pa.DataType | None:
    """Return what Arrow has to be told of the type of a column; None for nothing."""
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_decimal(kind):
        return kind
    if pt.is_list(kind):
        item = _told(kind.value_type)
        return None if item is None else pa.list_(item)
    if pt.is_struct(kind):
        fields = [each.with_type(inner) for each in kind.fields if (inner := _told(each.type)) is not None]
        return pa.struct(fields) if fields else None
    return None


def _has_found_times(kind: pa.DataType) -> bool:
    if pt.is_list(kind):
        return _has_found_times(kind.value_type)
    if pt.is_struct(kind):
        return any(_has_found_times(each.type) for each in kind.fields)
    return bool(pt.is_temporal(kind))


def _as_text(kind: pa.DataType) -> pa.DataType:
    """Return a type with text instead of times."""
    if pt.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([each.with_type(_as_text(each.type)) for each in kind.fields])
    return pa.string() if pt.is_temporal(kind) else kind
