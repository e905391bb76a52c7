"""The scripts that users of Hudi could have written, which run on both, and where the two differ.

`python -m tests.interop.scripts_compared > docs/reference/scripts.md` writes the page of the documentation.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests/scripts"
PAGE: Final = ROOT / "docs/reference/scripts.md"
SHORT: Final = ("dms", "quick_start_sql")
"""Those of the short run, which call much in little time."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a script shows other rows on drawstring than on Hudi.

    Attributes:
        script: its name.
        steps: names of its steps that differ.
        hudi, drawstring: what each shows there.
        reason: why.
    """

    script: str
    steps: tuple[str, ...]
    hudi: str
    drawstring: str
    reason: str


DIFFERENCES: Final = (
    Difference(
        "compaction",
        ("run",),
        "`CALL run_compaction(op => 'execute')` runs the compaction and returns no row.",
        "It returns the compaction that it ran.",
        "The columns of the procedure describe what it ran.",
    ),
    Difference(
        "compaction",
        ("plans after two commits",),
        "`CALL run_compaction` plans nothing before `hoodie.compact.inline.max.delta.commits` (5) commits.",
        "It plans a compaction.",
        "The number says when a write compacts by itself; a compaction that is asked for is planned.",
    ),
    Difference(
        "data_skipping",
        ("COPY_ON_WRITE word LIKE 'w07%'", "MERGE_ON_READ word LIKE 'w07%'"),
        "With statistics of columns `LIKE 'w07%'` loses files whose greatest value begins with another text.",
        "All rows that match are found.",
        "What is skipped must not change the result.",
    ),
    Difference(
        "delete_partitions",
        ("partitions",),
        "`SHOW PARTITIONS` lists partitions whose rows a `DELETE` deleted.",
        "It does not.",
        "A `DELETE` of whole partitions replaces their files and reads nothing.",
    ),
    Difference(
        "merge",
        (
            "cow of its own rows",
            "cow first clause that matches",
            "mor of its own rows",
            "mor first clause that matches",
        ),
        "A row that meets `WHEN MATCHED AND ... THEN DELETE` is changed by a later `THEN UPDATE`.",
        "It is deleted.",
        "The first clause that matches counts, as in Spark's SQL; Hudi looks at `DELETE` last.",
    ),
    Difference(
        "merge",
        ("cow by a source without the partition", "mor by a source without the partition"),
        "A source that lacks the partition column matches no row, and nothing is said.",
        "Rows match by the condition.",
        "The condition of `ON` says which rows match, as in Spark's SQL.",
    ),
    Difference(
        "merge_casts",
        ("mor whole numbers", "mor texts that are cast", "mor expressions"),
        "A MERGE that sets a DOUBLE of a MERGE_ON_READ table to an INT of the source stores a broken row.",
        "The value is cast to the type of the column.",
        "No statement may damage a row.",
    ),
    Difference(
        "merge_clauses",
        ("mor of groups",),
        "`WHEN MATCHED AND t.n > 6`, on a column of a MERGE_ON_READ table, matches no row where some columns"
        " are set.",
        "It matches the rows with that value.",
        "The condition says which rows are changed.",
    ),
    Difference(
        "merge_without_keys",
        ("deleted", "changed"),
        "`WHEN MATCHED THEN DELETE` deletes nothing in a table that generates its keys.",
        "It deletes the rows that match.",
        "A statement does what it says.",
    ),
)

HEAD: Final = """\
# Scripts on both

These PySpark scripts call what users of Hudi call. `make interop` runs each of them, unchanged, on drawstring
and on Apache Hudi 1.2.0, and compares the rows that it shows at its steps. All rows are equal, except
where the table below says so. The scripts are in `tests/scripts`. This page is generated.

| Script | What it does | Steps that differ |
|---|---|---|
"""
DIFFERING: Final = """
## Where they differ

| Script | Hudi 1.2.0 | drawstring | Why |
|---|---|---|---|
"""


def scripts() -> list[Path]:
    """Return the files of the scripts, sorted by name."""
    return sorted(FOLDER.glob("*.py"))


def expected() -> set[tuple[str, str]]:
    """Return the steps that are known to differ, by script and name."""
    return {(each.script, step) for each in DIFFERENCES for step in each.steps}


def page() -> str:
    """Return the page of the documentation."""
    rows = "".join(f"| `{each.stem}` | {_purpose(each)} | {_count(each.stem)} |\n" for each in scripts())
    told = "".join(
        f"| `{each.script}` | {each.hudi} | {each.drawstring} | {each.reason} |\n" for each in DIFFERENCES
    )
    return HEAD + rows + DIFFERING + told


def _purpose(script: Path) -> str:
    """Return the first line of a script, without its full stop."""
    return (ast.get_docstring(ast.parse(script.read_text())) or "").splitlines()[0].rstrip(".")


def _count(script: str) -> str:
    return str(sum(len(each.steps) for each in DIFFERENCES if each.script == script) or "")


if __name__ == "__main__":
    sys.stdout.write(page())
