"""Time zones of the times in ORC files.

ORC stores times as wall-clock times in the zone of the JVM that wrote the file. Arrow returns these without
the zone, which is in the footer of each stripe:

    stripe   index | data | footer, in chunks (`chunks`)
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc
from pyarrow import types as pt

from drawstring.base.errors import UnsupportedError
from drawstring.formats.orc.chunks import PART_BYTES_MAX, plain_part
from drawstring.formats.orc.footer import OrcFooter, Stripe, bytes_of
from drawstring.formats.protobuf import message_fields

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
    return [_zone(plain_part(each, stripes.compression, stripes.compression_size)) for each in stored]


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
