"""The reader of ORC files, which returns a stream of record batches, one per stripe.

| Avro | ORC, and the Arrow type |
|---|---|
| timestamp-millis, timestamp-micros | timestamp, without a zone and in nanoseconds |
| local-timestamp-millis and -micros; time-micros; time-millis | bigint; bigint; int |
| fixed, and bytes | binary |
| all others | the type of the same name |

Only the table's schema has a column's logical type.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyarrow import orc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.formats.orc.zones import has_times, in_utc, stripe_zones

_BEYOND_NANOSECONDS: Final = "out of range for nanosecond"


def read_open_orc(file: pa.NativeFile, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield all rows of an open ORC file, in its order, a stripe at a time.

    Args:
        file: the file.
        columns: top-level columns to yield, in this order, of which those that the file lacks are omitted;
            None for all.

    Raises:
        UnsupportedError: a time is out of range for Arrow's ORC reader.
        pa.ArrowInvalid: the file is damaged.
    """
    stripes = orc.ORCFile(file)
    present = stripes.schema.names
    names = present if columns is None else [name for name in columns if name in present]
    zones = _zones(stripes, file, names)
    for number in range(stripes.nstripes):
        # A stripe without columns would not have a number of rows.
        batch = _stripe(stripes, number, names or present[:1]).select(names)
        yield _with_instants(batch, zones[number]) if zones else batch


def open_orc_schema(file: pa.NativeFile) -> pa.Schema:
    """Return the schema of an open ORC file, with times in UTC and microseconds."""
    return pa.schema([_in_utc(field) for field in orc.ORCFile(file).schema])


def _stripe(stripes: orc.ORCFile, number: int, names: Sequence[str]) -> pa.RecordBatch:
    try:
        return stripes.read_stripe(number, columns=list(names)).replace_schema_metadata(None)
    except pa.ArrowInvalid as error:
        if _BEYOND_NANOSECONDS in str(error):
            raise UnsupportedError(
                f"A time in the file is out of range ({error}). Read the table with another engine."
            ) from error
        raise


def _zones(stripes: orc.ORCFile, file: pa.NativeFile, names: Sequence[str]) -> list[str]:
    """Return the time zone of each stripe; empty if no column has times."""
    if not any(has_times(stripes.schema.field(name).type) for name in names):
        return []
    try:
        return stripe_zones(stripes, file)
    except (ValueError, zlib.error) as error:
        raise pa.ArrowInvalid(f"its time zones cannot be read: {error}") from error


def _with_instants(batch: pa.RecordBatch, zone: str) -> pa.RecordBatch:
    columns = [in_utc(batch.column(name), zone, name) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _in_utc(field: pa.Field) -> pa.Field:
    kind = field.type
    if pt.is_timestamp(kind):
        kind = pa.timestamp("us", "UTC")
    elif pt.is_struct(kind):
        kind = pa.struct([_in_utc(each) for each in kind.fields])
    elif pt.is_list(kind):
        kind = pa.list_(_in_utc(kind.value_field))
    elif pt.is_map(kind):
        kind = pa.map_(kind.key_type, _in_utc(kind.item_field))
    return pa.field(field.name, kind, field.nullable)
