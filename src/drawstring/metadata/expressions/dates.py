"""Texts of times by the patterns of Spark, in UTC.

Of a pattern only the fields are supported that Spark and the patterns of partition paths (`keygen`) format
in the same way, in the years 1 to 9999; Spark adds signs to other years.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.date_patterns import WRITTEN, Token, parse_pattern
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.keygen.date_texts import date_texts

SECONDS_PATTERN: Final = "yyyy-MM-dd HH:mm:ss"
"""Spark's pattern for times without one."""

_LENGTHS: Final = {"y": (1, 2, 4), **dict.fromkeys("MdHms", (1, 2)), "S": (1, 2, 3)}
_FIRST_MS: Final = -62_135_596_800_000
_END_MS: Final = 253_402_300_800_000


def tokens_of(pattern: str) -> tuple[Token, ...]:
    """Return the fields of a pattern.

    Raises:
        InvalidError: it is no pattern.
        UnsupportedError: Spark may format one of its fields in another way.
    """
    tokens = parse_pattern(pattern, WRITTEN)
    for each in tokens:
        if each.letter and each.length not in _LENGTHS.get(each.letter, ()):
            raise UnsupportedError(
                f"An index cannot have dates by {pattern!r}, because of {each.letter * each.length!r}. Use"
                " y, yy, yyyy, and M, d, H, m, s once or twice, and S up to three times."
            )
    return tokens


def formatted(millis: pa.Array, tokens: tuple[Token, ...]) -> pa.Array:
    """Return the text of each time; null for null.

    Args:
        millis: milliseconds since 1970 (int64).
        tokens: of the pattern.

    Raises:
        InvalidError: a time is outside of the years 1 to 9999.
    """
    numbers = np.asarray(millis.fill_null(0))
    if ((numbers < _FIRST_MS) | (numbers >= _END_MS)).any():
        raise InvalidError("A time is outside of the years 1 to 9999.")
    texts = date_texts(numbers, np.zeros_like(numbers), tokens)
    return pc.if_else(millis.is_valid(), texts, pa.scalar(None, pa.string()))
