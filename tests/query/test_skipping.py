"""Skipping by the metadata table: fewer files, the same rows."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.config.table_config import MergeMode
from drawstring.filegroups.read_task import InstantRange
from drawstring.metadata.file_listing import knows_later_writes
from drawstring.metadata.table import open_metadata_table
from drawstring.query.partition_pruning import Candidate, Partition
from drawstring.query.planner import query_of
from drawstring.query.scan import Scan
from drawstring.query.table_state import facts_of
from drawstring.table import Table
from drawstring.testing import context_of, with_limits
from tests.support.merge_tables import PARTIAL, set_properties
from tests.support.rows import rides
from tests.support.statistics import add_statistics
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
        ("riders", pa.int32()),
        ("day", pa.date32()),
        ("note", pa.string()),
    ]
)
START_MS = 1_700_000_000_000
CITIES = ("lima", "oslo", "rome")
NOTES = ("", "a", "b\ufffd", "c\U0001f600", "ç", "d" * 3000, None)
NAN = float("nan")


def by_metadata(table: Table, *, skips_data: bool = True) -> Table:
    """Return the same table, whose queries use the metadata table."""
    return Table(replace(context_of(table), uses_metadata=True, skips_data=skips_data))


def random_rows(chance: random.Random, first: int, count: int, ts: int) -> pa.Table:
    """Return rows whose values lie near each other, so that files differ in them."""
    near = chance.randrange(0, 1000, 50)

    def number() -> int | None:
        return None if chance.random() < 0.1 else near + chance.randrange(50)

    rows = [
        {
            "id": f"k{(first + at) % 90:03}",
            "city": CITIES[(first + at) % 90 % 3],
            "ts": ts + chance.randrange(3),
            "fare": chance.choice([0.0, -0.0, NAN, None, float("inf"), near / 2, near / 3, near / 3]),
            "riders": number(),
            "day": date(2024, 1, 1) + timedelta(days=near + chance.randrange(5)),
            "note": chance.choice(NOTES),
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def random_table(chance: random.Random, table_type: str, version: int, **how: Any) -> Table:
    """Create a table with a random history and statistics of its files."""
    made = create(SCHEMA, table_type=table_type, version=version, **how)
    table = Table(replace(context_of(made), clock=SteppingClock(START_MS), uses_metadata=True))
    options = {**WITHOUT_SERVICES, "hoodie.parquet.small.file.limit": "0"}
    for number in range(chance.randrange(3, 7)):
        rows = random_rows(chance, chance.randrange(90), chance.randrange(1, 25), number)
        match chance.choice(["upsert", "upsert", "upsert", "insert", "delete", "compact", "cluster"]):
            case "delete":
                table.delete(rows.select(["id", "city", "ts"]), options=options)
            case "insert":
                table.insert(random_rows(chance, 90 * number, 8, number), options=options)
            case "compact" if table_type == MOR:
                table.services.compact(options=options)
            case "cluster":
                table.services.cluster(options=options)
            case _:
                table.upsert(rows, options=options)
    table.upsert(random_rows(chance, chance.randrange(90), 5, 9), options=options)
    add_statistics(table)
    return table


def random_term(chance: random.Random) -> str:
    number = chance.choice([0, 25, 130, 400, 777, 1005])
    compare = chance.choice(["=", "<", "<=", ">", ">=", "<>"])
    note = chance.choice(["a", "b\ufffd", "c\U0001f600", "b", "z", "", "d" * 3000])
    return chance.choice(
        [
            f"riders {compare} {number}",
            f"riders IN ({number}, {number + 7}, {number + 13})",
            f"fare {compare} {number / 3}",
            f"fare {compare} 0.0",
            f"fare {compare} -0.0",
            "fare > 1e300",
            f"day {compare} '{date(2024, 1, 1) + timedelta(days=number)}'",
            f"note {compare} '{note}'",
            f"riders BETWEEN {number} AND {number + 40}",
            f"{chance.choice(['riders', 'fare', 'note'])} IS {chance.choice(['', 'NOT '])}NULL",
            f"city {compare} '{chance.choice(CITIES)}'",
            f"id = 'k{chance.randrange(90):03}'",
            f"ts > {chance.randrange(12)}",
        ]
    )


def random_condition(chance: random.Random) -> str:
    terms = [random_term(chance) for _ in range(chance.randrange(1, 4))]
    joined = terms[0]
    for term in terms[1:]:
        joined = f"({joined} {chance.choice(['AND', 'AND', 'OR'])} {term})"
    return f"NOT ({joined})" if chance.random() < 0.15 else joined


def texts(rows: pa.Table) -> list[str]:
    """Return rows as sorted texts, in which NaN equals itself."""
    return sorted(map(str, rows.to_pylist()))


def read_by(scan: Scan) -> tuple[Any, ...]:
    """Return what a query reads and what it skips."""
    return [(task.file_slice, task.partition_values) for task in scan.tasks()], scan.explain()


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 8), (MOR, 9)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 20))])
def test_skipping_changes_no_rows_of_any_query(
    table_type: str, version: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{seed}-{table_type}-{version}")
    table = random_table(chance, table_type, version)
    whole = by_metadata(table, skips_data=False)
    writes = table.timeline.writes()
    skipped = 0
    cases = [(random_condition(chance), chance.choice(writes)) for _ in range(8)]
    for where, middle in [("day < '2020-01-01'", writes[0]), *cases]:
        queries: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("scan", (), {}),
            ("scan", (), {"as_of": middle.requested}),
            ("incremental", (middle.completed,), {}),
            *([("scan", (), {"read_optimized": True})] if table_type == MOR else []),
        ]
        for name, arguments, how in queries:
            found = getattr(table, name)(*arguments, where=where, **how)
            expected = getattr(whole, name)(*arguments, where=where, **how)
            assert texts(found.to_arrow()) == texts(expected.to_arrow()), (name, how, where)
            skipped += len(expected.tasks()) - len(found.tasks())
            with with_limits(sliced_files_min=0):
                in_columns = getattr(table, name)(*arguments, where=where, **how)
                assert read_by(in_columns) == read_by(found), (name, how, where)
    assert skipped > 0


PAIR = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("ts", pa.int64()),
        ("low", pa.int64()),
        ("high", pa.int64()),
    ]
)
"""Two columns that partial updates set one after the other."""


@pytest.mark.parametrize(
    ("mode", "expected"), [({PARTIAL: "IGNORE_DEFAULTS"}, [{"low": 5, "high": 95}]), ({}, [])]
)
def test_a_slice_is_read_if_its_files_match_only_together_and_versions_are_combined(
    mode: dict[str, str], expected: list[dict[str, int]], tmp_path: Path
) -> None:
    create(PAIR, tmp_path / "t", table_type=MOR, partition_by=())
    table = by_metadata(set_properties(tmp_path / "t", mode))
    for row in ({"id": "a", "ts": 1, "low": 5, "high": 10}, {"id": "a", "ts": 2, "low": None, "high": 95}):
        table.upsert(pa.Table.from_pylist([row], PAIR), options=WITHOUT_SERVICES)
    add_statistics(table)
    found = table.scan(["low", "high"], where="low < 10 AND high > 90").to_arrow()
    assert found.to_pylist() == expected
    assert table.scan(where="low < 10 AND high > 95").tasks() == []


def test_slices_with_log_files_are_read_if_a_merger_of_the_user_decides(tmp_path: Path) -> None:
    table = random_table(random.Random(1), MOR, 9)
    skipping = query_of(
        facts_of(context_of(table)), None, "riders > 10000", InstantRange.of(table.timeline)
    ).skipping()
    assert skipping is not None
    slices = [Candidate(Partition(each.partition), each) for each in table.inspect.files()]
    assert not skipping.slices(slices).any()
    custom = replace(skipping, config=replace(skipping.config, merge_mode=MergeMode.CUSTOM))
    assert custom.slices(slices).tolist() == [bool(each.logs) for each in slices]
    assert any(each.logs for each in slices)


def test_versions_that_win_as_a_whole_are_ruled_out_file_by_file() -> None:
    table = by_metadata(create(PAIR, table_type=MOR, partition_by=()))
    for row in ({"id": "a", "ts": 1, "low": 5, "high": 10}, {"id": "a", "ts": 2, "low": 50, "high": 95}):
        table.upsert(pa.Table.from_pylist([row], PAIR), options=WITHOUT_SERVICES)
    add_statistics(table)
    where = "low < 10 AND high > 90"
    assert len(table.scan(where=where).tasks()) == 1  # a log block may have a part of the columns
    assert len(table.scan(where="low IS NULL").tasks()) == 1  # which leaves the others null
    skipping = query_of(facts_of(context_of(table)), None, where, InstantRange.of(table.timeline)).skipping()
    assert skipping is not None
    whole = replace(skipping, config=replace(skipping.config, version=6))
    slices = [Candidate(Partition(""), each) for each in table.inspect.files()]
    assert whole.slices(slices).tolist() == [False]


def test_nothing_is_skipped_without_the_metadata_table_or_by_request() -> None:
    table = filled_with_statistics()
    where = "fare < 0"
    assert table.scan(where=where).tasks() == []
    assert len(by_metadata(table, skips_data=False).scan(where=where).tasks()) == 2
    assert len(Table(replace(context_of(table), uses_metadata=False)).scan(where=where).tasks()) == 2


def test_statistics_of_partitions_that_hudi_does_not_keep_are_not_asked() -> None:
    table = filled_with_statistics(properties={"hoodie.table.base.file.format": "orc"})
    steps = table.scan(where="ts > 5").explain().steps
    assert [(step.unit, step.by, step.skipped) for step in steps] == [
        ("partitions", "listed", 0),
        ("file slices", "listed", 0),
        ("file slices", "column_stats", 2),
    ]


def filled_with_statistics(**how: Any) -> Table:
    """Create a table with two partitions and statistics."""
    table = by_metadata(create(**how))
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 7.0)))
    add_statistics(table)
    return table


def test_what_is_skipped_and_why_is_explained() -> None:
    table = filled_with_statistics()
    explained = table.scan(where="fare < 5 AND city <> 'lima'").explain()
    assert [(step.unit, step.by, step.skipped, step.kept) for step in explained.steps] == [
        ("partitions", "listed", 0, 2),
        ("file slices", "listed", 0, 2),
        ("file slices", "column_stats", 1, 1),
    ]
    assert explained.to_dict()["bytes_skipped"] > 0
    assert "1 of 2 file slices" in str(explained)
    assert "fare &lt; 5" in explained._repr_html_()
    by_partition = table.scan(where="ts > 5").explain()
    assert ("partitions", "partition_stats", 2, 0) in set(by_partition.rows())


def test_indexes_of_the_latest_rows_are_not_used_by_a_query_that_does_not_see_a_later_write() -> None:
    table = by_metadata(create())
    table.upsert(rides(("a", "rome", 1, 1.0)))
    seen = table.timeline
    table.upsert(rides(("b", "rome", 9, 1.0)))
    context = context_of(table)
    for timeline, expected in ((seen, True), (table.timeline, False)):
        opened = open_metadata_table(context.storage, table.config, timeline, context.clock)
        assert knows_later_writes(opened, timeline) is expected
