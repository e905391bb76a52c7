"""Record keys and partition paths, as Hudi's generators make them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table_config import KeyGeneratorType, TableConfig, TableType
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.keygen.partition_path import escape, split_path
from drawstring.keygen.texts import java_text


def config(keys: str, partitions: str = "", version: int = 9, **more: Any) -> TableConfig:
    fields = tuple(partitions.split())
    generator = KeyGeneratorType.NON_PARTITION
    if fields:
        is_simple = len(fields) == 1 and len(keys.split()) == 1
        generator = KeyGeneratorType.SIMPLE if is_simple else KeyGeneratorType.COMPLEX
    described = {
        "record_key_fields": tuple(keys.split()),
        "partition_fields": fields,
        "key_generator": generator,
    }
    return TableConfig("t", TableType.COPY_ON_WRITE, version, **described | more)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def test_one_key_column_gives_its_bare_value() -> None:
    rows = batch(id=[1, 20], p=["a", "b"])
    generator = KeyGenerator(config("id", "p"))
    assert generator.record_keys(rows).to_pylist() == ["1", "20"]
    assert generator.partition_paths(rows).to_pylist() == ["a", "b"]


def test_several_key_columns_are_named_and_mark_null_and_empty() -> None:
    rows = batch(a=[1, None, 3], b=["x", "y", ""])
    keys = KeyGenerator(config("a b")).record_keys(rows).to_pylist()
    assert keys == ["a:1,b:x", "a:__null__,b:y", "a:3,b:__empty__"]


def test_a_complex_key_of_one_column_is_named_too() -> None:
    generator = KeyGenerator(config("id", "p q"))
    rows = batch(id=[5], p=["a"], q=[None])
    assert generator.record_keys(rows).to_pylist() == ["id:5"]
    assert generator.partition_paths(rows).to_pylist() == ["a/__HIVE_DEFAULT_PARTITION__"]


def test_an_old_table_may_ask_for_bare_complex_keys() -> None:
    properties = {"hoodie.write.complex.keygen.new.encoding": "true"}
    rows = batch(id=[5])
    assert KeyGenerator(config("id", "p q", 8, properties=properties)).record_keys(rows).to_pylist() == ["5"]
    assert KeyGenerator(config("id", "p q", 9, properties=properties)).record_keys(rows).to_pylist() == [
        "id:5"
    ]


def test_hive_style_and_encoded_paths() -> None:
    generator = KeyGenerator(config("id", "p", hive_style=True, url_encode=True))
    paths = generator.partition_paths(batch(p=["são/paulo", "", None, "a b"])).to_pylist()
    default = "p=__HIVE_DEFAULT_PARTITION__"
    assert paths == ["p=são%2Fpaulo", default, default, "p=a b"]


def test_a_table_without_partitions_has_the_empty_path() -> None:
    assert KeyGenerator(config("id")).partition_paths(batch(id=[1, 2])).to_pylist() == ["", ""]


def test_null_and_empty_keys_are_refused_with_their_number() -> None:
    with pytest.raises(InvalidError, match=r"column id is null or empty in 2 rows"):
        KeyGenerator(config("id")).record_keys(batch(id=["a", None, ""]))
    with pytest.raises(InvalidError, match="all null or empty in 1 row"):
        KeyGenerator(config("a b")).record_keys(batch(a=[None, 1], b=["", None]))


def test_text_that_is_not_utf_8_is_refused() -> None:
    damaged = pa.array([b"a", b"\xff"]).view(pa.string())
    for properties in (config("id"), config("x", "id")):
        with pytest.raises(InvalidError, match=r"Column id, .*UTF.?8"):
            KeyGenerator(properties).keys_and_paths(batch(id=damaged, x=["b", "c"]))


def test_a_missing_key_column_is_named() -> None:
    with pytest.raises(InvalidError, match="no column id"):
        KeyGenerator(config("id")).record_keys(batch(x=[1]))


def test_a_key_may_lie_inside_a_struct() -> None:
    rows = batch(who=[{"id": 7}])
    assert KeyGenerator(config("who.id")).record_keys(rows).to_pylist() == ["7"]
    with pytest.raises(InvalidError, match="no field name"):
        KeyGenerator(config("who.name")).record_keys(rows)


def test_a_global_generator_names_its_columns_and_has_no_paths() -> None:
    rows = batch(id=[5], p=["a"])
    for fields, key in (("id", "id:5"), ("id p", "id:5,p:a")):
        generator = KeyGenerator(config(fields, version=8, key_generator=KeyGeneratorType.GLOBAL_DELETE))
        assert generator.record_keys(rows).to_pylist() == [key]
        assert generator.partition_paths(rows).to_pylist() == [""]


TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}


def test_a_timestamp_generator_formats_the_path_and_leaves_the_key_bare() -> None:
    described = config("id", "t", key_generator=KeyGeneratorType.TIMESTAMP, properties=TIMEBASED)
    rows = batch(id=["a", "b"], t=[1_700_000_000_123, None])
    assert KeyGenerator(described).record_keys(rows).to_pylist() == ["a", "b"]
    assert KeyGenerator(described).partition_paths(rows).to_pylist() == ["2023/11/14", "1970/01/01"]
    encoded = replace(described, hive_style=True, url_encode=True)
    assert KeyGenerator(encoded).partition_paths(rows).to_pylist()[0] == "t=2023%2F11%2F14"


def test_a_custom_generator_mixes_values_and_dates() -> None:
    described = config("id", "p t", key_generator=KeyGeneratorType.CUSTOM, properties=TIMEBASED)
    rows = batch(id=["a"], p=["x"], t=[1_700_000_000_123])
    typed = replace(described, partition_types=("SIMPLE", "TIMESTAMP"))
    assert KeyGenerator(typed).record_keys(rows).to_pylist() == ["a"]
    assert KeyGenerator(typed).partition_paths(rows).to_pylist() == ["x/2023/11/14"]
    assert KeyGenerator(config("id", key_generator=KeyGeneratorType.CUSTOM)).partition_paths(
        rows
    ).to_pylist() == [""]
    with pytest.raises(InvalidError, match="p:SIMPLE,t:SIMPLE"):
        KeyGenerator(described)


def test_dates_become_folders_where_the_table_says_so() -> None:
    slashed = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
    rows = batch(id=["a", "b", "c", "d"], p=["2024-01-15", "-5", None, "none"], q=["x", "x", "x", "x"])
    paths = KeyGenerator(config("id", "p", properties=slashed)).partition_paths(rows)
    assert paths.to_pylist() == ["2024/01/15", "-5", "__HIVE_DEFAULT_PARTITION__", "none"]
    several = KeyGenerator(config("id", "p q", properties=slashed)).partition_paths(rows)
    assert several.to_pylist()[0] == "2024-01-15/x"
    with pytest.raises(UnsupportedError, match="hive-style"):
        KeyGenerator(config("id", "p", properties=slashed, hive_style=True))


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (-5, pa.int32(), "-5"),
        (True, pa.bool_(), "true"),
        (1.5, pa.float64(), "1.5"),
        (1e10, pa.float64(), "1.0E10"),
        (1e-4, pa.float64(), "1.0E-4"),
        (100.0, pa.float64(), "100.0"),
        (1.1, pa.float32(), "1.1"),
        (float("nan"), pa.float64(), "NaN"),
        (Decimal("12.30"), pa.decimal128(10, 2), "12.30"),
        (Decimal("1E-10"), pa.decimal128(20, 10), "0.0000000001"),
        (date(2024, 1, 15), pa.date32(), "2024-01-15"),
        (datetime(2023, 11, 14, 22, 13, 20, 123456, UTC), pa.timestamp("us", "UTC"), "1700000000123456"),
        (b"\x0a\xff", pa.binary(), "0aff"),
        ("x", pa.large_string(), "x"),
        ("x", pa.dictionary(pa.int32(), pa.string()), "x"),
    ],
)
def test_values_have_the_texts_that_java_gives_them(value: Any, kind: pa.DataType, text: str) -> None:
    assert java_text(pa.array([value, None], kind), "c").to_pylist() == [text, None]


def test_a_nested_value_has_no_text() -> None:
    with pytest.raises(InvalidError, match="Column c"):
        java_text(pa.array([[1]]), "c")


def test_escaping_leaves_blanks_braces_and_letters() -> None:
    assert escape("a b}é\"#%'*/:=?\\{[]^\x01\x7f") == "a b}é%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E%01%7F"


@pytest.mark.parametrize(
    ("path", "fields", "hive_style", "url_encode", "values"),
    [
        ("a", ["p"], False, False, ["a"]),
        ("2023/11/14", ["p"], False, False, ["2023/11/14"]),
        ("p=a/q=b", ["p", "q"], True, False, ["a", "b"]),
        ("p=a%2Fb", ["p"], True, True, ["a/b"]),
        ("a%2Fb", ["p"], False, False, ["a%2Fb"]),
        ("__HIVE_DEFAULT_PARTITION__/b", ["p", "q"], False, False, [None, "b"]),
        ("a/b/c", ["p", "q"], False, False, None),
        ("x=a", ["p"], True, False, None),
    ],
)
def test_paths_tell_values(
    path: str, fields: list[str], hive_style: bool, url_encode: bool, values: list[str | None] | None
) -> None:
    assert split_path(path, fields, hive_style=hive_style, url_encode=url_encode) == values
