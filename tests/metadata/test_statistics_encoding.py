"""Encoding of statistics of columns: what a reader of Avro finds in the records, for every type."""

from __future__ import annotations

import io
import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from drawstring.formats import schemas
from drawstring.formats.avro.encoder import encode_rows
from drawstring.metadata.column_stats_record import (
    MAX,
    MIN,
    ColumnStatistics,
    bounds_as,
    encode_deleted,
    encode_statistics,
)
from drawstring.metadata.table import STATISTICS, file_hash, partition_hash
from drawstring.model.commit import ColumnSummary, merged

SCHEMA = json.loads(schemas.text("metadata_record"))
VALUES: list[tuple[pa.Array, str, Any, Any, str, Any, Any, int]] = [
    (pa.array([True, None]), "Boolean", True, True, "Boolean", True, True, 2),
    (pa.array([3, -1, None], pa.int32()), "Int", -1, 3, "Int", -1, 3, 3),
    (pa.array([1 << 40, 2]), "Long", 2, 1 << 40, "Long", 2, 1 << 40, 4),
    (pa.array([1.5, -2.5], pa.float32()), "Float", -2.5, 1.5, "Float", -2.5, 1.5, 5),
    (pa.array([0.1, None]), "Double", 0.1, 0.1, "Double", 0.1, 0.1, 6),
    (pa.array(["é", "z", "\uffff"]), "String", "z", "\uffff", "String", "z", "\uffff", 7),
    (pa.array(["b", "a"]).dictionary_encode(), "String", "a", "b", "String", "a", "b", 7),
    (pa.array([b"\x00", b"\xff"]), "Bytes", b"\x00", b"\xff", "Bytes", b"\x00", b"\xff", 8),
    (pa.array([b"ab"], pa.binary(2)), "Bytes", b"ab", b"ab", "Bytes", b"ab", b"ab", 9),
    (pa.array([date(1945, 5, 12)]), "Date", -9000, -9000, "Int", -9000, -9000, 12),
    (pa.array([7], pa.time32("ms")), "Int", 7, 7, "Int", 7, 7, 13),
    (pa.array([7], pa.time64("us")), "Long", 7, 7, "Long", 7, 7, 14),
    (pa.array([7, -8], pa.timestamp("ms", "UTC")), "Long", -8, 7, "Long", -8, 7, 15),
    (pa.array([7], pa.timestamp("us", "UTC")), "Long", 7, 7, "Long", 7, 7, 16),
    (pa.array([7], pa.timestamp("us")), "Long", 7, 7, "Long", 7, 7, 19),
    (
        pa.array([Decimal("-1.28"), Decimal("1.28"), None], pa.decimal128(10, 2)),
        *("Decimal", Decimal("-1.28"), Decimal("1.28"), "Bytes", b"\x80", b"\x00\x80", 10),
    ),
]
"""Values; wrapper, least and greatest value in version V1, and in version V2; the type in version V2."""


def decoded(rows: pa.Table) -> list[dict[str, Any]]:
    """Return records as a reader of Avro has them, the name of the type with each bound."""
    field = next(each for each in SCHEMA["fields"] if each["name"] == STATISTICS)["type"][1]
    data = encode_rows(rows.column(STATISTICS).combine_chunks(), field)
    schema = fastavro.parse_schema(field)
    return [
        fastavro.schemaless_reader(io.BytesIO(each), schema, return_record_name=True)
        for each in data.to_pylist()
    ]


def bound(wrapped: Any) -> tuple[str, Any] | None:
    if wrapped is None:
        return None
    name, content = wrapped
    return name.rpartition(".")[2].removesuffix("Wrapper"), content["value"]


@pytest.mark.parametrize(("values", "v1", "least1", "most1", "v2", "least2", "most2", "ordinal"), VALUES)
def test_each_type_has_the_wrapper_of_its_version(
    values: pa.Array, v1: str, least1: Any, most1: Any, v2: str, least2: Any, most2: Any, ordinal: int
) -> None:
    described = [ColumnStatistics("p", "f.parquet", ColumnSummary.of("c", values))]
    (first,) = decoded(encode_statistics(described, is_v2=False))
    assert [bound(first[MIN]), bound(first[MAX])] == [(v1, pytest.approx(least1)), (v1, pytest.approx(most1))]
    assert first["valueType"] is None
    (second,) = decoded(encode_statistics(described, is_v2=True))
    assert [bound(second[MIN]), bound(second[MAX])] == [
        (v2, pytest.approx(least2)),
        (v2, pytest.approx(most2)),
    ]
    kind = second["valueType"][1]
    assert (kind["typeOrdinal"], kind["additionalInfo"]) == (ordinal, "10,2" if ordinal == 10 else None)
    assert (second["valueCount"], second["nullCount"]) == (len(values), values.null_count)


def test_records_of_files_and_partitions_have_their_keys_and_kinds() -> None:
    summary = ColumnSummary.of("c", pa.array([None, None], pa.string()))
    of_file = encode_statistics([ColumnStatistics("p", "f", summary)], is_v2=True)
    of_partition = encode_statistics([ColumnStatistics("", None, summary)], is_v2=True)
    assert of_file.select(["key", "type"]).to_pylist() == [
        {"key": partition_hash("c") + partition_hash("p") + file_hash("f"), "type": 3}
    ]
    assert of_partition.select(["key", "type"]).to_pylist() == [
        {"key": partition_hash("c") + partition_hash(""), "type": 6}
    ]
    (record,) = decoded(of_partition)
    assert (record[MIN], record[MAX], record["isTightBound"]) == (None, None, True)
    assert (record["valueCount"], record["nullCount"], record["isDeleted"]) == (2, 2, False)
    files = [ColumnStatistics("p", name, summary) for name in ("f", ".f.log.1_0-0-0")]
    tight = [
        [row["isTightBound"] for row in decoded(encode_statistics(files, is_v2=it))] for it in (True, False)
    ]
    assert tight == [[True, True], [True, False]]  # in version 6 a log file is appended to
    (gone,) = decoded(encode_deleted([("c", "p", "f")]))
    assert (gone["isDeleted"], gone["valueCount"], gone["fileName"]) == (True, -1, "f")


def test_a_type_that_an_index_cannot_hold_has_no_record() -> None:
    wide = ColumnSummary.of("c", pa.array([Decimal(1)], pa.decimal128(38, 10)))
    assert not encode_statistics([ColumnStatistics("p", "f", wide)], is_v2=False).num_rows
    assert encode_statistics([ColumnStatistics("p", "f", wide)], is_v2=True).num_rows


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_bounds_of_numbers_include_nan_and_both_zeros(kind: pa.DataType) -> None:
    mixed = ColumnSummary.of("c", pa.array([3.0, math.nan, 0.0, None], kind))
    alone = ColumnSummary.of("c", pa.array([math.nan], kind))
    plain = ColumnSummary.of("c", pa.array([-0.0, 0.0], kind))
    assert math.copysign(1, mixed.bounds[0].as_py()) == -1
    assert mixed.bounds[1].as_py() == math.inf
    assert alone.bounds.to_pylist() == [math.inf] * 2
    assert [math.copysign(1, each) for each in plain.bounds.to_pylist()] == [-1, 1]
    together = merged([mixed, alone, ColumnSummary.of("c", pa.array([-7.0], kind))])
    assert together.bounds[0].as_py() == -7
    assert together.bounds[1].as_py() == math.inf
    assert (together.values, together.nulls) == (6, 1)


def test_decimals_come_back_from_the_fewest_bytes() -> None:
    kind = pa.decimal128(38, 0)
    for number in (0, 1, -1, 127, 128, -128, -129, 32_767, 32_768, 10**37, -(10**37)):
        values = pa.array([Decimal(number)], kind)
        rows = encode_statistics([ColumnStatistics("p", "f", ColumnSummary.of("c", values))], is_v2=True)
        (record,) = decoded(rows)
        size = (number + (number < 0)).bit_length() // 8 + 1
        assert record[MIN][1]["value"] == number.to_bytes(size, "big", signed=True)
        assert bounds_as(rows.column(STATISTICS).combine_chunks(), MAX, kind).equals(values)
