"""The index properties of a new table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.index import DEFAULT_BUCKET_COUNT, HASH_FIELDS, OF_BUCKETS
from drawstring.config.table.kinds import split_list

_TYPE: Final = "hoodie.index.type"
_COUNT: Final = OF_BUCKETS[0]


def index_properties(extra: Mapping[str, str], record_key: Sequence[str]) -> dict[str, str]:
    """Return what a table stores of its index besides what the user says.

    A table with buckets stores their number, by which look-ups of keys rule files out.

    A table with a compound key stores which columns are hashed: writers of Apache Hudi may hash some of them
    without a trace in the table, so readers rule buckets out only if the table says it.

    Args:
        extra: further properties of the new table.
        record_key: columns of the record key.

    Raises:
        InvalidError: there are settings of buckets without a bucket index, or a hash field is not a column of
            the record key.
    """
    index_type = extra.get(_TYPE, "")
    stray = next((key for key in OF_BUCKETS if extra.get(key)), None)
    if stray and index_type.upper() != "BUCKET":
        problem = f"the table has {_TYPE}={index_type}" if index_type else "no index type is given"
        raise InvalidError(f"{stray} needs a bucket index, but {problem}. Set {_TYPE}=BUCKET, or drop it.")
    strays = [name for name in split_list(extra.get(HASH_FIELDS)) if name not in record_key]
    if strays:
        raise InvalidError(
            f"{HASH_FIELDS} has {', '.join(strays)}, which is not a column of the record key"
            f" ({', '.join(record_key)}). Use columns of the record key, or drop the option."
        )
    if index_type.upper() != "BUCKET":
        return {}
    is_hashed_by_all = len(record_key) > 1 and not extra.get(HASH_FIELDS)
    by_key = {HASH_FIELDS: ",".join(record_key)} if is_hashed_by_all else {}
    return {_COUNT: extra.get(_COUNT) or str(DEFAULT_BUCKET_COUNT)} | by_key
