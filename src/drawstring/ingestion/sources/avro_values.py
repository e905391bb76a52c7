"""Avro records that name their schema in a registry, as Confluent's serialisers write them.

1  magic    0
4  schema   id in the registry, big-endian
   datum    in Avro's binary encoding
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.formats.avro.container import DAMAGE
from drawstring.formats.avro.decode import RowDecoder, Spans
from drawstring.ingestion.registry import SchemaRegistry
from drawstring.ingestion.sources.json_rows import ParsedRecords, together
from drawstring.ingestion.sources.protocol import Reading, Rejected
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolve import evolve

HEAD_BYTES: Final = 5
MAGIC: Final = b"\0"


@dataclass(frozen=True, slots=True)
class AvroValues:
    """Makes rows of records; see `kafka.Decode`.

    Attributes:
        registry: has the schemas.
    """

    registry: SchemaRegistry

    def __call__(
        self, records: Sequence[bytes], reading: Reading, place: Callable[[int], str]
    ) -> ParsedRecords:
        """Return the rows of records."""
        kept: list[int] = []
        parts: list[pa.Table] = []
        for number, run in groupby(range(len(records)), lambda at: _schema_of(records[at])):
            for at, rows in self._decoded(number, list(run), records, reading, place):
                kept += at
                parts.append(rows)
        whole = len(kept) == len(records)
        return ParsedRecords(together(parts), None if whole else kept)

    def _decoded(
        self,
        number: int | None,
        at: list[int],
        records: Sequence[bytes],
        reading: Reading,
        place: Callable[[int], str],
    ) -> Iterator[tuple[list[int], pa.Table]]:
        """Yield rows of records of one schema, with their numbers; those that are damaged by halving."""
        if number is None:
            for each in at:
                reading.reject(Rejected(place(each), records[each], "it names no schema of a registry"))
            return
        schema_json = self.registry.schema(number)
        wrong = _conflict(avro_to_arrow(schema_json), reading) if reading.is_strict else None
        if wrong is not None:
            for each in at:
                reading.reject(Rejected(place(each), records[each], f"schema {number} does not fit: {wrong}"))
            return
        try:
            yield at, _rows(schema_json, [records[each] for each in at])
        except DAMAGE as error:
            if len(at) == 1:
                reading.reject(
                    Rejected(place(at[0]), records[at[0]], f"it does not fit schema {number}: {error}")
                )
                return
            for half in (at[: len(at) // 2], at[len(at) // 2 :]):
                yield from self._decoded(number, half, records, reading, place)


def _schema_of(record: bytes) -> int | None:
    """Return the id of a record's schema, None for a record without."""
    has_head = len(record) >= HEAD_BYTES and record[:1] == MAGIC
    return int.from_bytes(record[1:HEAD_BYTES], "big") if has_head else None


def _conflict(schema: pa.Schema, reading: Reading) -> str | None:
    """Say why the known columns cannot take those of a schema; None if they can."""
    try:
        evolve(reading.known, schema)
    except InvalidError as error:
        return error.message
    return None


def _rows(schema_json: str, records: Sequence[bytes]) -> pa.Table:
    schema = avro_to_arrow(schema_json)
    ends = np.cumsum(np.array([len(each) for each in records], np.int64))
    starts = np.concatenate([[0], ends[:-1]]) + HEAD_BYTES
    decoder = RowDecoder.of(json.loads(schema_json), schema)
    return pa.Table.from_batches(decoder.decode(Spans(b"".join(records), starts, ends)), schema)
