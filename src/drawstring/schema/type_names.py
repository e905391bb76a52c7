"""Types of columns by their names in SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from drawstring.base.errors import InvalidError

_NAMES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_PRECISION_MAX: Final = 38


def type_named(name: str) -> pa.DataType:
    """Return the type of a name in SQL, such as `bigint` or `decimal(10,2)`; case does not matter.

    Raises:
        InvalidError: there is no such type, or it is nested.
    """
    text = name.strip().lower()
    if found := _DECIMAL.fullmatch(text):
        precision, scale = int(found[1]), int(found[2])
        if scale <= precision and 1 <= precision <= _PRECISION_MAX:
            return pa.decimal128(precision, scale)
    if text not in _NAMES:
        raise InvalidError(
            f"There is no type {name!r} here. Use one of {', '.join(_NAMES)} or decimal(precision,scale);"
            " columns of nested types are added in Python (Table.add_column) or SQL."
        )
    return _NAMES[text]
