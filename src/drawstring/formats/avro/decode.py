"""Decoding of Avro datums into Arrow batches, column by column.

The datums of a block are read in parts that fit a CPU cache. Columns that are not requested are skipped, and
those after the last requested one are not read at all. Blocks of few records are read record by record.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa

from drawstring.formats.avro.checks import check_bounded
from drawstring.formats.avro.columns import (
    BooleanColumn,
    Column,
    EnumColumn,
    FixedColumn,
    FloatColumn,
    ItemsColumn,
    NullColumn,
    NumberColumn,
    RecordColumn,
    SeveralColumn,
    TextColumn,
    UnionColumn,
)
from drawstring.formats.avro.container import DAMAGE
from drawstring.formats.avro.datums import Array, Datums
from drawstring.formats.avro.single import PlainSchemas, arrow_of
from drawstring.schema.avro import full_name, known_name, union_branches

__all__ = ["DAMAGE", "RowDecoder", "Spans", "decode_rows"]

_PART_BYTES: Final = 2 << 20
_PART_ROWS: Final = 16_384
_FEW_ROWS: Final = 24


@dataclass(frozen=True, slots=True)
class Spans:
    """Start and end positions of the datums in a block's content."""

    content: bytes
    starts: Array
    ends: Array

    def parts(self) -> Iterator[Spans]:
        """Yield runs of datums that are read together."""
        first = 0
        while first < len(self.starts):
            far = np.searchsorted(self.ends, self.starts[first] + _PART_BYTES, "right")
            stop = max(first + 1, min(first + _PART_ROWS, int(far)))
            yield Spans(self.content, self.starts[first:stop], self.ends[first:stop])
            first = stop


def decode_rows(
    spans: Spans, avro: dict[str, Any], schema: pa.Schema, columns: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a block's content.

    Args:
        spans: the datums.
        avro: their Avro schema as parsed from JSON.
        schema: the equivalent Arrow schema.
        columns: names of the columns to read, in any order; None for all. If the schema has none of them, all
            are read.

    Raises:
        ValueError or another of `DAMAGE`: the bytes do not fit the schema.
    """
    yield from RowDecoder.of(avro, schema, columns).decode(spans)


@dataclass(frozen=True, slots=True)
class RowDecoder:
    """Decodes records of one schema; see `decode_rows`."""

    schema: pa.Schema
    requested: Sequence[str]
    plain: Any
    has_unions: bool
    columns: tuple[Column, ...]

    @staticmethod
    def of(avro: dict[str, Any], schema: pa.Schema, columns: Collection[str] | None = None) -> RowDecoder:
        """Return the decoder of a schema; the arguments are those of `decode_rows`.

        Raises:
            ValueError: values of the schema could outgrow their bytes.
        """
        check_bounded(avro)
        requested = [name for name in schema.names if columns is None or name in columns] or schema.names
        single = PlainSchemas()
        plain = single.of(avro, {}, "")
        readers = _Columns().fields_of(avro, list(schema))
        return RowDecoder(schema, requested, plain, single.has_unions, readers)

    def decode(self, spans: Spans) -> Iterator[pa.RecordBatch]:
        """Yield the records of a block's content."""
        if len(spans.starts) < _FEW_ROWS and not self.has_unions:
            few = _one_by_one(spans, self.plain, self.schema).select(self.requested)
            batches: Iterator[pa.RecordBatch] = iter([few])
        else:
            rows = _Rows(self.columns, self.schema, frozenset(self.requested))
            batches = (rows.read(part) for part in spans.parts())
        for batch in batches:
            batch.validate(full=True)
            yield batch


def _one_by_one(spans: Spans, plain: Any, schema: pa.Schema) -> pa.RecordBatch:
    parsed = fastavro.parse_schema(plain)
    stream = io.BytesIO(spans.content)
    rows = []
    for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
        stream.seek(start)
        rows.append(fastavro.schemaless_reader(stream, parsed, None))
        if stream.tell() != end:
            raise ValueError(f"the record at byte {start} does not end at byte {end}")
    columns = arrow_of(rows, pa.struct(list(schema))).flatten()
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Reads records: the requested columns, up to the last of them."""

    columns: tuple[Column, ...]
    schema: pa.Schema
    requested: frozenset[str]

    def read(self, spans: Spans) -> pa.RecordBatch:
        base = int(spans.starts[0])
        datums = Datums(spans.content, base, int(spans.ends[-1]))
        at = spans.starts - base
        fields, arrays = [], []
        for column, each in zip(self.columns, self.schema, strict=True):
            if each.name in self.requested:
                fields.append(each)
                arrays.append(column.read(datums, at))
            elif len(fields) < len(self.requested):
                column.skip(datums, at)
        ends = spans.ends - base
        is_whole = len(fields) == len(self.columns)
        wrong = np.flatnonzero(at != ends if is_whole else at > ends)
        if len(wrong):
            raise ValueError(f"the record at byte {spans.starts[wrong[0]]} does not end where it should")
        return pa.record_batch(arrays, pa.schema(fields))


@dataclass(slots=True)
class _Columns:
    """Builds column readers of Avro types, and stores named types."""

    named: dict[str, Any] = field(default_factory=dict)

    def fields_of(
        self, record: dict[str, Any], fields: list[pa.Field], space: str = ""
    ) -> tuple[Column, ...]:
        inner = full_name(record, space).rpartition(".")[0]
        return tuple(
            self.of(avro["type"], each.type, inner)
            for avro, each in zip(record["fields"], fields, strict=True)
        )

    def of(self, avro: Any, kind: pa.DataType, space: str) -> Column:
        if isinstance(avro, list):
            return self.union(avro, kind, space)
        if isinstance(avro, str):
            return _primitive(avro, kind) or self.of(
                self.named[known_name(avro, space, self.named)], kind, space
            )
        name = avro["type"]
        if name in ("record", "enum", "fixed"):
            self.named[full_name(avro, space)] = avro
        if name == "record":
            return RecordColumn(kind, self.fields_of(avro, kind.fields, space))
        if name == "enum":
            return EnumColumn(pa.array(avro["symbols"], pa.string()))
        if name == "fixed":
            return FixedColumn(kind, avro["size"])
        if name in ("array", "map"):
            return self.items(avro, kind, space)
        return self.of(name, kind, space)

    def union(self, avro: list[Any], kind: pa.DataType, space: str) -> Column:
        if len(branches := union_branches(avro)) > 1:
            members = zip(branches, kind.fields, strict=True)
            columns = tuple(self.of(each, member.type, space) for each, member in members)
            absent = avro.index("null") if "null" in avro else None
            return SeveralColumn(kind, columns, absent)
        branch = next((index for index, each in enumerate(avro) if each != "null"), 0)
        return UnionColumn(self.of(avro[branch], kind, space), kind, branch, len(avro))

    def items(self, avro: dict[str, Any], kind: pa.DataType, space: str) -> Column:
        single = PlainSchemas()
        schema = single.of(avro, dict(self.named), space)
        plain = None if single.has_unions else fastavro.parse_schema(schema)
        if avro["type"] == "array":
            return ItemsColumn(kind, self.of(avro["items"], kind.value_type, space), plain)
        value = self.of(avro["values"], kind.item_type, space)
        entry = pa.struct([kind.key_field, kind.item_field])
        return ItemsColumn(kind, RecordColumn(entry, (TextColumn(kind.key_type), value)), plain)


def _primitive(name: str, kind: pa.DataType) -> Column | None:
    if name == "null":
        return NullColumn()
    if name == "boolean":
        return BooleanColumn()
    if name in ("int", "long"):
        return NumberColumn(kind)
    if name in ("float", "double"):
        return FloatColumn(kind)
    return TextColumn(kind) if name in ("string", "bytes") else None
