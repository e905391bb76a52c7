"""The reader of ORC files, which returns a stream of record batches.

| Avro | ORC, and the Arrow type |
|---|---|
| timestamp-millis, timestamp-micros | timestamp, without a zone and in nanoseconds |
| local-timestamp-millis and -micros; time-micros; time-millis | bigint; bigint; int |
| fixed, and bytes | binary |
| all others | the type of the same name |

Only the table's schema has a column's logical type.

Arrow's dataset of one file decodes a batch at a time; Arrow's class for ORC files decodes whole stripes,
which may be many rows in few bytes. No batch has rows of two stripes, whose times may be in different zones.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import orc
from pyarrow import types as pt

from drawstring.base.bounds import BATCH_BYTES
from drawstring.base.errors import UnsupportedError
from drawstring.formats.orc.footer import OrcFooter
from drawstring.formats.orc.stripes import only_stripes, stripes_that_may_match
from drawstring.formats.orc.zones import has_times, in_utc, stripe_zones
from drawstring.formats.wanted_rows import AskedRows

_BEYOND_NANOSECONDS: Final = "out of range for nanosecond"
_BATCH_ROWS_MIN: Final = 256
_BATCHES_HELD: Final = 4
"""How many batches are in memory together: Arrow's scanner holds some besides that which it yields."""


def read_open_orc(file: pa.NativeFile, asked: AskedRows) -> Iterator[pa.RecordBatch]:
    """Yield rows of an open ORC file, in its order, a bounded batch at a time.

    Args:
        file: the file.
        asked: the rows; stripes that cannot have one are not read. A batch has fewer rows than it says if
            these take too many bytes: all that are in memory take `BATCH_BYTES`.

    Raises:
        UnsupportedError: a time is out of range for Arrow's ORC reader.
        pa.ArrowInvalid: the file is damaged.
    """
    opened = orc.ORCFile(file)
    present = opened.schema.names
    names = present if asked.columns is None else [name for name in asked.columns if name in present]
    # Without a column the batches would not have a number of rows.
    read = names or present[:1]
    with _about("footer"):
        footer = OrcFooter.of(opened)
        stripes = stripes_that_may_match(opened, file, footer, asked)
    if not stripes:
        return
    if len(stripes) < len(footer.stripes):
        file = only_stripes(opened, file, footer, stripes)
        opened = orc.ORCFile(file)
        footer = OrcFooter.of(opened)
    zones = _zones(opened, file, read)
    ends = list(accumulate(stripe.rows for stripe in footer.stripes))
    rows = min(asked.batch_rows, _rows_of_a_batch(footer, present, read))
    done = 0
    for batch in _batches(file, read, rows):
        zone = zones[bisect_right(ends, done)] if zones else ""
        done += batch.num_rows
        chosen = batch.select(names)
        yield _with_instants(chosen, zone) if zones else chosen


def open_orc_schema(file: pa.NativeFile) -> pa.Schema:
    """Return the schema of an open ORC file, with times in UTC and microseconds."""
    return pa.schema([_in_utc(field) for field in orc.ORCFile(file).schema])


def _batches(file: pa.NativeFile, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield all rows of some columns; no batch has rows of two stripes.

    Arrow's class for ORC files decodes stripes as a whole, which may have the rows of the whole file.
    """
    fragment = ds.OrcFileFormat().make_fragment(file)
    # On one thread, without anything ahead: else many batches wait in memory.
    batches = fragment.to_batches(
        columns=list(names), batch_size=rows, batch_readahead=1, fragment_readahead=1, use_threads=False
    )
    while True:
        try:
            batch = next(batches, None)
        except pa.ArrowInvalid as error:
            if _BEYOND_NANOSECONDS in str(error):
                raise UnsupportedError(
                    f"A time in the file is out of range ({error}). Read the table with another engine."
                ) from error
            raise
        if batch is None:
            return
        if batch.num_rows:
            yield batch.select(names).replace_schema_metadata(None)


def _rows_of_a_batch(footer: OrcFooter, present: Sequence[str], names: Sequence[str]) -> int:
    """Return how many rows of some columns take the bytes of a batch."""
    places = footer.places(present)
    size_bytes = footer.plain_bytes([number for name in names for number in places.get(name, ())])
    rows = sum(stripe.rows for stripe in footer.stripes)
    return max(_BATCH_ROWS_MIN, rows * (BATCH_BYTES // _BATCHES_HELD) // max(1, size_bytes))


def _zones(opened: orc.ORCFile, file: pa.NativeFile, names: Sequence[str]) -> list[str]:
    """Return the time zone of each stripe; empty if no column has times."""
    if not any(has_times(opened.schema.field(name).type) for name in names):
        return []
    with _about("time zones"):
        return stripe_zones(opened, file)


@contextmanager
def _about(part: str) -> Iterator[None]:
    """Translate errors in a part of a file into one of Arrow."""
    try:
        yield
    except (ValueError, zlib.error) as error:
        raise pa.ArrowInvalid(f"its {part} cannot be read: {error}") from error


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
