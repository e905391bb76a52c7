"""Skipping by the metadata tables that real Hudi wrote: the same rows from fewer files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import drawstring
from drawstring.query.scan import Scan
from tests.support.combinations import others_long
from tests.support.golden import unpack

TABLES = (
    *(f"v{version}_mdt_{kind}" for version in (6, 8, 9) for kind in ("cow", "compacted")),
    "v9_idx_record_level_partitioned",
)
LISTED = {"hoodie.metadata.enable": "false"}
CONDITIONS = (
    "id = 3",
    "id IN (2, 14)",
    "price < 5",
    "price > 20 AND name > 'name-5'",
    "name = 'name-9-v4' OR name = 'name-12-v5'",
    "name IS NULL",
    "ts < 1002 AND price < 3",
    "ts > 1003",
    "_hoodie_record_key = 'id:3' OR _hoodie_record_key = '3'",
    "NOT (ts >= 1000)",
)


HOWS = ("read_optimized", "as_of", "incremental")


@pytest.mark.parametrize("name", others_long(TABLES, TABLES[1::2] + TABLES[-1:]))
def test_fewer_files_have_the_same_rows(name: str, tmp_path: Path) -> None:
    first = TABLES.index(name)
    # Every condition meets every way to read it, on some tables.
    cases = {where: (HOWS[(first + number) % len(HOWS)],) for number, where in enumerate(CONDITIONS)}
    check_queries(unpack(name, tmp_path), cases)


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_fewer_files_have_the_same_rows_however_they_are_read(name: str, tmp_path: Path) -> None:
    check_queries(unpack(name, tmp_path), dict.fromkeys(CONDITIONS, HOWS))


def check_queries(root: Path, cases: Mapping[str, Sequence[str]]) -> None:
    table = drawstring.open(root)
    whole = drawstring.open(root, options=LISTED)
    writes = table.timeline.writes()
    start = writes[0].completed or writes[0].requested
    given = {"read_optimized": {"read_optimized": True}, "as_of": {"as_of": writes[-1].requested}}
    skipped = 0
    for where, hows in cases.items():
        for how in ({}, *(given[each] for each in hows if each in given)):
            found, expected = table.scan(where=where, **how), whole.scan(where=where, **how)
            assert rows(found) == rows(expected), (where, how)
            skipped += len(expected.tasks()) - len(found.tasks())
        if "incremental" in hows:
            changed = table.incremental(start, where=where)
            assert rows(changed) == rows(whole.incremental(start, where=where)), where
    assert skipped >= len(CONDITIONS)


def rows(scan: Scan) -> list[str]:
    """Return rows as sorted texts."""
    return sorted(map(str, scan.to_arrow().to_pylist()))


@pytest.mark.parametrize(
    ("name", "where", "index", "kept"),
    [
        ("v6_mdt_cow", "id = 3", "bloom_filters", 1),
        ("v9_mdt_cow", "id = 3", "bloom_filters", 1),
        ("v8_idx_record_level", "id = 3", "record_index", 1),
        ("v9_idx_record_level", "id IN (3, 4)", "record_index", 2),
        ("v6_idx_record_level", "id = 3", "record_index", 1),
        ("v8_idx_secondary", "name = 'name-3-v1'", "secondary_index_idx_sec", 1),
        ("v9_idx_secondary", "name = 'name-3-v1' OR name = 'name-5-v1'", "secondary_index_idx_sec", 1),
        ("v9_idx_secondary", "name = 'name-3-v9'", "secondary_index_idx_sec", 0),
    ],
)
def test_keys_and_values_are_looked_up(name: str, where: str, index: str, kept: int, tmp_path: Path) -> None:
    root = unpack(name, tmp_path)
    table = drawstring.open(root)
    scan = table.scan(where=where)
    assert rows(scan) == rows(drawstring.open(root, options=LISTED).scan(where=where))
    steps = {step.by: step for step in scan.explain().steps}
    assert steps[index].kept == kept
    first = table.timeline.writes()[0].requested
    then = table.scan(where=where, as_of=first).explain().steps
    assert index == "bloom_filters" or index not in {step.by for step in then}
