"""Hashes of record keys on a hash ring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.index.bucket.alike_keys import EMPTY, NULL
from drawstring.index.bucket.simple_bucket import compound_hashes, is_compound
from drawstring.index.consistent.xxhash import Hashes, xxhash32


def key_hashes(keys: pa.Array, fields: tuple[str, ...]) -> Hashes:
    """Return the hash of every record key: of the whole key, or of the values of its hash fields.

    Args:
        keys: record keys (string).
        fields: hash fields of a compound key.
    """
    keys = keys.cast(pa.string())
    hashes = xxhash32(keys)
    rows = np.flatnonzero(is_compound(keys))
    if len(rows):
        compound = compound_hashes(keys.take(pa.array(rows)), fields, _joined_hash)
        hashes[rows] = compound.astype(np.uint32)
    return hashes


def _joined_hash(values: list[pa.Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    columns = [
        pc.if_else(pc.equal(each, NULL), "null", pc.if_else(pc.equal(each, EMPTY), "", each))
        for each in values
    ]
    return xxhash32(pc.binary_join_element_wise(*columns, "")).astype(np.int64)
