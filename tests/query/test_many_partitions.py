"""Pruning of many partitions by regions between the literals of a condition, against asking about each."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.config.table_config import TableConfig, TableType
from drawstring.expressions.predicate import parse_where
from drawstring.query import partition_pruning
from drawstring.query.partition_pruning import partitions_to_read
from tests.support.limits import SetLimits

SCHEMA = pa.schema(
    [("city", pa.string()), ("hour", pa.int32()), ("day", pa.date32()), ("fare", pa.float64())]
)
PATHS = [
    f"{city}/{hour}/2024-01-{day:02}"
    for city in ("", "lima", "oslo", "rome", "__HIVE_DEFAULT_PARTITION__")
    for hour in ("-1", "0", "7", "x", "__HIVE_DEFAULT_PARTITION__")
    for day in (1, 2, 31)
]
CONDITIONS = [
    "city = 'oslo'",
    "city <> 'oslo'",
    "city IN ('lima', 'rome') AND hour > 0",
    "city LIKE '%o%'",
    "city >= 'm' OR day < '2024-01-02'",
    "city IS NULL",
    "hour IS NOT NULL AND hour BETWEEN 0 AND 6",
    "NOT (hour = 7)",
    "day = '2024-01-31' AND fare > 3",
    "fare > 3",
    "day > '2023-12-31'",
    "city = 'nowhere'",
]


def config_of(partition_by: tuple[str, ...]) -> TableConfig:
    return TableConfig("t", TableType.COPY_ON_WRITE, 9, partition_fields=partition_by)


@pytest.mark.parametrize("where", CONDITIONS)
def test_regions_leave_the_partitions_that_arrow_leaves(where: str, limit: SetLimits) -> None:
    config = config_of(partition_by=("city", "hour", "day"))
    condition = parse_where(where, SCHEMA)
    limit(asked_partitions_max=len(PATHS))
    expected = partitions_to_read(PATHS, config, SCHEMA, condition)
    limit(asked_partitions_max=0)
    assert partitions_to_read(PATHS, config, SCHEMA, condition) == expected
    assert len(expected) < len(PATHS) or where in ("fare > 3", "day > '2023-12-31'")


def test_only_partitions_in_matching_regions_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(where: object, schema: object, values: list[object]) -> list[bool]:
        asked.append(len(values))
        return [True] * len(values)

    monkeypatch.setattr(partition_pruning, "partitions_that_match", counted)
    paths = [f"c{number}" for number in range(1000)]
    config = config_of(partition_by=("city",))
    partitions_to_read(paths, config, SCHEMA, parse_where("city = 'c7' OR city > 'c99'", SCHEMA))
    assert asked == [11]


def test_a_condition_that_fails_on_a_partition_is_named(limit: SetLimits) -> None:
    limit(asked_partitions_max=0)
    condition = parse_where("CAST(city AS INT) = 5", SCHEMA)
    with pytest.raises(InvalidError, match="fails on a partition"):
        partitions_to_read(["5", "six"], config_of(partition_by=("city",)), SCHEMA, condition)
