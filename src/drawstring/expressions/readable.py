"""Conditions as people read them.

SQL has NaN greater than all numbers, Arrow's comparisons with it are false: so `f > 1.5` is translated, and
printed, as `invert((f <= 1.5))`. Here it is printed as it was written.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow.compute as pc

_INVERTED: Final = re.compile(r"invert\(\(([^()]+) (<=?) (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\)\)")
_OPPOSITE: Final = {"<=": ">", "<": ">="}


def readable(where: pc.Expression) -> str:
    """Return a condition as text, in which `f > 1.5` is printed so."""
    return _INVERTED.sub(lambda found: f"({found[1]} {_OPPOSITE[found[2]]} {found[3]})", str(where))
