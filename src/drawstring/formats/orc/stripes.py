"""The stripes of an ORC file in which rows may meet a condition, and a file that has only these.

    stripes | statistics of the columns in each stripe | footer | postscript | 1 byte

Arrow reads a file from its first row to the last one. What it is given for some stripes is the same file with
another end, whose footer has these stripes alone (`tail`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import orc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.formats.condition_regions import Axis, ConditionRegions, Spread
from drawstring.formats.orc.chunks import PART_BYTES_MAX, plain_part
from drawstring.formats.orc.footer import ROWS, STRIPES, OrcFooter, bytes_of
from drawstring.formats.orc.statistics import ValueRange, has_range
from drawstring.formats.orc.tail import new_end
from drawstring.formats.protobuf import encode_message, message_fields
from drawstring.formats.wanted_rows import AskedRows

_STATISTICS: Final = 1
_UNRELIABLE: Final = "ORIGINAL"
"""Version of the writers whose statistics of texts are wrong."""


def stripes_that_may_match(
    opened: orc.ORCFile, file: pa.NativeFile, footer: OrcFooter, asked: AskedRows
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
    columns = [each.name for each in asked.bound if each.name in stored_in and _is_alike(each, present)]
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
    other_end = new_end(end, encode_message(fields))
    return pa.PythonFile(_WithEnd(file, _statistics_offset(opened), other_end), "r")


class _WithEnd(io.RawIOBase):
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
        plain = plain_part(file.read_at(size_bytes, offset), opened.compression, opened.compression_size)
    except UnsupportedError:
        return None
    return [
        [bytes_of(value) for number, value in message_fields(bytes_of(stripe)) if number == _STATISTICS]
        for field, stripe in message_fields(plain)
        if field == _STATISTICS
    ]


def _is_alike(field: pa.Field, present: pa.Schema) -> bool:
    """Return whether values are ordered in the file as they are in a condition."""
    kind = present.field(field.name).type
    return has_range(kind) and (
        kind == field.type or bool(pt.is_signed_integer(kind) and pt.is_signed_integer(field.type))
    )


def _spread(axis: Axis, ranges: Sequence[ValueRange]) -> Spread:
    kind = axis.cuts.type
    stored = kind if pt.is_string(kind) else pa.int32() if pt.is_date32(kind) else pa.int64()
    compared = kind if pt.is_date32(kind) else stored
    return Spread.between(
        axis,
        pa.array([each.least for each in ranges], stored).cast(compared),
        pa.array([each.greatest for each in ranges], stored).cast(compared),
        np.array([each.is_null for each in ranges], np.bool_),
        np.array([each.has_null for each in ranges], np.bool_),
    )
