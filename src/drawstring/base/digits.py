"""Texts of whole numbers, as bytes to be copied."""

from __future__ import annotations

from typing import Final

import numpy as np

WIDTH_MAX: Final = 4

DIGITS: Final = tuple(
    np.array([f"{number:0{width}d}".encode() for number in range(10**width)]).view(f"V{width}")
    for width in range(1, WIDTH_MAX + 1)
)
"""Index i: the texts, padded to i + 1 digits, of all numbers with at most i + 1 digits."""
