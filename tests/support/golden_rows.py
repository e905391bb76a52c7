"""From Arrow rows to the values in the golden files, and comparing the two.

| type | value |
|---|---|
| decimal, date | text |
| timestamp | `2024-01-31T10:00:00.000000Z` in UTC; without a zone no Z |
| binary | `0x` and hex; over 1 KiB `sha256:<hex>:<length>` |
| float | a number; NaN and infinities as text |
| struct, list, map | object, list, list of [key, value] sorted by key |
"""

from __future__ import annotations

import hashlib
import json
import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

EPOCH = datetime(1970, 1, 1)
HASHED_FROM_BYTES = 1024

Row = dict[str, Any]


def rows_of(table: pa.Table, columns: list[str] | None = None) -> list[Row]:
    """Return the rows as the golden files write them."""
    names = table.column_names if columns is None else columns
    values = [[value_of(scalar) for scalar in table.column(name)] for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def value_of(scalar: pa.Scalar) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        return _timestamp(scalar)
    if pa.types.is_struct(kind):
        return {field.name: value_of(scalar[field.name]) for field in kind}
    if pa.types.is_map(kind):
        pairs = [[value_of(pair["key"]), value_of(pair["value"])] for pair in scalar.values]
        return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return [value_of(item) for item in scalar.values]
    return _plain(scalar.as_py())


def _timestamp(scalar: pa.Scalar) -> str:
    micros = scalar.cast(pa.timestamp("us", scalar.type.tz)).value
    text = (EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
    return text + ("Z" if scalar.type.tz else "")


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        if len(value) > HASHED_FROM_BYTES:
            return f"sha256:{hashlib.sha256(value).hexdigest()}:{len(value)}"
        return "0x" + value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def in_order(rows: list[Row]) -> list[str]:
    """Return the rows as sorted JSON texts: equal lists mean equal sets of rows."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
