"""TPC-H's lineitem: the files that every peer of the suite `tpch` gets, and the results that each must have.

lineitem.parquet           the rows as `tpchgen-cli` makes them, with the year of shipping and a version, 0
lineitem_changes.parquet   1 % of them at random, changed, and a tenth as many new rows; version 1
orders.parquet             the orders of the rows
tpch.json                  the key and the range of keys to look up, and the results expected

The order of the rows is that of their keys, as TPC-H has it; columns that are changed are those that the
queries use, so that a stale row shows in the results.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.scripts.lineitem_queries import BETWEEN, Q1, Q3, Q6, TOTALS, numbers

TABLES = ("lineitem", "orders")
KEY = ["l_orderkey", "l_linenumber"]
GROUP_ROWS = 128_000
ROWS_OF_SCALE_1 = 6_000_000
ONE_CHANGED_IN = 100
ONE_NEW_IN = 1000
FOUND_BETWEEN_IN = 1000
"""A range of keys has one of so many rows."""
ORDERS_SPARED = 1 << 40
"""New rows have order keys from here on."""
COLUMNS_CHANGED = ("l_quantity", "l_discount", "l_tax")


def make(folder: Path, rows: int) -> dict[str, Any]:
    """Write the files unless they are there; return the expected results.

    Args:
        folder: where to.
        rows: about how many rows lineitem gets.
    """
    facts_file = folder / "tpch.json"
    if facts_file.exists():
        facts: dict[str, Any] = json.loads(facts_file.read_text())
        if facts["rows"] == rows:
            return dict(facts["expected"])
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "generated"
    _generate(made, rows)
    base, changes, orders = (
        folder / f"{name}.parquet" for name in ("lineitem", "lineitem_changes", "orders")
    )
    _copy(made / "lineitem.parquet", base, _with_year_and_version)
    _copy(made / "orders.parquet", orders, _plain)
    shutil.rmtree(made)
    pq.write_table(_changes(base), changes)
    count = pq.read_metadata(base).num_rows
    middle = count // 2
    point, last = _keys(base, [middle, middle + count // FOUND_BETWEEN_IN])
    between = [point[0], last[0]]
    facts = {"rows": rows, "point": point, "range": between, "expected": _expected(folder, between)}
    facts_file.write_text(json.dumps(facts, indent=2))
    return dict(facts["expected"])


def _generate(made: Path, rows: int) -> None:
    """Write files of the generator into a folder: `lineitem.parquet` and `orders.parquet`."""
    scale = f"{rows / ROWS_OF_SCALE_1:.6f}"
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise SystemExit("The suite tpch needs the package tpchgen-cli: run `make setup-bench`.")
    what = ["--scale-factor", scale, "--tables", ",".join(TABLES), "--output-dir", str(made)]
    subprocess.run([program, "parquet", *what], check=True, stdout=subprocess.DEVNULL)


def _copy(source: Path, target: Path, changed: Callable[[pa.Table], pa.Table]) -> None:
    """Write a file's rows anew, a row group at a time."""
    batches = pq.ParquetFile(source).iter_batches(GROUP_ROWS)
    tables = (changed(pa.Table.from_batches([batch])) for batch in batches)
    first = next(tables)
    with pq.ParquetWriter(target, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table, row_group_size=GROUP_ROWS)


def _plain(table: pa.Table) -> pa.Table:
    """Return a table with plain texts in place of views of texts."""
    plain = {pa.string_view(): pa.string()}
    return table.cast(pa.schema([(field.name, plain.get(field.type, field.type)) for field in table.schema]))


def _with_year_and_version(table: pa.Table) -> pa.Table:
    """Return generated rows with the partition column and the version."""
    year = pc.year(table["l_shipdate"]).cast(pa.int32())
    version = pa.array(np.zeros(table.num_rows, "int64"))
    return _plain(table).append_column("l_shipyear", year).append_column("l_version", version)


def _taken(base: Path, wanted: np.ndarray) -> pa.Table:
    """Return rows of a file by their numbers, which ascend."""
    found, start = [], 0
    for batch in pq.ParquetFile(base).iter_batches(GROUP_ROWS):
        first, last = np.searchsorted(wanted, [start, start + batch.num_rows])
        found.append(batch.take(pa.array(wanted[first:last] - start)))
        start += batch.num_rows
    return pa.Table.from_batches(found)


def _keys(base: Path, wanted: list[int]) -> list[list[int]]:
    """Return the keys of rows by their numbers, which ascend."""
    found = _taken(base, np.array(wanted)).select(KEY)
    return [list(row.values()) for row in found.to_pylist()]


def _changes(base: Path) -> pa.Table:
    """Return changed rows and new ones, mixed."""
    count = pq.read_metadata(base).num_rows
    rng = np.random.default_rng(count)
    changed, new = (
        _taken(base, np.sort(rng.choice(count, wanted, replace=False)))
        for wanted in (count // ONE_CHANGED_IN, max(1, count // ONE_NEW_IN))
    )
    keys = pc.add(new["l_orderkey"], ORDERS_SPARED)
    new = new.set_column(0, "l_orderkey", keys)
    rows = pa.concat_tables([changed, new])
    for name in COLUMNS_CHANGED:
        at = rows.schema.get_field_index(name)
        shuffled = rows[name].take(rng.permutation(rows.num_rows))
        rows = rows.set_column(at, name, shuffled)
    version = pa.array(np.ones(rows.num_rows, "int64"))
    rows = rows.set_column(rows.schema.get_field_index("l_version"), "l_version", version)
    return rows.take(rng.permutation(rows.num_rows))


def _expected(folder: Path, between: list[int]) -> dict[str, Any]:
    """Compute the results of the steps from the files, by DuckDB, which holds no file as a whole."""
    base, changes, orders = (
        f"'{folder / name}.parquet'" for name in ("lineitem", "lineitem_changes", "orders")
    )
    unchanged = f"select * from {base} anti join {changes} using ({', '.join(KEY)})"
    newest = f"select * from {changes} union all by name {unchanged}"
    found = f"select * from ({newest}) where l_orderkey between {between[0]} and {between[1]}"
    last = {name: _over(newest, query) for name, query in (("3_columns", TOTALS), ("q1", Q1), ("q6", Q6))}
    return {
        "base_3_columns": _over(f"select * from {base}", TOTALS),
        "columns_3": last["3_columns"],
        "columns_all": int(last["3_columns"][0]),
        "q1": last["q1"],
        "q3": _over(newest, Q3, orders),
        "q6": last["q6"],
        "key": 1,
        "range": _over(found, BETWEEN),
        **{f"compacted_{name}": result for name, result in last.items()},
    }


def _over(lineitem: str, query: str, orders: str = "") -> list[float]:
    """Return the numbers of a query's rows over other ones for lineitem, and a file for orders."""
    with duckdb.connect() as connection:
        connection.sql(f"create view lineitem as {lineitem}")
        if orders:
            connection.sql(f"create view orders as select * from {orders}")
        return numbers(connection.sql(query).fetchall())
