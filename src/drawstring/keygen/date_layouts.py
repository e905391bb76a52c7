"""Texts that stand as a date pattern does, digit under letter: read as columns of bytes.

    yyyy-MM-dd'T'HH:mm:ss.SSSZ
    2024-01-31T10:00:00.000+02:00      an offset can only come last: its length is not fixed

A text that leaves out zeros, or says a month by its name, stands otherwise, and is read by an expression.
What stands like this is read alike by both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.keygen.date_patterns import Token
from drawstring.keygen.zones import Numbers

_DIGITS: Final = {"D": 3, **dict.fromkeys("dHkhKmsM", 2)}
_YEAR_DIGITS: Final = 4
OFFSET: Final = r"[Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of a pattern stand.

    Attributes:
        width: bytes before the offset.
        fields: by letter, first byte and number of digits.
        literals: first byte and text of what stands between them.
        has_offset: whether an offset follows.
    """

    width: int
    fields: Mapping[str, tuple[int, int]]
    literals: tuple[tuple[int, bytes], ...]
    has_offset: bool


@dataclass(frozen=True, slots=True)
class LaidOut:
    """What was read of texts.

    Attributes:
        fits: which of the texts stand as the layout does.
        fields: of these, by letter, the numbers.
        offsets: of these, the offsets as texts with few values, dictionary-encoded; None without any.
    """

    fits: np.ndarray[Any, np.dtype[np.bool_]]
    fields: Mapping[str, Numbers]
    offsets: pa.DictionaryArray | None


def layout_of(pattern: tuple[Token, ...]) -> Layout | None:
    """Return where the fields of a pattern stand, None where that is not fixed."""
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
    """Read the texts that stand as a layout does.

    Args:
        texts: no nulls.
        layout: of a pattern.
    """
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    lengths = np.diff(bounds) - layout.width
    fits = lengths > 0 if layout.has_offset else lengths == 0
    if not fits.any() or not layout.width:
        return LaidOut(np.zeros(len(texts), bool), {}, None)
    every = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), layout.width)
    stood = np.ascontiguousarray(every[bounds[:-1][fits]].T)
    is_well = np.ones(stood.shape[1], bool)
    for at, text in layout.literals:
        for place, byte in enumerate(text, at):
            is_well &= stood[place] == byte
    digits = stood - ord("0")
    for at, count in layout.fields.values():
        is_well &= (digits[at : at + count] <= 9).all(axis=0)
    last = _offsets(texts.filter(pa.array(fits)), layout) if layout.has_offset else None
    if last is not None:
        is_well &= _is_offset(last)
        last = last.filter(pa.array(is_well))
    whole = is_well.all()
    fields = {
        letter: _number(digits[at : at + count] if whole else digits[at : at + count, is_well])
        for letter, (at, count) in layout.fields.items()
    }
    fits[fits] = is_well
    return LaidOut(fits, fields, last)


def _number(digits: np.ndarray[Any, np.dtype[np.uint8]]) -> Numbers:
    value = digits[0].astype(np.int64)
    for each in digits[1:]:
        value = value * 10 + each
    return np.asarray(value)


def _offsets(texts: pa.StringArray, layout: Layout) -> pa.DictionaryArray:
    return pc.dictionary_encode(pc.utf8_slice_codeunits(texts, layout.width))


def _is_offset(offsets: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    matches = [re.fullmatch(OFFSET, text) is not None for text in offsets.dictionary.to_pylist()]
    return np.asarray(np.array(matches, bool)[offsets.indices.to_numpy(zero_copy_only=False)])
