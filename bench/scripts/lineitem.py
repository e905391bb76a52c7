"""The steps of the suite `tpch`: lineitem, 18 columns, key of two, partitioned by the year of shipping.

A peer is an object with `bulk_insert(file)`, `upsert(file)`, `table(columns, where)`, which returns rows as
an Arrow table, and `relation()`, what DuckDB reads as the whole table; `compact()` where it can. A condition
is a list of (column, operator, value).
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from lineitem_queries import NARROW, Q1, Q6, TOTALS, answer
from ride import size, step

KEY = ("l_orderkey", "l_linenumber")
YEAR, VERSION = "l_shipyear", "l_version"
Condition = list[tuple[str, str, Any]]


class Peer(Protocol):
    def bulk_insert(self, file: str) -> None: ...
    def upsert(self, file: str) -> None: ...
    def table(self, columns: list[str] | None, where: Condition | None) -> pa.Table: ...
    def relation(self) -> Any: ...


def run(peer: Peer) -> None:
    """Take a peer through the suite. usage of its script: SCRIPT DATA TABLE"""
    data = Path(sys.argv[1]).resolve()
    point = json.loads((data / "tpch.json").read_text())["point"]
    step("bulk_insert", peer.bulk_insert, str(data / "lineitem.parquet"))
    step("base_3_columns", _narrow, peer)
    step("upsert_1", peer.upsert, str(data / "lineitem_changes.parquet"))
    for again in range(3):
        step(f"columns_3_{again}", _narrow, peer)
    step("columns_all", _all, peer)
    for again in range(3):
        step(f"q1_{again}", _answer, peer, Q1)
        step(f"q6_{again}", _answer, peer, Q6)
        step(f"key_{again}", _point, peer, point)
    if hasattr(peer, "compact"):
        step("compact", peer.compact)
        step("compacted_3_columns", _narrow, peer)
        step("compacted_q6", _answer, peer, Q6)
    step("size", size, sys.argv[2])
    shutil.rmtree(sys.argv[2])


def fresh() -> str:
    """Return the folder of the peer's table, which is not there."""
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
    return str(Path(sys.argv[2]).resolve())


def _narrow(peer: Peer) -> list[float]:
    return answer(peer.table(NARROW, None), TOTALS)


def _all(peer: Peer) -> int:
    return int(peer.table(None, None).num_rows)


def _answer(peer: Peer, query: str) -> list[float]:
    return answer(peer.relation(), query)


def _point(peer: Peer, values: list[int]) -> int:
    where: Condition = [(name, "=", value) for name, value in zip(KEY, values, strict=True)]
    return int(peer.table(["l_comment"], where).num_rows)
