"""The golden tables: where they are, and what was read from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from drawstring.query.facts import TableFacts
from drawstring.query.incremental import incremental_scan
from drawstring.query.scan import Scan
from drawstring.query.snapshot import snapshot_scan
from drawstring.schema.meta import META_COLUMNS
from tests.golden.compare import Row

TABLES = Path(__file__).parent / "tables"
NAMES = sorted(path.stem for path in TABLES.glob("*.zip"))

ENCODED_IN_INCREMENTAL = {"v6_cow_urlencode": "city", "v9_cow_urlencode": "city"}
"""Real Hudi's incremental query leaves the partition value URL-encoded, unlike its snapshot query and
unlike the data files; drawstring returns the value itself in both."""


@dataclass(frozen=True, slots=True)
class Case:
    """One query on one table and the rows that real Hudi returned."""

    table: str
    query: str
    start: str = ""
    end: str = ""

    @property
    def name(self) -> str:
        """For the test's id."""
        return " ".join(part for part in (self.query, self.start, self.end) if part)

    def rows(self) -> list[Row]:
        """Return the expected rows."""
        golden = expected(self.table)
        if self.query == "time_travel":
            return list(golden["time_travel"][self.start])
        if self.query == "incremental":
            return next(
                list(each["rows"])
                for each in golden["incremental"]
                if (each["start"], each["end"]) == (self.start, self.end)
            )
        return list(golden[self.query])

    def scan(self, facts: TableFacts) -> Scan:
        """Run the query."""
        if self.query == "incremental":
            return incremental_scan(facts, start=self.start, end=self.end)
        return snapshot_scan(facts, as_of=self.start or None, read_optimized=self.query == "read_optimized")

    def shown(self, table: pa.Table) -> list[str]:
        """Return the columns that the golden rows have: time travels were kept without meta columns."""
        hidden = META_COLUMNS if self.query == "time_travel" else ()
        return [name for name in table.column_names if name not in hidden]


@cache
def expected(table: str) -> dict[str, Any]:
    """Return the golden file of a table."""
    content: dict[str, Any] = json.loads((TABLES / f"{table}.json").read_text())
    return content


def cases_of(table: str) -> list[Case]:
    """Return all queries that were run on a table."""
    golden = expected(table)
    return [
        *(Case(table, query) for query in ("snapshot", "read_optimized") if query in golden),
        *(Case(table, "time_travel", start) for start in golden.get("time_travel", ())),
        *(Case(table, "incremental", each["start"], each["end"]) for each in golden.get("incremental", ())),
    ]
