"""Writers side by side under non-blocking concurrency control (RFC-66)."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.base.errors import InvalidError, LostRaceError
from drawstring.table import Table
from tests.support.faults import spaced
from tests.support.interleavings import interleave
from tests.support.interrupted import Act, Interrupted, on, upserting
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, WITHOUT_COMPACTION, create, filled, store_of
from tests.support.writer_pairs import ACTS, PAIRS, prepared

NON_BLOCKING = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL", **WITHOUT_COMPACTION}
ONCE = {**NON_BLOCKING, "hoodie.write.num.retries.on.conflict.failures": "0"}
FIXED_TAIL = "-0000-0000-0000-000000000000-0"
BY_COMMIT_TIME = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
SHORT_TIMELINE = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
ONE_BUCKET = {**BUCKETS, "hoodie.bucket.index.num.buckets": "1"}
versions = pytest.mark.parametrize("version", [8, 9])


def behind(table: Table, act: Act) -> Table:
    """Return the table with a storage on which others act while a write is at work."""
    return on(Interrupted(table, act))


def in_rome(table: Table) -> list[tuple[Any, ...]]:
    return [row for row in held(table) if row[1] == "rome"]


@versions
def test_log_files_of_two_writers_in_one_bucket_are_no_conflict(version: int) -> None:
    table = filled(table_type=MOR, version=version, properties=BUCKETS)
    slow = behind(table, upserting(("a", "rome", 7, 7.0), ("b", "rome", 5, 5.0), options=ONCE))
    slow.upsert(rides(("a", "rome", 6, 6.0), ("b", "rome", 6, 6.0)), options=ONCE)
    rows = [("a", "rome", 7, 7.0), ("b", "rome", 6, 6.0)]
    assert in_rome(table) == rows
    table.services.compact(options=NON_BLOCKING)
    assert in_rome(table) == rows
    assert table.timeline.rolled_back == frozenset()


@versions
def test_two_writers_begin_one_file_group_for_a_new_bucket(version: int) -> None:
    table = create(table_type=MOR, version=version, properties=ONE_BUCKET)
    table.upsert(rides(("o", "oslo", 1, 1.0)), options=NON_BLOCKING)
    slow = behind(table, upserting(("m", "rome", 2, 2.0), ("n", "rome", 2, 2.0), options=ONCE))
    slow.upsert(rides(("n", "rome", 3, 3.0)), options=ONCE)
    rows = [("m", "rome", 2, 2.0), ("n", "rome", 3, 3.0)]
    assert in_rome(table) == rows
    (file_slice,) = [each for each in table.inspect.files() if each.partition == "rome"]
    assert file_slice.file_id == f"00000000{FIXED_TAIL}"
    assert file_slice.base is None
    assert len(file_slice.logs) == 2
    table.services.compact(options=NON_BLOCKING)
    assert in_rome(table) == rows
    assert table.services.validate().findings == ()


@pytest.mark.parametrize("version", [8, 9, 10])
def test_rows_that_begin_a_file_group_are_counted_as_inserts(version: int) -> None:
    table = create(table_type=MOR, version=version, properties=ONE_BUCKET)
    first = table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)), options=NON_BLOCKING)
    assert (first.inserts, first.updates, first.records_written) == (2, 0, 2)
    (write,) = table.timeline.writes()
    (stat,) = store_of(table).commit_metadata(write).stats
    assert (stat.is_log, stat.num_inserts, stat.num_updates, stat.num_writes) == (True, 2, 0, 2)
    second = table.upsert(rides(("a", "rome", 2, 2.0), ("o", "oslo", 2, 2.0)), options=NON_BLOCKING)
    assert (second.inserts, second.updates) == (1, 1)


def test_a_write_belongs_to_the_slice_of_a_compaction_that_it_overlaps() -> None:
    table = filled(table_type=MOR, properties=BUCKETS)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=NON_BLOCKING)
    slow = behind(table, lambda other: other.services.compact(options=NON_BLOCKING))
    slow.upsert(rides(("a", "rome", 3, 3.0)), options=ONCE)
    assert in_rome(table)[0] == ("a", "rome", 3, 3.0)
    for ts in range(4, 12):
        table.upsert(rides(("b", "rome", ts, 1.0)), options=NON_BLOCKING)
    table.services.clean(retain_versions=1, options=NON_BLOCKING)
    table.services.archive(
        options={**NON_BLOCKING, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    )
    assert in_rome(table)[0] == ("a", "rome", 3, 3.0)


@versions
def test_an_overlapping_write_stays_in_its_slice_when_hudi_archives_it(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(table_type=MOR, version=version, properties=BUCKETS)
    slow = behind(table, lambda other: other.services.compact(options=NON_BLOCKING))
    table.upsert(rides(("a", "rome", 2, 2.0)), options=NON_BLOCKING)
    late = slow.upsert(rides(("a", "rome", 3, 3.0)), options=ONCE)
    for ts in range(4, 12):
        table.upsert(rides(("c", "pisa", ts, 1.0)), options=NON_BLOCKING)
    monkeypatch.setattr("drawstring.services.archive.overlapping", lambda timeline: iter(()))
    table.services.archive(options={**NON_BLOCKING, **SHORT_TIMELINE})
    assert table.timeline.is_archived(late.instant)
    assert in_rome(table)[0] == ("a", "rome", 3, 3.0)


@pytest.mark.parametrize("how", [BUCKETS, {**BUCKETS, **BY_COMMIT_TIME}], ids=["delete", "commit time"])
def test_a_write_that_is_overtaken_where_the_order_counts_runs_again(how: dict[str, str]) -> None:
    by_time = BY_COMMIT_TIME.items() <= how.items()
    act: Act = (
        upserting(("a", "rome", 7, 7.0), options=ONCE)
        if by_time
        else lambda other: other.delete(rides(("a", "rome", 9, 0.0)), options=ONCE)
    )
    table = filled(table_type=MOR, properties=how)
    with pytest.raises(LostRaceError, match="same file groups: rome/"):
        behind(table, act).upsert(rides(("a", "rome", 6, 6.0)), options=ONCE)
    behind(table, act).upsert(rides(("a", "rome", 6, 6.0)), options=NON_BLOCKING)
    assert in_rome(table)[0] == ("a", "rome", 6, 6.0)
    table.services.compact(options=NON_BLOCKING)
    assert in_rome(table)[0] == ("a", "rome", 6, 6.0)


def drop_rome(table: Table) -> object:
    return table.delete_partition("rome", options=NON_BLOCKING)


def test_the_fixed_id_of_a_dropped_bucket_is_not_used_again() -> None:
    table = create(table_type=MOR, properties=ONE_BUCKET)
    table.upsert(rides(("o", "oslo", 1, 1.0), ("a", "rome", 1, 1.0)), options=NON_BLOCKING)
    drop_rome(table)
    table.upsert(rides(("b", "rome", 1, 1.0)), options=NON_BLOCKING)
    table.upsert(rides(("b", "rome", 2, 2.0), ("c", "rome", 2, 2.0)), options=NON_BLOCKING)
    assert in_rome(table) == [("b", "rome", 2, 2.0), ("c", "rome", 2, 2.0)]


@pytest.mark.parametrize(
    "act",
    [
        drop_rome,
        lambda other: other.insert_overwrite(rides(("x", "rome", 1, 1.0)), options=NON_BLOCKING),
    ],
    ids=["drop", "overwrite"],
)
def test_a_write_into_a_bucket_that_was_replaced_runs_again(act: Act) -> None:
    table = filled(table_type=MOR, properties=ONE_BUCKET)
    with pytest.raises(LostRaceError):
        behind(table, act).upsert(rides(("a", "rome", 7, 7.0)), options=ONCE)
    behind(table, act).upsert(rides(("a", "rome", 7, 7.0)), options=NON_BLOCKING)
    assert ("a", "rome", 7, 7.0) in held(table)


def test_a_new_bucket_of_a_writer_of_another_mode_is_a_conflict() -> None:
    table = create(table_type=MOR, properties=ONE_BUCKET)
    table.upsert(rides(("o", "oslo", 1, 1.0)), options=NON_BLOCKING)
    optimistic = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    other = behind(table, lambda each: each.upsert(rides(("m", "rome", 2, 2.0)), options=optimistic))
    other.upsert(rides(("n", "rome", 3, 3.0)), options=NON_BLOCKING)
    assert in_rome(table) == [("m", "rome", 2, 2.0), ("n", "rome", 3, 3.0)]
    assert len([each for each in table.inspect.files() if each.partition == "rome"]) == 1


CONSISTENT = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


@pytest.mark.parametrize(
    ("how", "needs"),
    [
        ({"table_type": COW, "properties": BUCKETS}, "hoodie.table.type=MERGE_ON_READ"),
        ({"table_type": MOR, "version": 6, "properties": BUCKETS}, "version 8 or later"),
        ({"table_type": MOR}, "hoodie.index.type=BUCKET"),
        ({"table_type": MOR, "properties": CONSISTENT}, "engine=SIMPLE"),
    ],
    ids=["copy on write", "version 6", "simple index", "consistent hashing"],
)
def test_tables_that_cannot_be_written_so_are_refused(how: dict[str, Any], needs: str) -> None:
    table = create(**how)
    with pytest.raises(InvalidError, match=needs):
        table.upsert(rides(("a", "rome", 7, 7.0)), options=NON_BLOCKING)
    assert table.timeline.instants == ()


EVERY = 13
"""Of so many storage calls one is tried; `make sim` tries all."""


@pytest.mark.scaled
@pytest.mark.parametrize(("first", "second"), [pair for pair in PAIRS if "cluster" not in pair])
def test_what_two_writers_leave_is_what_one_after_the_other_leaves(first: str, second: str) -> None:
    table = prepared(MOR, 9, BUCKETS)
    offset = (len(first) + len(second)) % EVERY
    every = spaced(EVERY)
    assert interleave(table, ACTS[first], ACTS[second], every=every, offset=offset, mode=NON_BLOCKING)
