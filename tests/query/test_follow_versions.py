"""A table that is followed changes its version: each commit is in one batch, before or after."""

from __future__ import annotations

import json
from itertools import pairwise, permutations

import pytest

from drawstring.query.stream import START, FollowSpec, batch_scan, next_position, position_from
from drawstring.query.table_state import load_facts
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.timeline import epoch_ms_of, instant_time
from tests.support.rows import rides
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create
from tests.support.version_changes import change_version

CHANGES = [(6, 8), (6, 9), (8, 6), (9, 6), (8, 9), (9, 8)]
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def write(table: Table, *numbers: int) -> None:
    for number in numbers:
        table.upsert(rides((f"k{number}", "oslo", number, 1.0)), options=WITHOUT_SERVICES)


def followed(table: Table, position: str | None, batches: int | None = None) -> tuple[list[str], str | None]:
    """Return the keys of what is new, batch by batch of one commit, and the position after it."""
    keys: list[str] = []
    for number, batch in enumerate(table.follow(position, poll_seconds=None, max_commits=1), start=1):
        keys += sorted(batch.rows.to_arrow().column("id").to_pylist())
        position = batch.position
        if number == batches:
            break
    return keys, position


def as_stored_before(position: str | None) -> str:
    """Return a position as releases stored it that did not tell which kind of time it holds."""
    fields = json.loads(position or "")
    return json.dumps({"version": fields["version"], "time": fields["time"]})


@pytest.mark.parametrize("is_old", [False, True], ids=["new-position", "old-position"])
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_each_commit_is_handed_out_once_across_a_change(
    table_type: str, old: int, new: int, *, is_old: bool
) -> None:
    for seen in (4, 2):
        table = create(table_type=table_type, version=old)
        write(table, 0, 1, 2, 3)
        keys, position = followed(table, None, seen)
        assert keys == [f"k{number}" for number in range(seen)]
        change_version(table, new)
        stored = as_stored_before(position) if is_old else position
        keys, position = followed(table, stored)
        assert keys == [f"k{number}" for number in range(seen, 4)]
        write(table, 4)
        assert followed(table, stored)[0] == [f"k{number}" for number in range(seen, 5)]
        keys, position = followed(table, position)
        assert keys == ["k4"]
        change_version(table, old)
        write(table, 5)
        assert followed(table, position)[0] == ["k5"]


@pytest.mark.parametrize("is_old", [False, True], ids=["new-position", "old-position"])
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("later_ms", [-5, -1, 0, 1, 5])
@pytest.mark.parametrize("is_next", [False, True], ids=["beside-its-request", "beside-the-next-request"])
def test_each_commit_is_handed_out_once_whatever_the_clock_of_the_storage_says(
    table_type: str, later_ms: int, *, is_next: bool, is_old: bool
) -> None:
    """A write and the next one within a millisecond, and storage whose clock is behind or ahead."""
    table = create(table_type=table_type, version=6)
    write(table, 0, 1, 2, 3)
    writes, zone = table.timeline.writes(), table.config.timezone
    for this, following in pairwise(writes):
        near_ms = epoch_ms_of((following if is_next else this).requested, zone)
        assert near_ms is not None
        path = f".hoodie/{this.requested}.{this.action}"
        context_of(table).storage.set_modified(path, near_ms + later_ms)
    last_ms = epoch_ms_of(writes[-1].requested, zone)
    assert last_ms is not None
    after_all = f".hoodie/{writes[-1].requested}.{writes[-1].action}"
    context_of(table).storage.set_modified(after_all, last_ms + 10)  # fast machines complete it within 5 ms
    positions = [followed(table, None, seen)[1] for seen in (1, 2, 3, 4)]
    table.versions.upgrade(9)
    upgraded = table.timeline.writes()[:4]
    assert [each.requested for each in upgraded] == [each.requested for each in writes]
    assert all(this.completed != other.requested for this, other in permutations(upgraded, 2))
    for seen, position in enumerate(positions, start=1):
        stored = as_stored_before(position) if is_old else position
        assert followed(table, stored)[0] == [f"k{number}" for number in range(seen, 4)]


@pytest.mark.parametrize("is_old", [False, True], ids=["new-position", "old-position"])
def test_a_position_whose_commit_was_archived_since_is_known_too(*, is_old: bool) -> None:
    table = create(version=6)
    write(table, 0, 1)
    _, position = followed(table, None)
    for number in range(2, 8):
        table.upsert(rides((f"k{number}", "oslo", number, 1.0)), options=SHORT)
    table.versions.upgrade(9)
    last = json.loads(position or "")["time"]
    assert table.timeline.start is not None and last < table.timeline.start
    stored = as_stored_before(position) if is_old else position
    batches = list(table.follow(stored, poll_seconds=None, on_cleaned="snapshot"))
    assert [batch.rows.to_arrow().num_rows for batch in batches] == [8], "commits are gone, so all of it"
    assert followed(table, batches[-1].position)[0] == []


def test_a_commit_that_completed_before_an_earlier_one_is_not_lost_by_the_upgrade() -> None:
    """Two writers at once: the first to begin is the last to end."""
    table = create(version=6)
    write(table, 0, 1, 2)
    storage, (_, first, second) = context_of(table).storage, table.timeline.writes()
    zone = table.config.timezone
    late_ms = epoch_ms_of(second.requested, zone)
    assert late_ms is not None
    storage.set_modified(f".hoodie/{first.requested}.commit", late_ms + 5_000)
    storage.set_modified(f".hoodie/{second.requested}.commit", late_ms + 1_000)
    keys, position = followed(table, None, 2)
    assert keys == ["k0", "k1"]
    table.versions.upgrade(9)
    assert [each.completed for each in table.timeline.writes()[1:]] == [
        instant_time(late_ms + 5_000, zone),
        instant_time(late_ms + 1_000, zone),
    ]
    keys, position = followed(table, position)
    assert keys == ["k2"]
    assert "requested" in json.loads(position or ""), "the first completed after the second"
    assert followed(table, position)[0] == []
    write(table, 3)
    keys, position = followed(table, position)
    assert (keys, "requested" in json.loads(position or "")) == (["k3"], False)


def test_after_the_first_batch_of_the_new_version_a_position_is_as_any_other() -> None:
    table = create(version=6)
    write(table, 0, 1)
    _, before = followed(table, None)
    table.versions.upgrade(9)
    write(table, 2, 3)
    keys, position = followed(table, before, 1)
    last = table.timeline.writes()[-2].completed
    assert (keys, json.loads(position or "")) == (["k2"], {"version": 1, "time": last})
    assert followed(table, position)[0] == ["k3"]
    facts = load_facts(context_of(table).storage, context_of(table).clock)
    ends = [position_from(facts, each) for each in (before, position)]
    again = batch_scan(facts, ends[0], ends[1], FollowSpec()).to_arrow()
    assert again.column("id").to_pylist() == ["k2"], "planned again from what was stored"


@pytest.mark.parametrize("is_old", [False, True], ids=["new-position", "old-position"])
def test_a_batch_that_is_planned_again_after_the_upgrade_has_the_same_rows(*, is_old: bool) -> None:
    """As Spark does when it starts again: both ends of the batch were stored before."""
    table = create(version=6)
    write(table, 0, 1, 2, 3)
    _, start = followed(table, None, 1)
    _, end = followed(table, None, 3)
    table.versions.upgrade(9)
    facts = load_facts(context_of(table).storage, context_of(table).clock)
    ends = [position_from(facts, as_stored_before(each) if is_old else each) for each in (start, end)]
    rows = batch_scan(facts, ends[0], ends[1], FollowSpec()).to_arrow()
    assert sorted(rows.column("id").to_pylist()) == ["k1", "k2"]
    assert next_position(facts, START, FollowSpec()).covers(facts.timeline.writes()[-1])
