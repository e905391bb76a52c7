"""Hashes of compound record keys that all have one form, straight from their bytes.

    bytes   order:7,line:1 order:8,line:2 ...   colons and commas: one search each
    sums    one running sum over a block of keys; the hash of a value is the difference of two places

Keys are alike if each has as many colons and commas as the first one, at the places where the same names of
fields end. Other keys, and values that stand for null or an empty text, are left to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.javahash import Array, Powers, blocks, hashes_of_parts, running_sums, utf8_parts

NULL, EMPTY = "__null__", "__empty__"

_COLON, _COMMA, _UNDERSCORE = (ord(letter) for letter in ":,_")
_FIRST_NOT_ASCII: Final = 0x80


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of compound keys.

    Attributes:
        names: the fields, each with its colon, in their order.
        hashed: places of those that are hashed.
    """

    names: Sequence[bytes]
    hashed: Sequence[int]


def alike_hashes(keys: pa.Array, hash_fields: Sequence[str]) -> Array | None:
    """Return the hash of the list of values that each compound key has in the hash fields.

    Args:
        keys: record keys (string).
        hash_fields: names of fields.

    Returns:
        uint32, one for each key; None if the keys are not alike, or not compound.
    """
    form = _form_of(keys[0].as_py(), hash_fields) if len(keys) and not keys.null_count else None
    if form is None:
        return None
    offsets, data = utf8_parts(keys)
    hashes, tables = np.empty(len(keys), np.uint32), Powers()
    for first, last in blocks(offsets):
        bounds = offsets[first : last + 1] - offsets[first]
        found = _of_block(data[offsets[first] : offsets[last]], bounds, form, tables)
        if found is None:
            return None
        hashes[first:last] = found
    return hashes


def _form_of(key: str, hash_fields: Sequence[str]) -> _Form | None:
    """Return the form of a key; None if it is not compound, or has none of the hash fields."""
    pairs = [pair.partition(":") for pair in key.split(",")]
    hashed = [place for place, (name, _, _) in enumerate(pairs) if name in hash_fields]
    if len(pairs) < 2 or not hashed or not all(colon for _, colon, _ in pairs):
        return None
    return _Form([f"{name}:".encode() for name, _, _ in pairs], hashed)


def _of_block(text: Array, bounds: Array, form: _Form, tables: Powers) -> Array | None:
    """Return the hashes of some keys; None if they are not alike."""
    rows, fields = len(bounds) - 1, len(form.names)
    colons, commas = (np.flatnonzero(text == letter) for letter in (_COLON, _COMMA))
    if len(colons) != rows * fields or len(commas) != rows * (fields - 1) or text.max() >= _FIRST_NOT_ASCII:
        return None
    between = commas.reshape(rows, fields - 1)
    starts = np.column_stack([bounds[:-1], between + 1])
    ends = np.column_stack([between, bounds[1:]])
    values = colons.reshape(rows, fields) + 1
    if not _have_names(text, starts, values, form.names) or (values > ends).any():
        return None
    sums = running_sums(text, tables)
    total = np.ones(rows, np.uint32)
    for place in form.hashed:
        first, last = values[:, place], ends[:, place]
        if _may_be_special(text, first, last):
            return None
        total *= np.uint32(31)
        total += hashes_of_parts(sums, first, last, tables)
    return total


def _have_names(text: Array, starts: Array, values: Array, names: Sequence[bytes]) -> bool:
    """Return whether each field of each key begins with its name and a colon."""
    for place, name in enumerate(names):
        if (values[:, place] - starts[:, place] != len(name)).any():
            return False
        texts = np.ndarray(len(text) - len(name) + 1, f"S{len(name)}", text, 0, (1,))
        if (texts[starts[:, place]] != name).any():
            return False
    return True


def _may_be_special(text: Array, starts: Array, ends: Array) -> bool:
    """Return whether a value may stand for null or an empty text."""
    lengths = ends - starts
    places = starts[(lengths == len(NULL)) | (lengths == len(EMPTY))]
    return bool((text[places] == _UNDERSCORE).any())
