"""Small files like those of TPC-H's generator."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def small_tables(made: Path, rows: int) -> None:
    """Write files with the columns of the generator that the suite uses, and one that it only carries."""
    rng = np.random.default_rng(7)
    numbers = np.arange(rows)
    days = rng.integers(0, 2500, rows)
    hundredths = {
        "l_quantity": rng.integers(1, 51, rows) * 100,
        "l_extendedprice": rng.integers(90_000, 10_000_000, rows),
        "l_discount": rng.integers(0, 11, rows),
        "l_tax": rng.integers(0, 9, rows),
    }
    decimals = {
        name: pa.array((values / 100).astype(str)).cast(pa.decimal128(15, 2))
        for name, values in hundredths.items()
    }
    columns = {
        "l_orderkey": numbers // 4,
        "l_linenumber": (numbers % 4 + 1).astype("int32"),
        **decimals,
        "l_returnflag": pa.array(np.array(["A", "N", "R"])[numbers % 3], pa.string_view()),
        "l_linestatus": pa.array(np.array(["F", "O"])[numbers % 2], pa.string_view()),
        "l_shipdate": pa.array([datetime.date(1992, 1, 2) + datetime.timedelta(int(day)) for day in days]),
        "l_comment": pa.array([f"comment {number}" for number in numbers], pa.string_view()),
    }
    made.mkdir()
    pq.write_table(pa.table(columns), made / "lineitem.parquet")
    pq.write_table(small_orders(rows // 4), made / "orders.parquet")


def small_orders(count: int) -> pa.Table:
    numbers = np.arange(count)
    start = datetime.date(1995, 1, 1)
    columns = {
        "o_orderkey": numbers,
        "o_orderdate": pa.array([start + datetime.timedelta(int(day)) for day in numbers % 100]),
        "o_orderpriority": pa.array(np.array(["1-URGENT", "5-LOW"])[numbers % 2], pa.string_view()),
        "o_shippriority": np.zeros(count, "int32"),
    }
    return pa.table(columns)
