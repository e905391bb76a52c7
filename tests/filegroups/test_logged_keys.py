"""Log records of base rows are found by numbers as they are by texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import drawstring
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.log_merge import KeyTexts
from drawstring.filegroups.log_scanner import key_numbers
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.schema.fields import RECORD_KEY

COLUMNS = pa.schema([("order", pa.int64()), ("line", pa.int32())])


@pytest.fixture
def config(tmp_path: Path) -> TableConfig:
    columns = pa.schema([*COLUMNS, ("ts", pa.int64())])
    return drawstring.create(tmp_path, columns, record_key=COLUMNS.names, ordering="ts").config


def rows_of(orders: list[int], lines: list[int], config: TableConfig) -> pa.RecordBatch:
    rows = pa.record_batch([pa.array(orders, pa.int64()), pa.array(lines, pa.int32())], schema=COLUMNS)
    return rows.append_column(RECORD_KEY, KeyGenerator(config).record_keys(rows))


@pytest.mark.parametrize("logged", [0, 1, 7, 3_000, 200_000])
def test_numbers_find_the_rows_that_texts_find(config: TableConfig, logged: int) -> None:
    rng = np.random.default_rng(logged)
    numbers = rng.choice(np.arange(-300_000, 300_000), 230_000, replace=False)
    orders, lines = (numbers // 7).tolist(), (numbers % 7).tolist()
    keys = rows_of(orders[:logged], lines[:logged], config).column(RECORD_KEY)
    base = rows_of(orders[-31_000:], lines[-31_000:], config)
    some = rows_of([*orders[:2], 1 << 62], [*lines[:2], 1], config)
    by_number = key_numbers(keys, config, COLUMNS, ())
    assert by_number is not None
    for rows in (base, some):
        for found, expected in zip(by_number.find(rows), KeyTexts(keys, config).find(rows), strict=True):
            assert found.tolist() == expected.tolist()
    assert len(by_number.find(some)[0]) == min(logged, 2)
