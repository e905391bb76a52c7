"""Which bounds of statistics hold for certain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from drawstring.metadata.column_ranges import (
    COLUMN_STATS,
    PARTITION_STATS,
    has_partition_ranges,
    has_ranges,
    ranges_of,
)
from drawstring.metadata.table import STATISTICS, Kind, record_schema

MEMBERS = {"Int": 1, "Long": 2, "Double": 4, "Bytes": 5, "String": 6, "TimestampMicros": 10}
TYPE = record_schema(Kind.STATISTICS).field(STATISTICS).type


def ranges(
    kind: pa.DataType, low: Any, high: Any, *, index: str = COLUMN_STATS, **more: Any
) -> tuple[Any, ...]:
    """Return the bounds in use of a column, and whether all and some of its values are null."""
    wrapper, ordinal = more.pop("wrapper", "Long"), more.pop("ordinal", 4)
    info = more.pop("info", None)
    row = {
        "fileName": "f",
        "columnName": more.pop("name", "c"),
        "minValue": wrapped(low, wrapper),
        "maxValue": wrapped(high, wrapper),
        "valueCount": 5,
        "nullCount": 0,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": None if ordinal is None else {"typeOrdinal": ordinal, "additionalInfo": info},
        **more,
    }
    found = ranges_of(
        pa.array(["k" * 48]),
        pa.array([row], TYPE),
        pa.field(row["columnName"], kind),
        index,
    )
    return found.least[0].as_py(), found.greatest[0].as_py(), bool(found.is_null[0]), bool(found.has_null[0])


def wrapped(value: Any, wrapper: str) -> dict[str, Any] | None:
    return None if value is None else {f"member{MEMBERS[wrapper]}": {"value": value}}


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DECIMAL = {"wrapper": "Bytes", "ordinal": 10, "info": "10,2"}
STRING = {"wrapper": "String", "ordinal": 7}
OWN = {"isTightBound": True}


@pytest.mark.parametrize(
    ("kind", "low", "high", "more", "expected"),
    [
        (pa.int64(), 1, 9, {}, (1, 9)),
        (pa.int64(), 1, 9, {"wrapper": "Int", "ordinal": 3}, (1, 9)),
        (pa.float64(), 1, 9, {}, (1.0, 9.0)),
        (pa.float64(), -5, 9, {"wrapper": "Double", "ordinal": 6}, (None, None)),
        (pa.float64(), 0.0, 0.0, {"wrapper": "Double", "ordinal": 6}, (None, None)),
        (pa.float64(), -5, 9, {"wrapper": "Double", "ordinal": 6, "fileName": ".f.log.1_0-0-0"}, (-5.0, 9.0)),
        (pa.string(), 1, 9, {}, (None, None)),  # a number that became text has another order
        (pa.string(), "a", "z", STRING, ("a", "z")),
        (pa.string(), "a", "z\ufffd", STRING, ("a", None)),  # it may hide U+1F600 in Java's order
        (pa.string(), "\U0001f600", "\U0001f601", STRING, (None, "\U0001f601")),
        (pa.float64(), 1.0, float("nan"), {"wrapper": "Double", "ordinal": 6}, (1.0, None)),
        (pa.decimal128(4, 2), b"\x04\xe2", b"\x04\xe3", DECIMAL, (Decimal("12.50"), Decimal("12.51"))),
        (pa.decimal128(3, 2), b"\x04\xe2", b"\x04\xe3", DECIMAL, (None, None)),
        (pa.timestamp("us", "UTC"), 0, 10**6, {"ordinal": 16}, (EPOCH, EPOCH + timedelta(seconds=1))),
        (pa.timestamp("us"), 0, 1, {"ordinal": 16}, (None, None)),
        (pa.timestamp("ms", "UTC"), 0, 1, {"wrapper": "TimestampMicros", "ordinal": None}, (None, None)),
        (pa.timestamp("us", "UTC"), 0, 1, {"ordinal": None}, (None, None)),
        (pa.timestamp("ms", "UTC"), 0, 1000, {"ordinal": 15}, (None, None)),  # see `timestamp_units`
        (pa.timestamp("ms", "UTC"), 0, 1000, {"ordinal": 15, "fileName": ".f.log.1_0-0-0"}, (None, None)),
        (pa.timestamp("ms", "UTC"), 0, 1000, {"ordinal": 15, **OWN}, (EPOCH, EPOCH + timedelta(seconds=1))),
        (pa.timestamp("ms"), 0, 1000, {"ordinal": 18}, (None, None)),
        (pa.string(), "a", "z", {**STRING, "nullCount": 1}, (None, None)),  # it may be a long text
        (pa.string(), "a", "z", {**STRING, "nullCount": 1, **OWN}, ("a", "z")),
        (pa.string(), "a", "z", {**STRING, "nullCount": 1, "fileName": ".f.log.1_0-0-0"}, ("a", "z")),
        (pa.string(), "a", "z", {**STRING, "nullCount": 1, "index": "expr_index_n"}, ("a", "z")),
    ],
)
def test_bounds_hold_only_in_the_order_of_the_columns_type(
    kind: pa.DataType, low: Any, high: Any, more: dict[str, Any], expected: tuple[Any, Any]
) -> None:
    assert ranges(kind, low, high, **more)[:2] == expected


@pytest.mark.parametrize(
    ("more", "is_null", "has_null"),
    [
        ({"nullCount": 5}, False, True),  # Hudi says so where a footer says nothing
        ({"nullCount": 5, **OWN}, True, True),
        ({"nullCount": 5, "fileName": ".f.log.1_0-0-0"}, True, True),
        ({"nullCount": 5, "index": "expr_index_n"}, True, True),
        ({"nullCount": 4, **OWN}, False, True),
        ({"nullCount": 0}, False, False),  # all NaN, or texts that are too long
        ({"nullCount": -1}, False, True),
        ({"nullCount": None}, False, True),
        ({"valueCount": 0}, False, True),  # the file does not have the column
        ({"nullCount": 5, "name": "_hoodie_commit_time", **OWN}, False, True),
        ({"nullCount": 5, "index": PARTITION_STATS, **OWN}, False, True),
        ({"nullCount": 0, "index": PARTITION_STATS, **OWN}, False, True),  # files may lack the column
    ],
)
def test_without_bounds_all_values_are_null_only_if_they_are_counted(
    more: dict[str, Any], is_null: bool, has_null: bool
) -> None:
    assert ranges(pa.int64(), None, None, **more) == (None, None, is_null, has_null)


def test_only_types_that_always_have_bounds_are_used_of_partitions() -> None:
    often = (pa.string(), pa.float64(), pa.timestamp("us", "UTC"), pa.decimal128(9, 2))
    never = (pa.binary(), pa.list_(pa.int64()))
    kinds = (pa.int64(), pa.date32(), pa.bool_(), *often, *never)
    fields = [pa.field("c", kind) for kind in kinds]
    assert [has_ranges(each) for each in fields] == [True] * 7 + [False] * 2
    assert [has_partition_ranges(each) for each in fields] == [True] * 3 + [False] * 6
