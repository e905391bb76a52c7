"""Checks of the index properties of a new table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.index import EXPRESSIONS
from drawstring.config.table.kinds import split_list

_TYPE: Final = "hoodie.index.type"
_HASHED: Final = "hoodie.bucket.index.hash.field"
_OF_BUCKETS: Final = (
    "hoodie.bucket.index.num.buckets",
    "hoodie.index.bucket.engine",
    _HASHED,
    EXPRESSIONS,
)


def check_index(extra: Mapping[str, str], record_key: Collection[str]) -> None:
    """Check that bucket settings belong to a bucket index and use columns of the record key.

    Args:
        extra: further properties of the new table.
        record_key: columns of the record key.

    Raises:
        InvalidError: there is no bucket index, or a hash field is not a column of the record key.
    """
    index_type = extra.get(_TYPE, "")
    stray = next((key for key in _OF_BUCKETS if extra.get(key)), None)
    if stray and index_type.upper() != "BUCKET":
        problem = f"the table has {_TYPE}={index_type}" if index_type else "no index type is given"
        raise InvalidError(f"{stray} needs a bucket index, but {problem}. Set {_TYPE}=BUCKET, or drop it.")
    strays = [name for name in split_list(extra.get(_HASHED)) if name not in record_key]
    if strays:
        raise InvalidError(
            f"{_HASHED} has {', '.join(strays)}, which is not a column of the record key"
            f" ({', '.join(record_key)}). Use columns of the record key, or drop the option."
        )
