"""The golden tables: where they are, what was read from them, and what cannot be read yet."""

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

PARTIAL_UPDATES = "partial updates"
SCHEMA_ON_READ = "changed on read"

UNSUPPORTED: dict[str, str] = {
    "v6_mor_payload_nondefaults": PARTIAL_UPDATES,
    "v6_mor_payload_partial": PARTIAL_UPDATES,
    "v8_mor_merge_partial": PARTIAL_UPDATES,
    "v8_mor_payload_partial": PARTIAL_UPDATES,
    "v9_mor_merge_partial": PARTIAL_UPDATES,
    "v9_mor_payload_nondefaults": PARTIAL_UPDATES,
    "v9_mor_payload_partial": PARTIAL_UPDATES,
    "v8_evo_on_read_mor": SCHEMA_ON_READ,
    "v9_evo_on_read_mor": SCHEMA_ON_READ,
}
"""Tables that need a later feature, and words of the error that says so."""

SUPPORTED_PARTS = {
    "v6_mor_payload_nondefaults": ["read_optimized"],
    "v6_mor_payload_partial": ["read_optimized"],
    "v8_mor_merge_partial": ["read_optimized", "time_travel 20261121093755717"],
    "v8_mor_payload_partial": ["read_optimized", "time_travel 20261121093745496"],
    "v9_mor_merge_partial": ["read_optimized", "time_travel 20261121092521809"],
    "v9_mor_payload_nondefaults": [
        "read_optimized", "time_travel 20261121091818738", "incremental 000 20261121091819311",
    ],
    "v9_mor_payload_partial": ["read_optimized", "time_travel 20261121091812719"],
    "v8_evo_on_read_mor": [
        "time_travel 20261121094302285", "incremental 20261121094304982 20261121094305218",
    ],
    "v9_evo_on_read_mor": [
        "time_travel 20261121092859881", "incremental 20261121092902218 20261121092902447",
    ],
}  # fmt: skip
"""Queries on these tables that do not need it."""

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
        """For the test's id and the lists above."""
        return " ".join(part for part in (self.query, self.start, self.end) if part)

    @property
    def unsupported(self) -> str | None:
        """Words of the error that the query ends in, None when it has to work."""
        return None if self.name in SUPPORTED_PARTS.get(self.table, ()) else UNSUPPORTED.get(self.table)

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
