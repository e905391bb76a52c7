"""Regions of conditions: no row that matches is in a region that cannot match, and others are left out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.expressions.predicate import parse_where
from drawstring.formats.predicate_bounds import Axis, ConditionRegions, RegionSpan, literals_in

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("m", pa.decimal128(10, 2)),
        ("b", pa.bool_()),
    ]
)


def may_match(where: str | pc.Expression, **ranges: tuple[Any, Any]) -> bool:
    """Return whether a file without nulls may match whose columns have some ranges."""
    condition = parse_where(where, SCHEMA)
    assert condition is not None
    regions = ConditionRegions.of(condition, SCHEMA, list(ranges))
    if regions is None:
        return True
    spreads = {}
    for axis in regions.axes:
        ends = pa.array(ranges[axis.name], SCHEMA.field(axis.name).type)
        first, last = axis.places(ends)
        spreads[axis.name] = RegionSpan(np.array([first]), np.array([last]), np.array([False]))
    return bool(regions.may_match(spreads)[0])


@pytest.mark.parametrize(
    ("where", "ranges", "expected"),
    [
        ("n = 5", {"n": (1, 4)}, False),
        ("n = 5", {"n": (1, 5)}, True),
        ("n = 5", {"n": (5, 9)}, True),
        ("n = 5", {"n": (6, 9)}, False),
        ("n BETWEEN 10 AND 20 AND n <> 15", {"n": (15, 15)}, False),
        ("n IN (1, 100, 7)", {"n": (8, 99)}, False),
        ("n IN (1, 100, 7)", {"n": (7, 99)}, True),
        ("n < 5 OR x > 7", {"n": (5, 9), "x": (0.0, 7.0)}, True),  # NaN is greater than all numbers
        ("n < 5 OR x < 7", {"n": (5, 9), "x": (7.0, 8.0)}, False),
        ("n < 5 OR x < 7", {"n": (5, 9), "x": (6.5, 8.0)}, True),
        ("n < 5 AND x < 7", {"n": (1, 9), "x": (8.0, 9.0)}, False),
        ("x = 0.1", {"x": (0.2, 0.3)}, False),
        ("x = 0.0", {"x": (-0.0, -0.0)}, True),
        ("s = 'it''s'", {"s": ("a", "h")}, False),
        ("s = 'it''s'", {"s": ("a", "z")}, True),
        ("s >= 'm'", {"s": ("a", "l\uffff")}, False),
        ("d >= '2024-02-01'", {"d": (date(2024, 1, 1), date(2024, 1, 31))}, False),
        ("d >= '2024-02-01'", {"d": (date(2024, 1, 1), date(2024, 2, 1))}, True),
        (
            "t < '2024-01-01T00:00:00Z'",
            {"t": (NEW_YEAR, NEW_YEAR)},
            False,
        ),
        (
            "t < '2024-01-01T00:00:01Z'",
            {"t": (NEW_YEAR, NEW_YEAR)},
            True,
        ),
        ("m > 12.5", {"m": (Decimal("1.00"), Decimal("12.50"))}, False),
        ("m > 12.5", {"m": (Decimal("1.00"), Decimal("12.51"))}, True),
        ("b", {"b": (False, False)}, False),
        ("n IS NULL", {"n": (1, 2)}, False),
        ("n IS NULL OR n = 9", {"n": (1, 2)}, False),
    ],
)
def test_a_range_that_rules_the_condition_out_cannot_match(
    where: str, ranges: dict[str, tuple[Any, Any]], expected: bool
) -> None:
    assert may_match(where, **ranges) is expected


def test_a_column_of_floats_may_be_nan_whatever_its_range() -> None:
    assert may_match(~(pc.field("x") <= 7.0), x=(0.0, 7.0))
    assert not may_match(pc.field("x") > 7.0, x=(0.0, 7.0))


def test_nulls_are_a_region_of_their_own() -> None:
    condition = parse_where("n IS NULL", SCHEMA)
    assert condition is not None
    regions = ConditionRegions.of(condition, SCHEMA, ["n"])
    assert regions is not None
    (axis,) = regions.axes
    empty = np.array([1]), np.array([0])
    assert regions.may_match({"n": RegionSpan(*empty, np.array([True]))})
    assert not regions.may_match({"n": RegionSpan(*empty, np.array([False]))})
    assert regions.may_match({"n": RegionSpan.anywhere(axis, 1)})


def test_more_literals_than_regions_leave_out_some_cuts() -> None:
    listed = " OR ".join(f"n = {number}" for number in range(0, 400, 2))
    condition = parse_where(listed, SCHEMA)
    assert condition is not None
    assert len(Axis.of(condition, SCHEMA, "n").cuts) == 64
    assert may_match(listed, n=(222, 222))
    assert not may_match(listed, n=(401, 500))


def test_a_grid_that_would_be_too_large_leaves_out_a_column() -> None:
    many = " OR ".join(f"n = {number}" for number in range(60))
    where = f"({many} OR x IN (1.5, 2.5, 3.5, 4.5, 5.5, 6.5)) AND d = '2024-01-01'"
    condition = parse_where(where, SCHEMA)
    assert condition is not None
    regions = ConditionRegions.of(condition, SCHEMA, ["n", "x", "d"])
    assert regions is not None and {axis.name for axis in regions.axes} < {"n", "x", "d"}
    assert not may_match(where, n=(1, 2), x=(0.0, 9.0), d=(date(2024, 1, 2), date(2024, 1, 3)))


def test_literals_of_all_types_are_found() -> None:
    text = '((x >= -1.5e+20) and (s == "a\\"b")) or is_in(d, {value_set=date32[day]:[\n  2024-01-02\n]})'
    assert -1.5e20 in literals_in(text, pa.float64()).to_pylist()
    assert literals_in(text, pa.string()).to_pylist() == ['a"b']
    assert literals_in(text, pa.date32()).to_pylist() == [date(2024, 1, 2)]


def test_columns_that_cannot_rule_anything_out_have_no_regions() -> None:
    condition = parse_where("s LIKE '%a%'", SCHEMA)
    assert condition is not None
    assert ConditionRegions.of(condition, SCHEMA, ["n"]) is None
    assert ConditionRegions.of(condition, SCHEMA, []) is None
