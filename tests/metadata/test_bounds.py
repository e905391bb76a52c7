"""Bounds of column statistics as text, for every type and both versions of the index."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from drawstring.metadata.column_stats_record import MAX, MIN, bounds_as_text, type_names
from drawstring.metadata.table import STATISTICS, Kind, record_schema

MICROS = 1_700_000_000_123_456


def statistics(*bounds: tuple[int, Any, int | None, str | None]) -> pa.StructArray:
    rows = [
        {
            MIN: None if member is None else {f"member{member}": {"value": value}},
            "valueType": None if ordinal is None else {"typeOrdinal": ordinal, "additionalInfo": info},
            "isDeleted": False,
            "isTightBound": False,
        }
        for member, value, ordinal, info in bounds
    ]
    return pa.array(rows, record_schema(Kind.STATISTICS).field(STATISTICS).type)


V1 = [
    (0, True, "BOOLEAN", "true"),
    (1, -5, "INT", "-5"),
    (2, 1 << 40, "LONG", str(1 << 40)),
    (3, 1.5, "FLOAT", "1.5"),
    (4, 0.25, "DOUBLE", "0.25"),
    (5, b"\x01\xff", "BYTES", "0x01ff"),
    (6, "ä$", "STRING", "ä$"),
    (7, 19000, "DATE", "2022-01-08"),
    (8, Decimal("12.500000000000000"), "DECIMAL", "12.500000000000000"),
    (9, time(1, 2, 3, 4), "TIME_MICROS", "01:02:03.000004"),
    (10, MICROS, "TIMESTAMP_MICROS", "2023-11-14 22:13:20.123456Z"),
    (11, 19000, "DATE", "2022-01-08"),
]
V2 = [
    (None, None, 1, None, "NULL", None),
    (0, False, 2, None, "BOOLEAN", "false"),
    (1, 3, 3, None, "INT", "3"),
    (2, 4, 4, None, "LONG", "4"),
    (3, 0.5, 5, None, "FLOAT", "0.5"),
    (4, 0.5, 6, None, "DOUBLE", "0.5"),
    (6, "s", 7, None, "STRING", "s"),
    (5, b"\x00", 8, None, "BYTES", "0x00"),
    (5, b"\x01\x02", 9, None, "FIXED", "0x0102"),
    (5, b"\x04\xe2", 10, "10,2", "DECIMAL", "12.50"),
    (5, b"\xfb\x1e", 10, "9,1", "DECIMAL", "-125.0"),
    (6, "6f1c", 11, None, "UUID", "6f1c"),
    (1, 19000, 12, None, "DATE", "2022-01-08"),
    (1, 3_723_004, 13, None, "TIME_MILLIS", "01:02:03.004"),
    (2, 3_723_000_004, 14, None, "TIME_MICROS", "01:02:03.000004"),
    (2, MICROS // 1000, 15, None, "TIMESTAMP_MILLIS", "2023-11-14 22:13:20.123Z"),
    (2, MICROS, 16, None, "TIMESTAMP_MICROS", "2023-11-14 22:13:20.123456Z"),
    (2, MICROS * 1000 + 7, 17, None, "TIMESTAMP_NANOS", "2023-11-14 22:13:20.123456007Z"),
    (2, MICROS // 1000, 18, None, "LOCAL_TIMESTAMP_MILLIS", "2023-11-14 22:13:20.123"),
    (2, MICROS, 19, None, "LOCAL_TIMESTAMP_MICROS", "2023-11-14 22:13:20.123456"),
    (2, MICROS * 1000 + 7, 20, None, "LOCAL_TIMESTAMP_NANOS", "2023-11-14 22:13:20.123456007"),
]


def test_every_type_of_v1_is_shown() -> None:
    found = statistics(*((member, value, None, None) for member, value, *_ in V1))
    assert type_names(found).to_pylist() == [kind for *_, kind, _ in V1]
    assert bounds_as_text(found, MIN).to_pylist() == [text for *_, text in V1]
    assert bounds_as_text(found, MAX).to_pylist() == [None] * len(V1)


def test_every_type_of_v2_is_shown() -> None:
    found = statistics(*(row[:4] for row in V2))
    assert type_names(found).to_pylist() == [kind for *_, kind, _ in V2]
    assert bounds_as_text(found, MIN).to_pylist() == [text for *_, text in V2]


def test_both_versions_may_be_mixed() -> None:
    found = statistics((7, 0, None, None), (1, 0, 12, None), (None, None, None, None), (1, 7, 99, None))
    assert type_names(found).to_pylist() == ["DATE", "DATE", None, "INT"]
    assert bounds_as_text(found, MIN).to_pylist() == [str(date(1970, 1, 1))] * 2 + [None, "7"]


def test_arrays_are_shown_as_lists() -> None:
    items = [{"member1": {"value": 1}}, None, {"member6": {"value": "x"}}]
    kind = record_schema(Kind.STATISTICS).field(STATISTICS).type
    row = {MIN: {"member12": {"wrappedValues": items}}, "isDeleted": False, "isTightBound": False}
    assert bounds_as_text(pa.array([row], kind), MIN).to_pylist() == ["[1, None, 'x']"]


@pytest.mark.parametrize("info", [None, "ten", "10", "77,2"])
def test_a_decimal_without_a_precision_is_refused(info: str | None) -> None:
    with pytest.raises((ValueError, pa.ArrowException)):
        bounds_as_text(statistics((5, b"\x01", 10, info)), MIN)
