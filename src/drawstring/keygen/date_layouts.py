"""Fixed-width date texts, parsed as columns of bytes.

A text fits the layout of a pattern if each field has its digits exactly below the pattern's letters:

    yyyy-MM-dd'T'HH:mm:ss.SSSZ
    2024-01-31T10:00:00.000+02:00      an offset can only come last: its length is not fixed

Texts without leading zeros or with month names do not fit; a regular expression parses them
(`date_parsing`). Both ways give the same result for a text that fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.date_patterns import Token
from drawstring.keygen.zones import Numbers

_DIGITS: Final = {"D": 3, **dict.fromkeys("dHkhKmsM", 2)}
_YEAR_DIGITS: Final = 4
OFFSET: Final = r"[Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?"


@dataclass(frozen=True, slots=True)
class Layout:
    """The fixed positions of the fields of a pattern.

    Attributes:
        width: bytes before the time zone offset.
        fields: by letter, the first byte and the number of digits.
        literals: first byte and text of each literal part.
        has_offset: whether a time zone offset follows.
    """

    width: int
    fields: Mapping[str, tuple[int, int]]
    literals: tuple[tuple[int, bytes], ...]
    has_offset: bool


@dataclass(frozen=True, slots=True)
class LaidOut:
    """The fields of texts that fit a layout.

    Attributes:
        fits: which of the texts fit the layout.
        fields: by letter, the numbers in the texts that fit.
        offsets: the time zone offsets in the texts that fit, dictionary-encoded; None if there are none.
    """

    fits: np.ndarray[Any, np.dtype[np.bool_]]
    fields: Mapping[str, Numbers]
    offsets: pa.DictionaryArray | None


def layout_of(pattern: tuple[Token, ...]) -> Layout | None:
    """Return the layout of a pattern, None if its fields have no fixed positions."""
    fields: dict[str, tuple[int, int]] = {}
    literals: list[tuple[int, bytes]] = []
    at = 0
    for token, following in zip(pattern, (*pattern[1:], None), strict=True):
        if token.letter == "Z" and following is None:
            return Layout(at, fields, tuple(literals), has_offset=True)
        if token.letter:
            count = _digits(token, following is not None and following.is_number)
            if not count:
                return None
            fields[token.letter] = at, count
            at += count
        elif token.text.isascii():
            literals.append((at, token.text.encode()))
            at += len(token.text)
        else:
            return None
    return Layout(at, fields, tuple(literals), has_offset=False)


def _digits(token: Token, is_before_number: bool) -> int:
    if not token.is_number:
        return 0
    if token.letter in "yY":
        return token.length if is_before_number else _YEAR_DIGITS
    return token.length if token.letter == "S" else _DIGITS.get(token.letter, 0)


def read_layout(texts: pa.StringArray, layout: Layout) -> LaidOut:
    """Parse the texts that fit a layout.

    Args:
        texts: texts without nulls.
        layout: the layout of a pattern.
    """
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    lengths = np.diff(bounds) - layout.width
    fits = lengths > 0 if layout.has_offset else lengths == 0
    if not fits.any() or not layout.width:
        return LaidOut(np.zeros(len(texts), bool), {}, None)
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), layout.width)
    characters = np.ascontiguousarray(windows[bounds[:-1][fits]].T)
    is_valid = np.ones(characters.shape[1], bool)
    for at, text in layout.literals:
        for position, byte in enumerate(text, at):
            is_valid &= characters[position] == byte
    digits = characters - ord("0")
    for at, count in layout.fields.values():
        is_valid &= (digits[at : at + count] <= 9).all(axis=0)
    zone_offsets = _offsets(texts.filter(pa.array(fits)), layout) if layout.has_offset else None
    if zone_offsets is not None:
        is_valid &= _is_offset(zone_offsets)
        zone_offsets = zone_offsets.filter(pa.array(is_valid))
    all_valid = is_valid.all()
    fields = {
        letter: _number(digits[at : at + count] if all_valid else digits[at : at + count, is_valid])
        for letter, (at, count) in layout.fields.items()
    }
    fits[fits] = is_valid
    return LaidOut(fits, fields, zone_offsets)


def _number(digits: np.ndarray[Any, np.dtype[np.uint8]]) -> Numbers:
    value = digits[0].astype(np.int64)
    for digit in digits[1:]:
        value = value * 10 + digit
    return np.asarray(value)


def _offsets(texts: pa.StringArray, layout: Layout) -> pa.DictionaryArray:
    return pc.dictionary_encode(pc.utf8_slice_codeunits(texts, layout.width))


def _is_offset(offsets: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    matches = [re.fullmatch(OFFSET, text) is not None for text in offsets.dictionary.to_pylist()]
    return np.asarray(np.array(matches, bool)[offsets.indices.to_numpy(zero_copy_only=False)])
