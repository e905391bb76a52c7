"""Conditions as people read them.

A comparison of floats says what becomes of NaN, even where a literal is a number: `f > 1.5` is printed as
`((f > 1.5) or (is_nan(f) and invert(is_nan(1.5))))`. What is known of the literal is left out here.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow.compute as pc

_NUMBER: Final = r"is_nan\(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\)"
_VALUE: Final = r"is_nan\([^()]+\)"
_NEVER: Final = re.compile(
    rf"\((\((?:[^()]+)\)) or \((?:{_VALUE} and {_NUMBER}|{_NUMBER} and invert\({_VALUE}\))\)\)"
)
_ALWAYS: Final = re.compile(rf"\(({_VALUE}) and invert\({_NUMBER}\)\)")


def readable(where: pc.Expression) -> str:
    """Return a condition as text, without the question whether a number is NaN."""
    return _ALWAYS.sub(r"\1", _NEVER.sub(r"\1", str(where)))
