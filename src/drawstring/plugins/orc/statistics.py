"""Statistics of the values of a column in an ORC file or a stripe, as its writer noted them.

statistics   1 values, without nulls | 2 integers | 4 texts | 7 dates | 8 bytes | 10 are there nulls?
integers     1 least, 2 greatest                                      zigzag
texts        1 least, 2 greatest, 3 bytes of all | 4, 5 bounds where these are long
dates        1 least, 2 greatest                                      zigzag
bytes        1 bytes of all                                           zigzag, as those of texts
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.resources import VALUE_BYTES
from drawstring.formats.hfile.blocks import message_fields

_VALUES, _INTEGERS, _TEXTS, _DATES, _BYTES, _HAS_NULL = 1, 2, 4, 7, 8, 10
_LEAST, _GREATEST, _LOWER_BOUND, _UPPER_BOUND = 1, 2, 4, 5
_SUM_OF: Final = {_TEXTS: 3, _BYTES: 1}


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What is known of the values of a column.

    Attributes:
        least, greatest: bounds: integers, also for dates (days since 1970), or texts; None if unknown.
        is_null: whether all values are null.
        has_null: whether there may be nulls.
    """

    least: int | str | None
    greatest: int | str | None
    is_null: bool
    has_null: bool

    @staticmethod
    def of(statistics: bytes, kind: pa.DataType) -> ValueRange:
        """Return what statistics tell.

        Args:
            statistics: those of the column.
            kind: its type, one of `has_range`.

        Raises:
            ValueError: they are damaged.
        """
        fields = dict(message_fields(statistics))
        is_null = fields.get(_VALUES) == 0
        has_null = is_null or fields.get(_HAS_NULL) != 0
        stored = fields.get(_TEXTS if pt.is_string(kind) else _DATES if pt.is_date32(kind) else _INTEGERS)
        if not isinstance(stored, bytes):
            return ValueRange(None, None, is_null, has_null)
        known = dict(message_fields(stored))
        if pt.is_string(kind):
            ends = _text(known, _LEAST, _LOWER_BOUND), _text(known, _GREATEST, _UPPER_BOUND)
            return ValueRange(*ends, is_null, has_null)
        return ValueRange(_integer(known.get(_LEAST)), _integer(known.get(_GREATEST)), is_null, has_null)


def has_range(kind: pa.DataType) -> bool:
    """Return whether statistics of a type are used: those of times depend on zones, of floats on NaN."""
    return bool(pt.is_string(kind) or pt.is_signed_integer(kind) or pt.is_date32(kind))


def plain_bytes(statistics: bytes) -> int:
    """Return about how much memory the values of a column take.

    Args:
        statistics: those of the column.

    Raises:
        ValueError: they are damaged.
    """
    fields = dict(message_fields(statistics))
    size = VALUE_BYTES * _number(fields.get(_VALUES))
    for kind, total in _SUM_OF.items():
        of_kind = fields.get(kind)
        if isinstance(of_kind, bytes):
            size += _integer(dict(message_fields(of_kind)).get(total)) or 0
    return size


def _number(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0


def _integer(value: int | bytes | None) -> int | None:
    """Return a number that is stored as zigzag."""
    return value >> 1 ^ -(value & 1) if isinstance(value, int) else None


def _text(fields: Mapping[int, int | bytes], number: int, bound: int) -> str | None:
    stored = fields.get(number, fields.get(bound))
    return stored.decode() if isinstance(stored, bytes) else None
