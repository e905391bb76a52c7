"""The suite `merges`: one small merge after another, each followed by a read of three columns.

usage: merges.py DATA TABLE SYSTEM [ARGS]
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import Any

from local_tables import sums_of, table_of
from ride import arguments, note, size, step
from shapes import Shape
from written import Written

SHAPE = Shape("merges", ("id",), (), "ts")


def main() -> None:
    data, folder, words = arguments()
    facts: dict[str, Any] = json.loads((data / "merges.json").read_text())
    table = table_of(folder, SHAPE, words)
    read = partial(sums_of, table, facts["sums"])
    step("bulk_insert", table.load, str(data / "merge_0.parquet"))
    for share, time in facts["merges"]:
        written = Written(folder)
        step(f"merge_{share}%_{time}", table.upsert, str(data / f"merge_{share}_{time}.parquet"))
        note(f"written_{share}%_{time}", written.mb())
        step(f"read_{share}%_{time}", read)
    if hasattr(table, "compact"):
        step("compact", table.compact)
        step("read_compacted", read)
    step("size", size, folder)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
