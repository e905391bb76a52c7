"""Compound keys of whole numbers are the same whether they are written digit by digit or joined of texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.keygen.key_generator import number_keys

ROWS = 5_000


def joined(columns: Sequence[pa.Array], fields: Sequence[str]) -> pa.Array:
    texts = [
        pc.binary_join_element_wise(f"{field}:", column.cast(pa.string()), "")
        for column, field in zip(columns, fields, strict=True)
    ]
    return pc.binary_join_element_wise(*texts, ",")


def numbers(low: int, high: int, kind: pa.DataType) -> pa.Array:
    return pa.array(np.random.default_rng(high % 1_000).integers(low, high, ROWS, np.int64)).cast(kind)


@pytest.mark.parametrize(
    "columns",
    [
        [numbers(100_000, 1_000_000, pa.int64()), numbers(1, 8, pa.int32())],
        [numbers(0, 1_000_000, pa.int64()), numbers(1, 8, pa.int32())],
        [numbers(0, 100, pa.int8()), numbers(0, 30_000, pa.int16()), numbers(9_990, 10_010, pa.int64())],
        [numbers(10**18, (1 << 63) - 1, pa.int64()), numbers(0, 2, pa.int64())],
        [pa.array(np.resize([9, 10, 99, 100, 9_999, 10_000, 0, (1 << 63) - 1], ROWS))],
    ],
    ids=["equal widths", "several widths", "three columns", "nineteen digits", "one column"],
)
@pytest.mark.parametrize("offset", [0, 17])
def test_keys_of_numbers_are_those_of_their_texts(columns: list[pa.Array], offset: int) -> None:
    fields = ["order", "größe", "c"][: len(columns)]
    sliced = [column.slice(offset) for column in columns]
    found = number_keys(sliced, fields)
    assert found is not None
    found.validate(full=True)
    assert found.equals(joined(sliced, fields))


@pytest.mark.parametrize(
    "column",
    [
        numbers(-1_000, 1_000, pa.int64()),
        numbers(0, 1_000, pa.int64()).cast(pa.string()),
        pa.array([None, *range(1, ROWS)], pa.int64()),
        numbers(0, 1_000, pa.uint32()),
        numbers(0, 1_000, pa.int64())[:100],
    ],
    ids=["negative", "texts", "null", "unsigned", "few"],
)
def test_other_columns_are_joined_of_texts(column: pa.Array) -> None:
    assert number_keys([column, numbers(0, 9, pa.int64())[: len(column)]], ["a", "b"]) is None


def test_more_columns_than_their_widths_fit_into_a_number_are_joined_of_texts() -> None:
    columns = [numbers(0, 100, pa.int64()), *(numbers(1, 9, pa.int64()) for _ in range(33))]
    assert number_keys(columns, [f"c{at}" for at in range(34)]) is None
