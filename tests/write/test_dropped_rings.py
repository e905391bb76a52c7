"""A partition of a table with consistent hashing goes away, and comes again with other file groups."""

from __future__ import annotations

import pytest

from drawstring.index.existing_writes import FOLDERS
from drawstring.model.instant import time_of
from tests.support.consistent_buckets import NEWER_PISA, PISA, ROMANS, prefixes, table_with_two_rings
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans, settled_rows
from tests.support.rows import held, rides
from tests.support.tables import versions


@versions
def test_the_table_goes_on_and_the_partition_begins_anew(version: int) -> None:
    table = table_with_two_rings(version)
    loaded, before = table.timeline.writes()[-1], prefixes(table, "rome")
    table.delete_partition("rome")
    dropped = table.timeline.writes()[-1]
    assert held(table) == [PISA]
    table.upsert(rides(NEWER_PISA))
    table.upsert(rides(("k1", "rome", 0, 5.0), ("new", "rome", 1, 1.0)))
    rows = [("k1", "rome", 0, 5.0), ("new", "rome", 1, 1.0), NEWER_PISA]
    assert held(table) == sorted(rows)
    table.upsert(rides(("k1", "rome", 3, 3.0)))
    rows[0] = ("k1", "rome", 3, 3.0)
    assert held(table) == sorted(rows)
    table.services.compact()
    assert held(table) == sorted(rows)
    since = table.incremental(time_of(dropped), columns=["id"]).to_arrow()
    assert sorted(since["id"].to_pylist()) == ["k1", "new", "p"]
    assert held(table, where="id = 'k1'") == rows[:1]
    assert held(table, as_of=loaded.requested) == sorted([*ROMANS, PISA])
    assert held(table, as_of=loaded.requested, where="id = 'k8'") == [ROMANS[8]]
    after = prefixes(table, "rome")
    assert len(after) == len(before) and not set(after) & set(before)
    assert not table.services.validate().findings


def test_it_can_be_dropped_again_and_restored() -> None:
    table = table_with_two_rings(9)
    table.savepoints.create()
    first = prefixes(table, "rome")
    for _ in range(2):
        table.delete_partition("rome")
        table.upsert(rides(*ROMANS))
        assert held(table) == sorted([*ROMANS, PISA])
    table.savepoints.restore(table.timeline.writes()[0].requested)
    assert prefixes(table, "rome") == first
    table.upsert(rides(("k1", "rome", 3, 3.0)))
    assert ("k1", "rome", 3, 3.0) in held(table) and len(held(table)) == 10


@versions
@pytest.mark.scaled
def test_a_drop_that_dies_at_any_step_happens_or_does_not(version: int) -> None:
    table = table_with_two_rings(version)
    start = Prepared.of(table, after=[PISA])
    for storage, step in start.deaths(lambda each: each.delete_partition("rome")):
        table = opened(storage, START_MS + HOUR_MS)
        found = held(table)
        assert found in (start.before, start.after), step
        found = settled_rows(storage, start, found)
        table.upsert(rides(("k1", "rome", 7, 7.0), NEWER_PISA))
        others = [row for row in found if row[0] not in ("k1", "p")]
        assert held(table) == sorted([*others, ("k1", "rome", 7, 7.0), NEWER_PISA]), step
        assert (orphans(table), leftovers(table)) == ([], []), step
        known = {status.name for folder in FOLDERS for status in storage.list_tree(folder)}
        assert len(known) == (1 if found == start.before else 3), (step, known)
