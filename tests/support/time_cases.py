"""Comparisons and casts of dates and times, which both engines are to answer alike."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa

SCHEMA: Final = pa.schema(
    [
        ("n", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("text", pa.string()),
    ]
)
NOON: Final = datetime(2024, 2, 29, 12, 30, 1, 123456)
MIDNIGHT: Final = datetime(2024, 2, 29)
_MOMENT: Final = NOON.replace(tzinfo=UTC)

TEXTS: Final = (
    "2024-02-29", "2024-2-29", "2024-02-29 12:30:01.123456", "2024-02-29T12:30:01.123456Z",
    "2024-02-29 14:30:01.123456+02:00", "2024-02-29 05:00:01.123456-0730", "2024-02-28T23:59:59-12",
    "2024-03-01 00:00:00+00:30", " 2024-02-29 12:30 ", "2024-02-29 12", "2024-02-29 12:30:01.1234567",
    "1969-12-31 23:59:59.5", "2024-02-29 12:30:01.+01:00",
    "2024-02-29 12:30+01:00", "2024-02-29 12:30:01-00:01", "2023-02-29",
    "2024", "2024-02", "never", "", None,
)  # fmt: skip
"""Texts that are dates, times, or neither; no time in them is one that Spark alone knows."""

ZONED: Final = (
    "2024-02-29 12:30:01 Europe/Oslo",
    "2024-02-29 12:30:01 +01:00",
    "12:30",
    "T12",
    "12345-01-01",
)
"""Times that Spark alone knows."""

_BEFORE_1970: Final = datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)
_ROWS: Final[list[tuple[Any, ...]]] = [
    *((at, MIDNIGHT.date(), _MOMENT, NOON, text) for at, text in enumerate(TEXTS)),
    (-1, MIDNIGHT.date(), MIDNIGHT.replace(tzinfo=UTC), MIDNIGHT, "2024-02-29"),
    (86_399, date(1969, 12, 31), _MOMENT, MIDNIGHT, "1970-01-01 23:59:59"),
    (-2, date(1970, 1, 1), _BEFORE_1970, None, None),
    (None, None, None, NOON, "2024-02-29 12:30:01.123456"),
]

_VALUES: Final = (
    "day", "at", "local", "text", "date '2024-02-29'", "timestamp '2024-02-29 12:30:01.123456'",
    "timestamp '2024-02-29 00:00:00'", "timestamp_ntz '2024-02-29 12:30:01.123456'",
    "to_date(text)", "cast(text as timestamp)", "date_add(day, 1)",
)  # fmt: skip
COMPARISONS: Final = tuple(
    f"{one} {operator} {other}"
    for at, one in enumerate(_VALUES)
    for operator, other in zip(
        ["=", "<", ">=", "<>", "<=", ">"] * 2, _VALUES[at:] + _VALUES[:at], strict=False
    )
    if one != other and ({one, other} & {"day", "at", "local", "text"})
)
"""Each value with each other one, by operators that take turns."""

MORE: Final = (
    "day between at and local", "at not between day and local", "text between day and at",
    "day in (timestamp '2024-02-29 00:00:00')", "not day < at", "at = text or day = text",
    "coalesce(day, date '2024-01-01') < at",
)  # fmt: skip

CASTS: Final = (
    "cast(text as timestamp)", "cast(text as timestamp_ntz)", "cast(text as date)", "cast(day as timestamp)",
    "cast(day as timestamp_ntz)", "cast(at as date)", "cast(at as timestamp_ntz)", "cast(local as timestamp)",
    "cast(local as date)", "cast(n as timestamp)", "cast(at as bigint)", "cast(at as double)",
    "cast(cast(text as timestamp) as date)", "cast(7 as timestamp)", "cast(null as timestamp)",
    "try_cast(text as timestamp)",
)  # fmt: skip

REFUSED: Final = (
    "day = n", "n < at", "local >= 5", "at = true", "day <> 1.5", "n = date '2024-02-29'",
    "cast(n as date) = day", "cast(n as timestamp_ntz) = local", "cast(day as int) = 1",
    "cast(local as bigint) = 1", "cast(true as date) = day",
)  # fmt: skip
"""Conditions that neither engine takes."""


def rows() -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in _ROWS], SCHEMA)
