"""Increments of partial updates: whole rows, as the range left them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError
from drawstring.filegroups import file_slice_reader as reader
from drawstring.model.instant import time_of
from drawstring.table import Table
from tests.support.combinations import others_long
from tests.support.partial_rows import PARTIAL, SCHEMA, filled, rows_with
from tests.support.rows import scanned, sorted_rows
from tests.support.tables import MOR

Row = tuple[Any, ...]
UNTOUCHED = ("b", "rome", 5, 2.0, "n2", [])


def time(result: drawstring.CommitResult) -> str:
    return result.completed or result.instant


def increment(table: Table, start: str, end: str | None = None, **asked: Any) -> list[Row]:
    return sorted_rows(table.incremental(start, end, **{"columns": SCHEMA.names, **asked}).to_arrow())


def newest(table: Table) -> str:
    return max(time_of(each) for each in table.timeline.writes())


def patch(table: Table, names: str, *rows: Row, **options: str) -> str:
    return time(table.upsert(rows_with(names, *rows), options={**PARTIAL, **options}))


@pytest.mark.parametrize(
    ("version", "index", "ordered", "log_format"),
    [(8, "SIMPLE", True, "avro"), (9, "SIMPLE", True, "parquet"), (9, "BUCKET", True, "avro")],
)
def test_each_range_has_the_rows_as_it_left_them(
    version: int, index: str, ordered: bool, log_format: str
) -> None:
    table = filled(MOR, version, index, ordered)
    options = {"hoodie.logfile.data.block.format": log_format}
    start = newest(table)
    first = patch(table, "id city ts fare", ("a", "rome", 6, 10.0), ("c", "pisa", 6, None), **options)
    second = patch(table, "id city ts note", ("a", "rome", 7, "m1"), **options)
    third = patch(table, "id city ts stops", ("a", "rome", 8, None), **options)
    pisa = ("c", "pisa", 6, None, "n3", None)
    assert increment(table, start, first) == [("a", "rome", 6, 10.0, "n1", ["x"]), pisa]
    assert increment(table, first, second) == [("a", "rome", 7, 10.0, "m1", ["x"])]
    assert increment(table, start, second) == [("a", "rome", 7, 10.0, "m1", ["x"]), pisa]
    assert increment(table, second) == increment(table, second, third) == [("a", "rome", 8, 10.0, "m1", None)]
    assert increment(table, "earliest") == [("a", "rome", 8, 10.0, "m1", None), UNTOUCHED, pisa]


def test_rows_that_were_inserted_or_deleted_in_the_range(tmp_path: Path) -> None:
    table = filled(MOR, index="BUCKET")
    start = newest(table)
    table.upsert(rows_with(" ".join(SCHEMA.names), ("d", "rome", 5, 4.0, "n4", ["y"])))
    patch(table, "id city ts fare", ("d", "rome", 6, 40.0), ("a", "rome", 6, 10.0), ("e", "rome", 6, 50.0))
    table.delete(where="id = 'a'")
    table.upsert(rows_with(" ".join(SCHEMA.names), ("b", "rome", 6, 20.0, "m2", None)))
    assert increment(table, start) == [
        ("b", "rome", 6, 20.0, "m2", None),
        ("d", "rome", 6, 40.0, "n4", ["y"]),
        ("e", "rome", 6, 50.0, None, None),
    ]
    assert increment(table, start, columns=["note"], where="fare > 20 and stops is not null") == [("n4",)]


def test_an_update_that_comes_late_shows_what_it_left() -> None:
    table = filled(MOR)
    first = patch(table, "id city ts fare", ("a", "rome", 7, 10.0))
    second = patch(table, "id city ts note", ("a", "rome", 6, "late"), ("b", "rome", 4, "late"))
    assert increment(table, first, second) == [("a", "rome", 7, 10.0, "late", ["x"]), UNTOUCHED]
    assert scanned(table, SCHEMA.names)[:2] == [
        ("a", "rome", 7, 10.0, "late", ["x"]),
        UNTOUCHED,
    ]


def test_ranges_before_on_and_after_a_compaction() -> None:
    table = filled(MOR)
    start = newest(table)
    first = patch(table, "id city ts fare", ("a", "rome", 6, 10.0))
    table.services.compact()
    second = patch(table, "id city ts note", ("a", "rome", 7, "m1"))
    table.services.compact()
    third = patch(table, "id city ts fare", ("a", "rome", 8, 30.0))
    assert increment(table, start, first) == [("a", "rome", 6, 10.0, "n1", ["x"])]
    assert increment(table, start, second) == [("a", "rome", 7, 10.0, "m1", ["x"])]
    assert increment(table, second, third) == increment(table, start) == [("a", "rome", 8, 30.0, "m1", ["x"])]


def test_following_a_table_into_another_makes_a_copy() -> None:
    table = filled(MOR)
    copy = filled(MOR)
    position = next(iter(table.follow(poll_seconds=None))).position
    for number, fare in enumerate((10.0, 11.0, 12.0)):
        patch(table, "id city ts fare", ("a", "rome", 6 + number, fare))
        for batch in table.follow(position, columns=SCHEMA.names, poll_seconds=None):
            copy.upsert(batch.rows)
            position = batch.position
    assert copy.scan(SCHEMA.names).to_arrow().sort_by("id") == table.scan(SCHEMA.names).to_arrow().sort_by(
        "id"
    )


@pytest.mark.parametrize("seed", others_long(range(6), range(3)))
def test_every_range_of_a_random_history_has_its_rows(seed: int) -> None:
    chance = random.Random(seed)
    table = filled(MOR, chance.choice((8, 9)), chance.choice(("SIMPLE", "BUCKET")), chance.random() < 0.5)
    held = {row["id"]: row for row in table.scan(SCHEMA.names).to_arrow().to_pylist()}
    moments = [(newest(table), dict(held), frozenset(held))]
    for ts in range(6, 16):
        row = {"id": chance.choice("abcde"), "city": "rome", "ts": ts, "fare": float(ts), "note": f"n{ts}"}
        row["city"] = "pisa" if row["id"] == "c" else "rome"
        verb = chance.choice(("patch", "patch", "patch", "upsert", "delete", "compact"))
        if verb == "compact":
            table.services.compact()
            continue
        if verb == "delete" and row["id"] in held:
            del held[row["id"]]
            done = time(table.delete(where=f"id = '{row['id']}'"))
        else:
            names = ["id", "city", "ts", chance.choice(("fare", "note"))]
            if verb != "patch" or row["id"] not in held:
                names = SCHEMA.names
            given = {name: row.get(name) for name in names}
            done = patch(table, " ".join(names), tuple(given.values()))
            held[row["id"]] = held.get(row["id"], {}) | given
        moments.append((done, dict(held), frozenset(row["id"])))
    for first, (start, *_) in enumerate(moments):
        for last in range(first + 1, len(moments)):
            end, state, _ = moments[last]
            touched = frozenset().union(*(keys for *_, keys in moments[first + 1 : last + 1]))
            expected = sorted(tuple(state[key].values()) for key in touched & state.keys())
            assert increment(table, start, end) == expected


def test_updates_of_whole_rows_read_the_files_of_the_range_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_rows_of_keys", lambda *_: pytest.fail("the whole slice is read"))
    table = filled(MOR)
    start = newest(table)
    table.upsert(rows_with(" ".join(SCHEMA.names), ("a", "rome", 6, 10.0, "m1", None)))
    assert increment(table, start) == [("a", "rome", 6, 10.0, "m1", None)]


def test_a_base_file_that_is_lost_is_an_error(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64())])
    table = drawstring.create(str(tmp_path / "rides"), schema, record_key="id", ordering="ts", table_type=MOR)
    start = time(table.upsert(pa.table({"id": ["a"], "ts": [1], "fare": [9.5]}, schema)))
    table.upsert(pa.table({"id": ["a"], "ts": [2]}), options=PARTIAL)
    next((tmp_path / "rides").glob("*.parquet")).unlink()
    with pytest.raises(CorruptTableError, match="missing"):
        table.incremental(start).to_arrow()
