"""Expressions of numbers at the edges of their types, with the answers of an exact model and of Spark."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any, Final

import pyarrow as pa

SCHEMA: Final = pa.schema(
    [
        ("n", pa.int64()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("w", pa.decimal128(38, 10)),
    ]
)
SPARK_SCHEMA: Final = "n long, i int, x double, f float, d decimal(10,2), w decimal(38,10)"

VALUES: Final[list[tuple[Any, ...]]] = [
    (9999999, 3, 1.5, 0.5, D("1.10"), D("12345678901234567890.0123456789")),
    (16777217, -(2**31), 0.1, 0.10000000149011612, D("-99999999.99"), D("-0.0000000001")),
    (2**53 + 1, 2**31 - 1, 2.0**53, 2.0**24, D("0.01"), D("1")),
    (2**63 - 1, 7, -3.25, -2.5, D("99999999.99"), D("7")),
    (5 - 2**63, 1, 1e300, 2.0**100, D("2.25"), D("3.3333333333")),
    (None, None, None, None, None, None),
]

EXPRESSIONS: Final = (
    # An integer with a fraction is a decimal.
    "n + 0.25", "n - 0.5", "n * 1.5", "i + 0.25", "i * 0.1", "i * 1.0", "n * 0.1 + n", "(n + 0.5) * 2",
    "n + NULL", "i + 2147483648", "100 + 100", "0.1 + 0.2", "2147483647L + 1", "1.5BD + 1",
    # Decimals keep their digits.
    "d + 1", "d * 2", "d + 0.5", "d * 1.05", "d - n", "d * d", "w + d", "w * d", "-d", "abs(d)", "abs(-5)",
    # Floats are doubles, unless both are floats.
    "d + x", "f + 0.1", "f + 1", "f * i", "x + n", "x * 0.1", "n * 1e0", "f + f", "f * 2.5", "1e0 + 16777216",
    # Quotients.
    "n / 2", "n / 2.5", "i / 0.3", "d / 3", "d / 0.7", "d / d", "w / d", "d / n", "n / d", "1 / 3", "1.0 / 3",
    "x / d", "x / 2", "f / 3",
    # Branches have one type.
    "coalesce(d, 0)", "coalesce(n, 0.5)", "coalesce(i, n, 0.25)", "coalesce(f, 0.1)", "coalesce(x, d)",
    "coalesce(w, n)", "coalesce(w, 0.123456789012)", "case when i > 1 then n else 0.5 end",
    "if(i > 1, 1, 2.5)", "if(i > 1, 0.25, 0.5)", "if(i > 1, 100, 100) + if(i > 1, 100, 100)",
    "nullif(n, 9999999.0)", "nullif(d, 1.1)",
    # Casts.
    "cast(d as double)", "cast(w as double)", "cast(d as int)", "cast(1.7 as int)",
    "cast(i as decimal(12,2))", "cast(0 as decimal(10,2))", "cast(d as decimal(9,1))",
    "cast(w as decimal(30,2))", "cast(f as double)",
    "cast(n as double)", "cast(n as float)", "cast(0.1 as float)", "cast('1.5' as decimal(3,1))",
    # Comparisons.
    "n > 9999998.5", "n + 0.25 > 9999999", "n - 0.5 <= 9999998", "n > 4.5", "n = 9999999.0", "n = 2.5",
    "n <> 2.5", "n < 1e3", "n >= 9007199254740992e0", "n > 9007199254740992.5", "n = 16777217",
    "-n > -16777217.5", "-5 < n", "n > -0.5", "NULL > n", "i > 2147483647.5", "i >= -2147483648.5",
    "n between 9999998.5 and 9999999.5", "n in (9999999.0, 2.5)", "n + 0.5 = 16777217.5",
    "d > 1.099", "d = 1.1", "d < 1.105", "d >= -99999999.995", "d < 1234567890123.5", "d = 1.1e0", "d > n",
    "d < x", "d = f", "d in (1.1, 2.255)", "d + 1 > 2", "d * 2 > 1", "abs(d) > 1", "-d < 0",
    "coalesce(d, 0) = 0", "d / 0.01 > 100", "d > cast(1 as bigint)", "w > n", "w > 0.00000000001",
    "w * 1.5 > d", "f = 0.1", "f > 0.1", "f < 16777217", "f = 16777217", "f = cast(0.1 as float)", "f = 0.1F",
    "n > x", "n = x", "n > f", "n > cast(2.5 as double)", "x > 0.1", "x = 0.1", "i % 2 = 1",
)  # fmt: skip
"""Expressions with the same values in Spark; where a row fails there, it fails here."""


def rows() -> pa.Table:
    """Return the values as a table."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in VALUES], SCHEMA)
