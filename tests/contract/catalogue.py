"""Writes README.md, what the contract suite runs and what not: `python -m tests.contract.catalogue`."""

from __future__ import annotations

from pathlib import Path

from tests.support.contract.cells import (
    BARE_CELLS,
    CELLS,
    FORMAT_CELLS,
    NO_OPERATIONS,
    NO_TABLES,
    OPERATIONS,
    SPARK_CELLS,
    Cell,
    Refusal,
)
from tests.support.contract.kinds import BARE_DIMENSIONS, DIMENSIONS, FORMAT_DIMENSIONS

README = Path(__file__).with_name("README.md")

INTRODUCTION = """# Contract suite

Histories of writes, drawn at random, on kinds of tables, compared with a plain dictionary
(`tests/support/contract/model.py`) after every commit: by snapshot (on base files alone where these hold
everything), time travel, incremental query and change query. This page is generated:
`python -m tests.contract.catalogue`.

All combinations would be too many. Any two values of two dimensions come together in a cell, and every
operation comes to every value that it goes with. A history does the operations of its cell in some
order, and two more. `--hypothesis-profile=search` draws many. `make test` has the cells in which each index
meets each storage, and a few of those at the end (`SHORT_CELLS`).
"""
MEANINGS = {
    "index": "`log`: bloom with an index in the log files; `bucket` has 2 buckets",
    "storage": "COPY_ON_WRITE, or MERGE_ON_READ with log blocks of a format, or sorted by key (`lsm`)",
    "version": "of the table",
    "order": "by the greater time, or by the later commit",
    "layout": "no partitions, two hive-style URL-encoded columns, a formatted time, text and time (CUSTOM),"
    " one column with keys of two",
    "files": "without meta columns, without partition columns, with change logs in the three modes",
}
NOT_HERE = """
Elsewhere: tables without key columns (`tests/write/test_generated_keys.py`), records that merge column by
column (`test_merging.py`, `test_payloads.py`), inserts that keep keys which are there
(`test_operations.py`), global indexes whose records stay in their partition
(`tests/index/test_contract.py`), late rows beside log blocks with some of the columns
(`test_partial.py`).
"""
BARE = f"""## Tables without the column `_hoodie_is_deleted`: {len(BARE_CELLS)}

There updates, merges and partial upserts write log blocks with the columns that they set alone, and every
history has some, which the suite makes sure of. Of two dimensions any two of these values come together.
"""
FORMATS = f"""## Base files in other formats: {len(FORMAT_CELLS)}

ORC and Lance, in COPY_ON_WRITE tables (`cow`), in MERGE_ON_READ ones, and sorted by key (`lsm`); native log
files have the format of base files. `make test` has one cell of each storage.
"""


def catalogue() -> str:
    """Return the text of the page."""
    return "\n".join(
        [
            INTRODUCTION,
            "| dimension | values | |",
            "|---|---|---|",
            *(f"| {name} | {', '.join(values)} | {MEANINGS[name]} |" for name, values in DIMENSIONS.items()),
            f"| operation | {', '.join(OPERATIONS)} | |",
            "",
            "## What does not come together",
            "",
            "Refused with an error that says so, before anything is written (`test_refusals.py` tries each):",
            "",
            *map(_line, (*NO_TABLES, *NO_OPERATIONS)),
            NOT_HERE,
            f"## Cells: {len(CELLS)}, {sum(cell in SPARK_CELLS for cell in CELLS)} of them on Spark too",
            "",
            *_table(CELLS),
            BARE,
            *(f"- {name}: {', '.join(values)}" for name, values in BARE_DIMENSIONS.items()),
            "",
            *_table(BARE_CELLS),
            FORMATS,
            *(f"- {name}: {', '.join(values)}" for name, values in FORMAT_DIMENSIONS.items()),
            "",
            *_table(FORMAT_CELLS),
        ]
    )


def _table(cells: list[Cell]) -> list[str]:
    return [
        f"| {' | '.join(DIMENSIONS)} | operations | Spark |",
        f"|{'---|' * (len(DIMENSIONS) + 2)}",
        *(
            f"| {' | '.join(vars(cell.kind).values())} | {', '.join(cell.operations)}"
            f" | {'yes' if cell in SPARK_CELLS else ''} |"
            for cell in cells
        ),
        "",
    ]


def _line(refusal: Refusal) -> str:
    return f"- {refusal.what}: {refusal.why}"


if __name__ == "__main__":
    README.write_text(catalogue())
