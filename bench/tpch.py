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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.scripts.lineitem_queries import BETWEEN, NARROW, Q1, Q3, Q6, TOTALS, answer

TABLES = ("lineitem", "orders")
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
    generated = {name: _plain(table) for name, table in _generated(folder, rows).items()}
    base = _lineitem(generated["lineitem"])
    changes = _changes(base)
    pq.write_table(base, folder / "lineitem.parquet", row_group_size=128_000)
    pq.write_table(changes, folder / "lineitem_changes.parquet")
    pq.write_table(generated["orders"], folder / "orders.parquet")
    middle = base.num_rows // 2
    point = [base["l_orderkey"][middle].as_py(), base["l_linenumber"][middle].as_py()]
    between = [point[0], base["l_orderkey"][middle + base.num_rows // FOUND_BETWEEN_IN].as_py()]
    expected = _expected(base, changes, generated["orders"], between)
    facts = {"rows": rows, "point": point, "range": between, "expected": expected}
    facts_file.write_text(json.dumps(facts, indent=2))
    return dict(facts["expected"])


def _plain(table: pa.Table) -> pa.Table:
    """Return a table with plain texts in place of views of texts."""
    plain = {pa.string_view(): pa.string()}
    return table.cast(pa.schema([(field.name, plain.get(field.type, field.type)) for field in table.schema]))


def _lineitem(table: pa.Table) -> pa.Table:
    """Return the generated rows with the partition column and the version."""
    year = pc.year(table["l_shipdate"]).cast(pa.int32())
    version = pa.array(np.zeros(table.num_rows, "int64"))
    return table.append_column("l_shipyear", year).append_column("l_version", version)


def _generated(folder: Path, rows: int) -> dict[str, pa.Table]:
    made = folder / "generated"
    scale = f"{rows / ROWS_OF_SCALE_1:.6f}"
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise SystemExit("The suite tpch needs the package tpchgen-cli: run `make setup-bench`.")
    what = ["--scale-factor", scale, "--tables", ",".join(TABLES), "--output-dir", str(made)]
    subprocess.run([program, "parquet", *what], check=True, stdout=subprocess.DEVNULL)
    tables = {name: pq.read_table(made / f"{name}.parquet") for name in TABLES}
    shutil.rmtree(made)
    return tables


def _changes(base: pa.Table) -> pa.Table:
    """Return changed rows and new ones, mixed."""
    rng = np.random.default_rng(base.num_rows)
    changed = base.take(rng.choice(base.num_rows, base.num_rows // ONE_CHANGED_IN, replace=False))
    new = base.take(np.sort(rng.choice(base.num_rows, max(1, base.num_rows // ONE_NEW_IN), replace=False)))
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


def _expected(base: pa.Table, changes: pa.Table, orders: pa.Table, between: list[int]) -> dict[str, Any]:
    """Compute the results of the steps from the files."""
    unchanged = base.join(changes, ["l_orderkey", "l_linenumber"], join_type="left anti")
    newest = pa.concat_tables([changes, unchanged.select(changes.column_names)])
    assert newest.num_rows == base.num_rows + max(1, base.num_rows // ONE_NEW_IN)
    keys = newest["l_orderkey"]
    found = newest.filter(pc.and_(pc.greater_equal(keys, between[0]), pc.less_equal(keys, between[1])))
    last = {"3_columns": answer(TOTALS, lineitem=newest)}
    last |= {name: answer(query, lineitem=newest) for name, query in (("q1", Q1), ("q6", Q6))}
    return {
        "base_3_columns": answer(TOTALS, lineitem=base.select(NARROW)),
        "columns_3": last["3_columns"],
        "columns_all": newest.num_rows,
        "q1": last["q1"],
        "q3": answer(Q3, lineitem=newest, orders=orders),
        "q6": last["q6"],
        "key": 1,
        "range": answer(BETWEEN, lineitem=found),
        **{f"compacted_{name}": result for name, result in last.items()},
    }
