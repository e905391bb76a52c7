"""Which partitions a condition rules out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import UnsupportedError
from drawstring.config.table_config import KeyGeneratorType, TableConfig, TableType
from drawstring.expressions.predicate import parse_where
from drawstring.query.partition_pruning import partition_values, partitions_to_read
from tests.support.rows import arrow_rows
from tests.support.tables import new_address

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("month", pa.int32()),
        ("day", pa.date32()),
        ("x", pa.float64()),
    ]
)
SLASHED = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}


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


def test_the_default_partition_of_numbers_has_null_only() -> None:
    paths = ["7", "__HIVE_DEFAULT_PARTITION__"]
    assert read(paths, config("month"), "month = 7") == ["7"]
    assert read(paths, config("month"), "month is null") == ["__HIVE_DEFAULT_PARTITION__"]


def test_the_default_partition_is_always_read_when_it_may_match() -> None:
    """Its rows are null or empty; the files know which."""
    assert read(["a", "__HIVE_DEFAULT_PARTITION__"], config("city"), "city = 'b'") == [
        "__HIVE_DEFAULT_PARTITION__"
    ]


MORE = pa.schema(
    [
        *SCHEMA,
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("millis", pa.timestamp("ms", "UTC")),
        ("fee", pa.decimal128(5, 2)),
    ]
)
CUSTOM = {"key_generator": KeyGeneratorType.CUSTOM, "partition_types": ("SIMPLE", "TIMESTAMP")}


@pytest.mark.parametrize(
    ("fields", "path", "values"),
    [
        (("at",), "1705314600123456", {"at": datetime(2024, 1, 15, 10, 30, 0, 123456, UTC)}),
        (("at",), "-1", {"at": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)}),
        (("local",), "0", {"local": datetime(1970, 1, 1)}),
        (("at",), "2024-01-15 10:30:00", {}),
        (("at",), "99999999999999999999", {}),
        (("millis",), "1705314600123", {"millis": datetime(2024, 1, 15, 10, 30, 0, 123000, UTC)}),
        (("millis",), "-1", {"millis": datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)}),
        (("millis",), "1705314600123456", {"millis": datetime(2024, 1, 15, 10, 30, 0, 123000, UTC)}),
        (("millis",), "2024-01-15 10:30:00", {}),
        (("fee",), "12.50", {"fee": Decimal("12.50")}),
        (("fee",), "-0.50", {"fee": Decimal("-0.50")}),
        (("fee",), "13", {}),
        (("fee",), "1234.50", {}),
        (("fee",), "-0.00", {}),
        (("fee",), "1E+1", {}),
        (("fee",), "NaN", {}),
    ],
)
def test_timestamps_and_decimals_follow_from_their_exact_texts_only(
    fields: tuple[str, ...], path: str, values: dict[str, Any]
) -> None:
    assert partition_values(path, config(*fields), MORE) == values


def test_the_simple_columns_of_a_custom_generator_prune() -> None:
    table = config("city", "at", **CUSTOM)
    assert partition_values("a/2024-01-15", table, MORE) == {"city": "a"}
    assert partition_values("a/2024/01/15", table, MORE) == {}
    assert read(["a/2024", "b/2024"], table, "city = 'b'") == ["b/2024"]
    unnamed = config("city", "at", key_generator=KeyGeneratorType.CUSTOM)
    assert partition_values("a/2024", unnamed, MORE) == {}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("kind", "values", "where", "count"),
    [
        (pa.timestamp("us", "UTC"), [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)],
         "part >= '2024-01-02'", 2),
        (pa.timestamp("ms", "UTC"), [datetime(2024, 1, day, 5, 6, 7, 89000, UTC) for day in (1, 2, 3)],
         "part >= '2024-01-02' and part < '2024-01-03'", 1),
        (pa.timestamp("us"), [datetime(1960, 1, day) for day in (1, 2, 3)], "part = '1960-01-03'", 1),
        (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("-0.25"), Decimal("20.00")], "part < 2", 2),
    ],
)  # fmt: skip
def test_a_query_reads_the_partitions_of_its_condition_only(
    kind: pa.DataType, values: list[Any], where: str, count: int, table_type: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", kind)])
    table = drawstring.create(
        new_address(), schema, record_key="id", partition_by="part", table_type=table_type
    )
    for _ in range(2):
        table.upsert(pa.table({"id": [1, 2, 3], "part": values}, schema))
    every = table.scan(["id", "part"]).to_arrow().sort_by("id")
    assert every["part"].to_pylist() == values
    scan = table.scan(["id", "part"], where=where)
    assert len(scan.tasks()) == count == scan.to_arrow().num_rows
    assert scan.to_arrow().sort_by("id") == every.filter(parse_where(where, schema))


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
        ("a/7", config("city", "month", key_generator=KeyGeneratorType.COMPLEX, properties=SLASHED)),
    ],
)  # fmt: skip
def test_a_path_that_may_mean_something_else_tells_nothing(path: str, table: TableConfig) -> None:
    assert partition_values(path, table, SCHEMA) == {}


def test_folders_of_a_date_are_the_date_with_dashes() -> None:
    assert partition_values("2024/01/31", config("day", properties=SLASHED), SCHEMA) == {
        "day": date(2024, 1, 31)
    }
    table = config("city", properties=SLASHED)
    assert partition_values("20240131", table, SCHEMA) == {"city": "20240131"}
    assert read(["2024/01/31", "2024/02/01"], table, "city < '2024-02-01'") == ["2024/01/31"]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_dates_with_slashes_are_shown_and_found_with_dashes(kind: str) -> None:
    schema = pa.schema([("id", pa.string()), ("day", pa.string()), ("ts", pa.int64())])
    table = drawstring.create(
        new_address(),
        schema,
        record_key="id",
        partition_by="day",
        ordering="ts",
        table_type=kind,
        properties=SLASHED,
    )
    options = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    rows = [("a", "2026/01/01", 1), ("b", "2026-01-02", 1), ("c", "2026/01/03", 1), ("d", None, 1)]
    table.upsert(arrow_rows(schema, *rows), options=options)
    shown = {"a": "2026-01-01", "b": "2026-01-02", "c": "2026-01-03", "d": None}
    found = table.scan(["id", "_hoodie_partition_path", "day"]).to_arrow().sort_by("id")
    assert dict(zip(*(found[name].to_pylist() for name in ("id", "day")), strict=True)) == shown
    assert found["_hoodie_partition_path"].to_pylist()[:3] == ["2026/01/01", "2026/01/02", "2026/01/03"]
    assert table.scan(["id"], where="day = '2026/01/01'").to_arrow().num_rows == 0
    assert table.update("day = '2026-01-01'", {"ts": "5"}, options=options).updates == 1
    table.delete(where="day >= '2026-01-03'", options=options)
    rest = table.scan(["id", "day", "ts"], where="day <= '2026-01-03'").to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rest] == [("a", "2026-01-01", 5), ("b", "2026-01-02", 1)]


def test_files_without_partition_columns_need_a_path_that_tells() -> None:
    table = config("city", drop_partition_columns=True)
    assert partition_values("__HIVE_DEFAULT_PARTITION__", table, SCHEMA) == {"city": None}
    assert read(["a", "__HIVE_DEFAULT_PARTITION__"], table, "city = 'a'") == ["a"]
    with pytest.raises(UnsupportedError, match="lack partition column x"):
        partitions_to_read(["1.5"], config("x", drop_partition_columns=True), SCHEMA, None)


DAYS = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in range(1, 25)]
DATED = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("land", pa.string()), ("ts", pa.int64())])
BY_DAY = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("generator", "columns", "path"),
    [
        ("TimestampBasedKeyGenerator", "at", "{}"),
        ("CustomKeyGenerator", ["land:SIMPLE", "at:TIMESTAMP"], "chile/{}"),
    ],
)
def test_conditions_on_the_path_prune_whatever_made_it(
    table_type: str, generator: str, columns: Any, path: str
) -> None:
    properties = {
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
        **BY_DAY,
    }
    table = drawstring.create(
        new_address(),
        DATED,
        record_key="id",
        partition_by=columns,
        ordering="ts",
        table_type=table_type,
        properties=properties,
    )
    times = [int(day.timestamp() * 1000) for day in DAYS]
    for ts in (1, 2):
        rows = {"id": list(range(24)), "at": times, "land": ["chile"] * 24, "ts": [ts] * 24}
        table.upsert(pa.table(rows, DATED))
    for condition, days in (
        (f"= '{path.format('2024-01-05')}'", [4]),
        (f">= '{path.format('2024-01-23')}'", [22, 23]),
        (f"IN ('{path.format('2024-01-01')}', '{path.format('2023-01-01')}')", [0]),
        ("= 'nowhere'", []),
    ):
        scan = table.scan(["id"], where=f"_hoodie_partition_path {condition}")
        assert sorted(row["id"] for row in scan.to_arrow().to_pylist()) == days
        assert scan.explain().file_slices == len(days)


def test_a_condition_on_the_path_and_one_on_a_column_rule_out_more() -> None:
    rows = {"id": [1, 2, 3], "at": [1, 1, 1], "land": ["chile", "peru", "peru"], "ts": [1, 1, 1]}
    table = drawstring.create(new_address(), DATED, record_key="id", partition_by="land")
    table.upsert(pa.table(rows, DATED))
    scan = table.scan(where="_hoodie_partition_path <> 'chile' AND land <> 'peru'")
    assert scan.explain().file_slices == scan.to_arrow().num_rows == 0
    values = table.scan(where="_hoodie_partition_path = 'peru'").tasks()[0].partition_values
    assert values == {"land": "peru"}
