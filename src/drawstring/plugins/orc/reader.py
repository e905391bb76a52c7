"""Read an ORC file as a stream of record batches.

| Avro | ORC, and the Arrow type |
|---|---|
| timestamp-millis, timestamp-micros | timestamp, without a zone and in nanoseconds |
| local-timestamp-millis and -micros; time-micros; time-millis | bigint; bigint; int |
| fixed, and bytes | binary |
| all others | the type of the same name |

Only the table's schema has a column's logical type.

Arrow's dataset of one file decodes a batch at a time; Arrow's class for ORC files decodes whole stripes,
which may be many rows in few bytes. No batch has rows of two stripes, because their time zones may differ.

Stripes: `stripes_that_may_match` compares the condition with the statistics of each stripe.

    stripes | statistics of the columns in each stripe | footer | postscript | 1 byte

Arrow reads a file from its first row to the last one. For some stripes it gets the same file with another
end, with only these stripes in its footer (`only_stripes`).

Time zones: ORC stores times as wall-clock times in the zone of the JVM that wrote the file. Arrow returns
these without the zone, which is in the footer of each stripe:

    stripe   index | data | footer, in chunks
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import orc
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.errors import UnsupportedError
from drawstring.formats.filter import RowSelection
from drawstring.formats.hfile.blocks import encode_message, message_fields
from drawstring.formats.predicate_bounds import Axis, ConditionRegions, RegionSpan
from drawstring.plugins.orc.footer import (
    PART_BYTES_MAX,
    ROWS,
    STRIPES,
    OrcFooter,
    Stripe,
    bytes_of,
    decompressed,
    footer_errors,
    replaced_tail,
)
from drawstring.plugins.orc.statistics import ValueRange, has_range

_STATISTICS: Final = 1
_UNRELIABLE: Final = "ORIGINAL"
"""Version of the writers whose statistics of texts are wrong."""


def stripes_that_may_match(
    opened: orc.ORCFile, file: pa.NativeFile, footer: OrcFooter, asked: RowSelection
) -> Sequence[int]:
    """Return the numbers of the stripes whose statistics do not exclude a match.

    Args:
        opened, file: the file, opened by Arrow and as it is.
        footer: its footer.
        asked: rows that meet a condition.

    Raises:
        ValueError: the statistics are damaged.
    """
    everything = range(len(footer.stripes))
    present = opened.schema
    stored_in = {*present.names} - {*asked.constants}
    columns = [each.name for each in asked.bound if each.name in stored_in and _has_same_order(each, present)]
    regions = None
    if asked.where is not None and columns and everything:
        regions = ConditionRegions.of(asked.where, asked.bound, columns)
    if regions is None or opened.writer_version == _UNRELIABLE:
        return everything
    stored = _statistics(opened, file)
    if stored is None or len(stored) != len(everything):
        return everything
    places = footer.places(present.names)
    spreads = {}
    for axis in regions.axes:
        number, kind = places[axis.name].start, present.field(axis.name).type
        spreads[axis.name] = _spread(axis, [ValueRange.of(each[number], kind) for each in stored])
    return [int(number) for number in np.flatnonzero(regions.may_match(spreads))]


def only_stripes(
    opened: orc.ORCFile, file: pa.NativeFile, footer: OrcFooter, numbers: Sequence[int]
) -> pa.NativeFile:
    """Return a file that has some of the stripes of another one, whose bytes it reads.

    Args:
        opened, file: the other file, opened by Arrow and as it is.
        footer: its footer.
        numbers: of the stripes.
    """
    chosen = [footer.stripes[number] for number in numbers]
    rows = sum(stripe.rows for stripe in chosen)
    others = [field for field in footer.fields if field[0] not in (STRIPES, ROWS)]
    fields = [*others, *((STRIPES, stripe.stored) for stripe in chosen), (ROWS, rows)]
    last_bytes = opened.file_postscript_length + 1
    end = file.read_at(last_bytes, opened.file_length - last_bytes)
    other_end = replaced_tail(end, encode_message(fields))
    return pa.PythonFile(_FileWithTail(file, _statistics_offset(opened), other_end), "r")


class _FileWithTail(io.RawIOBase):
    """A file with another end.

    Args:
        file: the file.
        size_bytes: how many of its bytes come before that.
        end: the end.
    """

    def __init__(self, file: pa.NativeFile, size_bytes: int, end: bytes) -> None:
        super().__init__()
        self._file = file
        self._kept = size_bytes
        self._end = end
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._kept + len(self._end)}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        size_bytes = self._kept + len(self._end)
        stop = size_bytes if size is None or size < 0 else min(size_bytes, self._at + size)
        start, self._at = self._at, max(self._at, stop)
        head = self._file.read_at(max(0, min(stop, self._kept) - start), start) if start < self._kept else b""
        return bytes(head) + self._end[max(0, start - self._kept) : max(0, stop - self._kept)]


def _statistics_offset(opened: orc.ORCFile) -> int:
    last_bytes = opened.file_postscript_length + 1
    return int(opened.file_length - last_bytes - opened.file_footer_length - opened.stripe_statistics_length)


def _statistics(opened: orc.ORCFile, file: pa.NativeFile) -> list[list[bytes]] | None:
    """Return the statistics of each type in each stripe; None if this release cannot read them."""
    size_bytes, offset = opened.stripe_statistics_length, _statistics_offset(opened)
    if not 0 < size_bytes <= PART_BYTES_MAX or offset < 0:
        return None
    try:
        plain = decompressed(file.read_at(size_bytes, offset), opened.compression, opened.compression_size)
    except UnsupportedError:
        return None
    return [
        [bytes_of(value) for number, value in message_fields(bytes_of(stripe)) if number == _STATISTICS]
        for field, stripe in message_fields(plain)
        if field == _STATISTICS
    ]


def _has_same_order(field: pa.Field, present: pa.Schema) -> bool:
    """Return whether values are ordered in the file as they are in a condition."""
    kind = present.field(field.name).type
    return has_range(kind) and (
        kind == field.type or bool(pt.is_signed_integer(kind) and pt.is_signed_integer(field.type))
    )


def _spread(axis: Axis, ranges: Sequence[ValueRange]) -> RegionSpan:
    kind = axis.cuts.type
    stored = kind if pt.is_string(kind) else pa.int32() if pt.is_date32(kind) else pa.int64()
    compared = kind if pt.is_date32(kind) else stored
    return RegionSpan.between(
        axis,
        pa.array([each.least for each in ranges], stored).cast(compared),
        pa.array([each.greatest for each in ranges], stored).cast(compared),
        np.array([each.is_null for each in ranges], np.bool_),
        np.array([each.has_null for each in ranges], np.bool_),
    )


_UTC: Final = ("", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z")
_STRIPE_ZONE: Final = 3


def stripe_zones(stripes: orc.ORCFile, file: pa.NativeFile) -> list[str]:
    """Return the time zone of each stripe.

    Args:
        stripes: the ORC file.
        file: the same file, open for random access.

    Raises:
        UnsupportedError: the compression is not supported.
        ValueError: the footer of a stripe is damaged.
    """
    found = OrcFooter.of(stripes).stripes
    size_bytes = file.size()
    if sum(stripe.footer_bytes for stripe in found) > size_bytes:
        raise ValueError("the footers of its stripes are longer than the file")
    inside = (_within(stripe, size_bytes) for stripe in found)
    stored = (file.read_at(stripe.footer_bytes, stripe.footer_offset) for stripe in inside)
    return [_zone(decompressed(each, stripes.compression, stripes.compression_size)) for each in stored]


def has_times(kind: pa.DataType) -> bool:
    """Return whether a type has times without a zone, at any depth."""
    if pt.is_timestamp(kind):
        return kind.tz is None
    return any(has_times(kind.field(at).type) for at in range(kind.num_fields))


def in_utc(column: pa.Array, zone: str, name: str) -> pa.Array:
    """Convert a column of wall-clock times to UTC.

    Args:
        column: the column as Arrow reads it.
        zone: time zone of the stripe.
        name: name of the column, for errors.

    Raises:
        UnsupportedError: the column has nested times in a zone other than UTC.
    """
    if zone in _UTC or not has_times(column.type):
        return column
    if not pt.is_timestamp(column.type):
        raise UnsupportedError(
            f"The nested times of column {name!r} were written in the time zone {zone}, but only UTC is"
            " supported. Read the table with another engine."
        )
    times = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="earliest")
    return times.cast(pa.timestamp(column.type.unit, "UTC"))


def _within(stripe: Stripe, size_bytes: int) -> Stripe:
    """Return a stripe after checking that its footer is inside a file of `size_bytes`.

    Raises:
        ValueError: it is not.
    """
    if stripe.footer_bytes > PART_BYTES_MAX or stripe.footer_offset + stripe.footer_bytes > size_bytes:
        raise ValueError(
            f"a stripe footer claims {stripe.footer_bytes} bytes at {stripe.footer_offset} of {size_bytes}"
        )
    return stripe


def _zone(footer: bytes) -> str:
    return next(
        (bytes_of(value).decode() for number, value in message_fields(footer) if number == _STRIPE_ZONE), ""
    )


_BEYOND_NANOSECONDS: Final = "out of range for nanosecond"
_BATCH_ROWS_MIN: Final = 256
_BATCHES_HELD: Final = 4
"""How many batches are in memory together: Arrow's scanner holds some besides that which it yields."""


def read_open_orc(file: pa.NativeFile, asked: RowSelection) -> Iterator[pa.RecordBatch]:
    """Yield rows of an open ORC file, in its order, a bounded batch at a time.

    Args:
        file: the file.
        asked: the rows; stripes that cannot have one are not read. A batch has fewer rows than it says if
            these take too many bytes: all that are in memory take `Limits.batch_bytes`.

    Raises:
        UnsupportedError: a time is out of range for Arrow's ORC reader.
        pa.ArrowInvalid: the file is damaged.
    """
    opened = orc.ORCFile(file)
    present = opened.schema.names
    names = present if asked.columns is None else [name for name in asked.columns if name in present]
    # Without a column the batches would not have a number of rows.
    read = names or present[:1]
    with footer_errors("footer"):
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
    with footer_errors("footer"):
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
    return max(_BATCH_ROWS_MIN, rows * (limits.in_force.batch_bytes // _BATCHES_HELD) // max(1, size_bytes))


def _zones(opened: orc.ORCFile, file: pa.NativeFile, names: Sequence[str]) -> list[str]:
    """Return the time zone of each stripe; empty if no column has times."""
    if not any(has_times(opened.schema.field(name).type) for name in names):
        return []
    with footer_errors("time zones"):
        return stripe_zones(opened, file)


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
