"""Which partitions a condition rules out."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import KeyGeneratorType, TableConfig, TableType
from drawstring.expressions.predicate import parse_where
from drawstring.query.pruning import partition_values, partitions_to_read

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("month", pa.int32()),
        ("day", pa.date32()),
        ("x", pa.float64()),
    ]
)


def config(*fields: str, **more: Any) -> TableConfig:
    return TableConfig("t", TableType.COPY_ON_WRITE, 9, **({"partition_fields": fields} | more))


def read(paths: list[str], table: TableConfig, where: str) -> list[str]:
    condition = parse_where(where, SCHEMA)
    return [partition.path for partition in partitions_to_read(paths, table, SCHEMA, condition)]


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        ("city = 'b'", ["b"]),
        ("city IN ('a', 'c') AND x > 1", ["a", "c"]),
        ("city > 'a' OR x > 1", ["a", "b", "c"]),
        ("NOT city = 'b'", ["a", "c"]),
        ("city IS NULL", []),
        ("x > 1", ["a", "b", "c"]),
        ("city LIKE 'b%'", ["b"]),
    ],
)
def test_partitions_that_cannot_match_are_not_read(where: str, paths: list[str]) -> None:
    assert read(["a", "b", "c"], config("city"), where) == paths


def test_several_columns_of_several_types_prune() -> None:
    paths = ["city=a/month=1", "city=a/month=12", "city=b/month=12"]
    table = config("city", "month", hive_style=True, key_generator=KeyGeneratorType.COMPLEX)
    assert read(paths, table, "month = 12 AND city = 'a'") == ["city=a/month=12"]


@pytest.mark.parametrize(
    ("where", "months"),
    [
        ("month > 6.5", ["7", "12"]),
        ("month = 6.5", []),
        ("month * 1.5 < 10", ["6"]),
        ("month in (7.0, 8.5)", ["7"]),
    ],
)
def test_fractions_rule_out_partitions_of_whole_numbers(where: str, months: list[str]) -> None:
    assert read(["6", "7", "12"], config("month"), where) == months


def test_the_default_partition_is_always_read_when_it_may_match() -> None:
    """Its rows are null or empty; the files know which."""
    assert read(["a", "__HIVE_DEFAULT_PARTITION__"], config("city"), "city = 'b'") == [
        "__HIVE_DEFAULT_PARTITION__"
    ]


def test_values_have_the_types_of_the_columns() -> None:
    table = config("month", "day", key_generator=KeyGeneratorType.COMPLEX)
    assert partition_values("7/2024-01-31", table, SCHEMA) == {"month": 7, "day": date(2024, 1, 31)}


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("07", config("month")),
        ("seven", config("month")),
        ("1.5", config("x")),
        ("a/b/c", config("city", "month", key_generator=KeyGeneratorType.COMPLEX)),
        ("2024/01/31", config("day", key_generator=KeyGeneratorType.TIMESTAMP)),
        ("a", config("city", record_key_fields=("city",))),
        ("a", config("nowhere")),
        ("2024/01/31", config("day", properties={
            "hoodie.datasource.write.slash.separated.date.partitioning": "true",
        })),
    ],
)  # fmt: skip
def test_a_path_that_may_mean_something_else_tells_nothing(path: str, table: TableConfig) -> None:
    assert partition_values(path, table, SCHEMA) == {}


def test_files_without_partition_columns_need_a_path_that_tells() -> None:
    table = config("city", drop_partition_columns=True)
    assert partition_values("__HIVE_DEFAULT_PARTITION__", table, SCHEMA) == {"city": None}
    assert read(["a", "__HIVE_DEFAULT_PARTITION__"], table, "city = 'a'") == ["a"]
    with pytest.raises(UnsupportedError, match="lack partition column x"):
        partitions_to_read(["1.5"], config("x", drop_partition_columns=True), SCHEMA, None)
