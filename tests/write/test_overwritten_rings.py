"""Partitions of a table with consistent hashing are overwritten, and go on with other file groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, UnsupportedError
from drawstring.index.existing_writes import FOLDERS
from drawstring.model.instant import time_of
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.consistent_buckets import PISA, ROMANS, prefixes, table_with_two_rings
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans, settled_rows
from tests.support.interrupted import in_no_time
from tests.support.rows import held, rides
from tests.support.tables import versions

NEW_ROMANS = [("k1", "rome", 0, 5.0), ("new", "rome", 1, 1.0)]
OSLO = ("o", "oslo", 1, 1.0)
Overwrite = Callable[[Table], Any]
OVERWRITES: dict[str, tuple[Overwrite, list[Any]]] = {
    "partitions": (lambda table: table.insert_overwrite(rides(*NEW_ROMANS, OSLO)), [*NEW_ROMANS, OSLO, PISA]),
    "table": (lambda table: table.insert_overwrite_table(rides(*NEW_ROMANS, OSLO)), [*NEW_ROMANS, OSLO]),
    "nothing": (lambda table: table.insert_overwrite_table(rides()), []),
}
overwrites = pytest.mark.parametrize("name", OVERWRITES)


@versions
@overwrites
def test_the_table_goes_on_after_an_overwrite(version: int, name: str) -> None:
    table = table_with_two_rings(version)
    loaded, before = table.timeline.writes()[-1], prefixes(table, "rome")
    overwrite, after = OVERWRITES[name]
    overwrite(table)
    overwritten = table.timeline.writes()[-1]
    assert held(table) == sorted(after)
    rows = {row[0]: row for row in after}
    for ts in (7, 8):
        upserted = [
            ("k1", "rome", ts, 7.0),
            ("k2", "rome", ts, 7.0),
            ("p", "pisa", ts, 7.0),
            ("o", "oslo", ts, 7.0),
        ]
        table.upsert(rides(*upserted))
        rows |= {row[0]: row for row in upserted}
        assert held(table) == sorted(rows.values())
    table.services.compact()
    assert held(table) == sorted(rows.values())
    since = table.incremental(time_of(overwritten), columns=["id"]).to_arrow()
    assert sorted(since["id"].to_pylist()) == ["k1", "k2", "o", "p"]
    assert held(table, as_of=loaded.requested) == sorted([*ROMANS, PISA])
    assert not set(before) & set(prefixes(table, "rome"))
    assert not table.services.validate().findings


def test_partitions_are_overwritten_again_and_again_dropped_and_restored() -> None:
    table = table_with_two_rings(9)
    table.savepoints.create()
    first = prefixes(table, "rome")
    known = {first}
    for ts in (1, 2):
        table.insert_overwrite(rides(*NEW_ROMANS))
        known.add(prefixes(table, "rome"))
        table.upsert(rides(("k1", "rome", ts, 9.0)))
        assert held(table) == sorted([("k1", "rome", ts, 9.0), NEW_ROMANS[1], PISA])
        table.delete_partition("rome")
        known.add(prefixes(table, "rome"))
    assert len(known) == 5
    table.insert_overwrite(rides(*NEW_ROMANS))
    table.savepoints.restore(table.timeline.writes()[0].requested)
    assert prefixes(table, "rome") == first
    table.upsert(rides(("k1", "rome", 3, 3.0)))
    assert ("k1", "rome", 3, 3.0) in held(table) and len(held(table)) == 10


@pytest.mark.parametrize("version", [6, 9])
@overwrites
@pytest.mark.scaled
def test_an_overwrite_that_dies_at_any_step_happens_or_does_not(version: int, name: str) -> None:
    overwrite, after = OVERWRITES[name]
    start = Prepared.of(table_with_two_rings(version), after=sorted(after))
    newer = [("k1", "rome", 7, 7.0), ("o", "oslo", 7, 7.0), ("p", "pisa", 7, 7.0)]
    for storage, step in start.deaths(overwrite):
        table = opened(storage, START_MS + HOUR_MS)
        found = held(table)
        assert found in (start.before, start.after), step
        found = settled_rows(storage, start, found)
        table.upsert(rides(*newer))
        others = [row for row in found if row[0] not in ("k1", "o", "p")]
        assert held(table) == sorted([*others, *newer]), step
        assert (orphans(table), leftovers(table)) == ([], []), step


def test_rings_of_archived_overwrites_go() -> None:
    table = table_with_two_rings(9)
    few = {
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": "2",
    }
    counts = []
    for ts in range(2, 16):
        table.insert_overwrite(rides(("k1", "rome", ts, 1.0)), options=few)
        names = [each.name for each in context_of(table).storage.list_tree(FOLDERS[0]) if "rome" in each.path]
        counts.append(len(names))
    assert max(counts) < 16
    table.upsert(rides(("k1", "rome", 20, 2.0), ("k2", "rome", 20, 2.0)))
    assert held(table) == [("k1", "rome", 20, 2.0), ("k2", "rome", 20, 2.0), PISA]


@pytest.mark.parametrize("rows", [ROMANS, []], ids=["overwritten", "dropped"])
def test_a_partition_whose_ring_another_engine_left_as_it_was_is_mended_by_overwriting_it(rows: Any) -> None:
    table = table_with_two_rings(9)
    storage = context_of(table).storage
    if rows:
        table.insert_overwrite(rides(*rows))
    else:
        table.delete_partition("rome")
    latest = table.timeline.writes()[-1].requested
    storage.delete([each.path for each in storage.list_tree(FOLDERS[0]) if each.name.startswith(latest)])
    assert held(table) == sorted([*rows, PISA])
    with pytest.raises(UnsupportedError, match=r"Overwrite the partition \(insert_overwrite\)"):
        table.upsert(rides(NEW_ROMANS[0]))
    table.insert_overwrite(rides(*NEW_ROMANS))
    table.upsert(rides(("k1", "rome", 3, 3.0), ("p", "pisa", 3, 3.0)))
    assert held(table) == sorted([("k1", "rome", 3, 3.0), NEW_ROMANS[1], ("p", "pisa", 3, 3.0)])


RESIZING = {
    "hoodie.parquet.max.file.size": "1000",
    "hoodie.bucket.index.split.threshold": "1.0",
    "hoodie.bucket.index.max.num.buckets": "8",
}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}


def test_buckets_that_are_being_resized_are_not_overwritten_but_others_are() -> None:
    table = table_with_two_rings(9)
    planned = table.services.schedule_clustering(options=RESIZING)
    assert planned is not None
    with pytest.raises(ConflictError, match="part of a pending clustering"):
        in_no_time(table).insert_overwrite(rides(*NEW_ROMANS))
    assert held(table) == sorted([*ROMANS, PISA])
    table.insert_overwrite(rides(OSLO))
    table.services.cluster(instant=planned)
    table.upsert(rides(("o", "oslo", 3, 3.0), ("k1", "rome", 3, 3.0)))
    assert held(table) == sorted(
        [("k1", "rome", 3, 3.0), *ROMANS[:1], *ROMANS[2:], PISA, ("o", "oslo", 3, 3.0)]
    )
    assert not table.services.validate().findings


def test_an_overwrite_that_does_not_wait_gives_the_resizing_up() -> None:
    table = table_with_two_rings(9)
    assert table.services.schedule_clustering(options=RESIZING)
    table.upsert(rides(("k2", "rome", 2, 2.0)))
    table.insert_overwrite(rides(*NEW_ROMANS), options=ALLOW)
    assert table.timeline.pending() == ()
    assert held(table) == sorted([*NEW_ROMANS, PISA])
    table.upsert(rides(("k1", "rome", 3, 3.0)))
    assert held(table) == sorted([("k1", "rome", 3, 3.0), NEW_ROMANS[1], PISA])
    assert (orphans(table), table.services.validate().findings) == ([], ())
