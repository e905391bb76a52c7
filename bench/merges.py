"""Micro-merges after LHBench: the files that every peer gets, and the results that each must have.

merge_0.parquet           the rows of the load: a number as the key, a version, ten other columns
merge_SHARE_TIME.parquet  the rows of a merge, SHARE per cent of the load's: half of them are there already,
                          wherever the keys fall, half are new; of a single row it is there
merges.json               the shares, the columns to read, and the results expected
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.lakeloader import median_written, values

if TYPE_CHECKING:
    from bench.results import Results

SHARES = ("0.0001", "0.001", "0.01", "0.1", "1", "10")
TIMES = 3
"""How often a share is merged."""
COLUMNS = 10
SUMS = ("ts", "v01")
MERGE, READ, WRITTEN = "merge", "read", "written"
MEDIANS = tuple(f"{what}_{share}%" for what in (MERGE, READ) for share in SHARES)
STEPS = (*MEDIANS, f"{READ}_compacted")


def make(folder: Path, rows: int) -> dict[str, Any]:
    """Write the files unless they are there; return the expected results.

    Args:
        folder: where to.
        rows: of the load.
    """
    facts_file = folder / "merges.json"
    if facts_file.exists():
        facts: dict[str, Any] = json.loads(facts_file.read_text())
        if facts["rows"] == rows:
            return dict(facts["expected"])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(rows)
    load = _write(rng, folder / "merge_0.parquet", np.arange(rows), 0)
    newest = {name: np.array(load[name]) for name in SUMS}
    expected: dict[str, Any] = {}
    for version, (share, time) in enumerate(_merges(), 1):
        there = len(newest["ts"])
        count = max(1, round(rows * float(share) / 100))
        new = np.arange(there, there + count // 2)
        ids = np.concatenate([rng.choice(there, count - len(new), replace=False), new])
        merged = _write(rng, folder / f"merge_{share}_{time}.parquet", rng.permutation(ids), version)
        for name in SUMS:
            newest[name] = np.concatenate([newest[name], np.zeros(len(new), newest[name].dtype)])
            newest[name][merged["id"]] = merged[name]
        expected[f"{READ}_{share}%_{time}"] = _sums(newest)
    expected[f"{READ}_compacted"] = _sums(newest)
    facts = {"rows": rows, "merges": list(_merges()), "sums": SUMS, "expected": expected}
    facts_file.write_text(json.dumps(facts, indent=2))
    return dict(expected)


def _merges() -> Iterator[tuple[str, int]]:
    for share in SHARES:
        for time in range(TIMES):
            yield share, time


def _write(rng: np.random.Generator, file: Path, ids: Any, version: int) -> dict[str, Any]:
    """Write rows of a version; return their columns."""
    columns = {"id": ids, "ts": np.full(len(ids), version, "int64")}
    columns |= {f"v{each:02}": values(rng, each, len(ids)) for each in range(COLUMNS)}
    pq.write_table(pa.table(columns), file, row_group_size=128_000)
    return columns


def _sums(newest: dict[str, Any]) -> list[float]:
    return [len(newest["ts"]), *(round(float(column.sum()), 2) for column in newest.values())]


def rows(results: Results, ran: Sequence[str]) -> Iterator[list[str]]:
    """Yield rows of the table of the peers: what a merge wrote."""
    for share in SHARES:
        written = (median_written(results, peer, f"{WRITTEN}_{share}%_") for peer in ran)
        yield [f"{WRITTEN}_{share}%, MB", *("" if each is None else f"{each:.2f}" for each in written)]
