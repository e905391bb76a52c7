"""Types of columns by their names in SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from drawstring.base.errors import InvalidError

_NAMES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_VARCHAR: Final = re.compile(r"varchar\(\s*\d+\s*\)")
_PRECISION: Final = "10"
_PRECISION_MAX: Final = 38


def type_named(name: str) -> pa.DataType:
    """Return the type of a name in Spark's SQL, such as `bigint` or `decimal(10,2)`; case does not matter.

    A table stores small integers as `int`, and texts of any length as `string`.

    Raises:
        InvalidError: there is no such type, or it is nested.
    """
    text = name.strip().lower()
    if found := _DECIMAL.fullmatch(text):
        precision, scale = int(found[1] or _PRECISION), int(found[2] or 0)
        if scale <= precision and 1 <= precision <= _PRECISION_MAX:
            return pa.decimal128(precision, scale)
        raise InvalidError(
            f"{name!r} is no type: a decimal has 1 to {_PRECISION_MAX} digits, and at most all of them behind"
            " the point. Give it as decimal(digits,digits behind the point)."
        )
    if _VARCHAR.fullmatch(text):
        return pa.string()
    if text not in _NAMES:
        raise InvalidError(
            f"There is no type {name!r} here. Use one of {', '.join(_NAMES)} or decimal(precision,scale);"
            " columns of nested types are added in Python (Table.add_column) or SQL."
        )
    return _NAMES[text]
