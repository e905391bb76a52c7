"""The golden tables: where they are, and what was read from them."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

import drawstring
from drawstring.config.table_config import TableConfig
from drawstring.query.cdc import changes_scan
from drawstring.query.incremental import RangeSpec, incremental_scan
from drawstring.query.planner import snapshot_scan
from drawstring.query.scan import Scan
from drawstring.query.table_state import TableFacts
from drawstring.schema.fields import META_COLUMNS
from drawstring.storage.local import LocalStorage
from drawstring.timeline.properties import load_config
from tests.support.golden_rows import Row

TABLES = Path(__file__).parents[1] / "golden/tables"
NAMES = sorted(path.stem for path in TABLES.glob("*.zip"))


def of_each_kind(names: list[str]) -> set[str]:
    """Return one table of each kind: the kinds take turns with the versions that they are there in."""
    versions: dict[str, list[str]] = {}
    for name in names:
        versions.setdefault(name.partition("_")[2], []).append(name)
    return {tables[number % len(tables)] for number, tables in enumerate(versions.values())}


def unpack(name: str, folder: Path) -> Path:
    """Unpack a golden table into a folder; return its root."""
    with zipfile.ZipFile(TABLES / f"{name}.zip") as packed:
        packed.extractall(folder)
    return folder / name


ENCODED_IN_INCREMENTAL = {"v6_cow_urlencode": "city", "v9_cow_urlencode": "city"}
"""Real Hudi's incremental query leaves the partition value URL-encoded, unlike its snapshot query and
unlike the data files; drawstring returns the value itself in both."""

NULL_IN_INCREMENTAL = {"v6_mor_sql_timestamp": "part", "v9_cow_sql_timestamp": "part"}
"""Real Hudi's incremental query finds no timestamp in the name of a folder that its SQL writes named and
returns null, unlike its snapshot query; drawstring returns what the data files have."""


CLEANED_BY_VERSIONS = frozenset(
    {
        ("v6_mor_clean", "20261121093158695"),
        ("v9_mor_clean", "20261121092244079"),
        ("v9_mor_clean", "20261121092245897"),
    }
)
"""Times of which a clean by file versions took slices. Real Hudi shows the rows that are left, if any;
drawstring refuses."""


IMAGES = ("before", "after")
"""Columns of change queries that hold records as JSON texts, which are compared as texts."""


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
            return self._range(golden["incremental"])
        if self.query == "cdc":
            return [row | {name: _image(row[name]) for name in IMAGES} for row in self._range(golden["cdc"])]
        return list(golden[self.query])

    def _range(self, answers: list[dict[str, Any]]) -> list[Row]:
        return next(
            list(each["rows"]) for each in answers if (each["start"], each["end"]) == (self.start, self.end)
        )

    def scan(self, facts: TableFacts) -> Scan:
        """Run the query."""
        if self.query == "incremental":
            return incremental_scan(facts, RangeSpec(self.start, self.end))
        if self.query == "cdc":
            return changes_scan(facts, RangeSpec(self.start, self.end))
        return snapshot_scan(facts, as_of=self.start or None, read_optimized=self.query == "read_optimized")

    def shown(self, table: pa.Table) -> list[str]:
        """Return the columns that the golden rows have: time travels were kept without meta columns."""
        hidden = META_COLUMNS if self.query == "time_travel" else ()
        return [name for name in table.column_names if name not in hidden]


def wanted(case: Case) -> list[Row]:
    """Return the rows that drawstring is to return: what real Hudi returned, two faults apart."""
    rows = case.rows()
    if case.query != "incremental":
        return rows
    if column := ENCODED_IN_INCREMENTAL.get(case.table):
        return [row | {column: unquote(row[column])} for row in rows]
    if column := NULL_IN_INCREMENTAL.get(case.table):
        assert all(row[column] is None for row in rows)
        return [row | {column: _of_folder(row["_hoodie_partition_path"])} for row in rows]
    return rows


def _of_folder(path: str) -> str | None:
    """Return the timestamp that a folder of real Hudi's SQL writes is named by."""
    text = unquote(path.partition("=")[2])
    return None if text == "__HIVE_DEFAULT_PARTITION__" else f"{text.replace(' ', 'T')}.000000Z"


def _image(text: str | None) -> str | None:
    """Hudi says an absent image by null or, where it comes from a change log, by the text `null`."""
    return None if text == "null" else text


@cache
def expected(table: str) -> dict[str, Any]:
    """Return the golden file of a table."""
    content: dict[str, Any] = json.loads((TABLES / f"{table}.json").read_text())
    return content


WITH_METADATA = [name for name in NAMES if "metadata_table" in expected(name)]
"""Tables with a metadata table."""


def cases_of(table: str) -> list[Case]:
    """Return all queries that were run on a table."""
    golden = expected(table)
    return [
        *(Case(table, query) for query in ("snapshot", "read_optimized") if query in golden),
        *(
            Case(table, "time_travel", start)
            for start in golden.get("time_travel", ())
            if (table, start) not in CLEANED_BY_VERSIONS
        ),
        *(
            Case(table, query, each["start"], each["end"])
            for query in ("incremental", "cdc")
            for each in golden.get(query, ())
        ),
    ]


def chosen(name: str) -> list[Case]:
    """Choose queries on a table: the newest rows and the base files, one on the past, one of changes.

    The past is that of time travel for one table and an increment for the next; which one differs by table.
    """
    number = NAMES.index(name)
    by_query = defaultdict(list)
    for case in cases_of(name):
        by_query[case.query].append(case)
    past = ("time_travel", "incremental")
    if not by_query[past[number % 2]]:
        past = past[::-1]
    kinds = ("snapshot", "read_optimized", past[number % 2], "cdc")
    return [found[number % len(found)] for kind in kinds if (found := by_query[kind])]


def golden_table(name: str, folder: Path) -> drawstring.Table:
    """Unpack a table that real Hudi wrote and open it."""
    return drawstring.open(unpack(name, folder))


def golden_storage(name: str, folder: Path) -> tuple[LocalStorage, TableConfig]:
    """Unpack a table that real Hudi wrote; return its storage and configuration."""
    storage = LocalStorage(str(unpack(name, folder)))
    return storage, load_config(storage)
