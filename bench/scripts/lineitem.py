"""The steps of the suite `tpch`: lineitem, 18 columns, key of two, partitioned by the year of shipping.

Standard library only, as in `ride`. A peer has `load(file)`, `upsert(file)`, and what reads: `narrow()`,
`everything()`, `q1()`, `q3()`, `q6()`, `point()` and `between()`; `compact` is None where it cannot.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ride import size, step

TIMES = int(os.environ.get("BENCH_READS", "3"))
"""How often everything that is read after the upsert is read."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The files of the suite.

    Attributes:
        lineitem: the rows of the load.
        changes: those of the upsert.
        orders: what Q3 joins.
        point: values of the key of the row to find.
        range: first and last order key of those to find.
    """

    lineitem: str
    changes: str
    orders: str
    point: list[int]
    range: list[int]

    @staticmethod
    def load(data: Path) -> Facts:
        facts: dict[str, Any] = json.loads((data / "tpch.json").read_text())
        files = (str(data / f"{name}.parquet") for name in ("lineitem", "lineitem_changes", "orders"))
        return Facts(*files, facts["point"], facts["range"])


def run(peer: Any, facts: Facts, folder: str) -> None:
    """Take a peer through the suite."""
    step("bulk_insert", peer.load, facts.lineitem)
    step("base_3_columns", peer.narrow)
    step("upsert_1", peer.upsert, facts.changes)
    for again in range(TIMES):
        step(f"columns_3_{again}", peer.narrow)
    step("columns_all", peer.everything)
    for name in ("q1", "q3", "q6"):
        for again in range(TIMES):
            step(f"{name}_{again}", getattr(peer, name))
    for again in range(TIMES):
        step(f"key_{again}", peer.point)
        step(f"range_{again}", peer.between)
    if peer.compact:
        step("compact", peer.compact)
        for name, action in (("3_columns", peer.narrow), ("q1", peer.q1), ("q6", peer.q6)):
            for again in range(TIMES):
                step(f"compacted_{name}_{again}", action)
    step("size", size, folder)
    shutil.rmtree(folder)
