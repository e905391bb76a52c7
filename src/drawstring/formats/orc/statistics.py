"""Statistics of the values of a column in an ORC file or a stripe, as its writer noted them.

statistics   1 values, without nulls | 2 integers | 4 texts | 7 dates | 8 bytes | 10 are there nulls?
integers     1 least, 2 greatest                  zigzag
texts        1 least, 2 greatest, 3 bytes of all  the last one zigzag
dates        1 least, 2 greatest                  zigzag
bytes        1 bytes of all                       zigzag
"""

from __future__ import annotations

from typing import Final

from drawstring.base.bounds import VALUE_BYTES
from drawstring.formats.protobuf import message_fields

_VALUES, _TEXTS, _BYTES = 1, 4, 8
_SUM_OF: Final = {_TEXTS: 3, _BYTES: 1}


def plain_bytes(statistics: bytes) -> int:
    """Return about how much memory the values of a column take.

    Args:
        statistics: those of the column.
    """
    fields = dict(message_fields(statistics))
    size = VALUE_BYTES * _number(fields.get(_VALUES))
    for kind, total in _SUM_OF.items():
        of_kind = fields.get(kind)
        if isinstance(of_kind, bytes):
            size += _signed(_number(dict(message_fields(of_kind)).get(total)))
    return size


def _number(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0


def _signed(value: int) -> int:
    """Return a number that is stored as zigzag."""
    return value >> 1 ^ -(value & 1)
