"""What a new table says about its index; contradictions refused."""

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
    """Check that settings of buckets have buckets to set.

    Args:
        extra: what was said about the table.
        record_key: key columns.

    Raises:
        InvalidError: there is no bucket index, or it hashes what is no key column.
    """
    named = extra.get(_TYPE, "")
    stray = next((key for key in _OF_BUCKETS if extra.get(key)), None)
    if stray and named.upper() != "BUCKET":
        has = f"the table has {_TYPE}={named}" if named else "no index is named"
        raise InvalidError(f"{stray} needs a bucket index, and {has}: set {_TYPE}=BUCKET, or leave it out")
    strays = [name for name in split_list(extra.get(_HASHED)) if name not in record_key]
    if strays:
        raise InvalidError(
            f"{_HASHED} has {', '.join(strays)}, which is no column of the record key"
            f" ({', '.join(record_key)}): name columns of it, or leave the option out"
        )
