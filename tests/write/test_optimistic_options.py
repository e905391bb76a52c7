"""Options, failures and messages of optimistic concurrency control."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest

from drawstring.base.errors import ConflictError, DrawstringError, InvalidError, LostRaceError
from drawstring.base.resources import this_process
from drawstring.config.options.write_options import WriteOptions
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.locks.service_lease import service_lease
from tests.support.faults import HOUR_MS, NEWER, START_MS, opened, prepared, settled_rows
from tests.support.faulty_storage import FaultyStorage
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import Interrupted, Preceded, Standing, on, upserting
from tests.support.rows import SCHEMA, held, rides
from tests.support.tables import (
    BUCKETS,
    COW,
    MOR,
    WITHOUT_COMPACTION,
    WITHOUT_SERVICES,
    create,
    filled,
    listing,
    table_types,
)

ONCE = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"}
LATE = ("z", "rome", 9, 9.0)


def behind(table: Table, *rows: tuple[object, ...]) -> Table:
    """Return the table with a storage on which another writer comes first."""
    return on(Interrupted(table, upserting(*rows)))


@table_types
def test_a_write_that_lost_runs_again(table_type: str) -> None:
    table = filled(table_type=table_type)
    result = behind(table, ("a", "rome", 5, 5.0), LATE).upsert(
        rides(("a", "rome", 7, 7.0), ("z", "rome", 10, 10.0)), options=OPTIMISTIC
    )
    assert (result.inserts, result.updates) == (0, 2)
    assert [row for row in held(table) if row[0] in "az"] == [("a", "rome", 7, 7.0), ("z", "rome", 10, 10.0)]


def test_a_stream_of_rows_is_kept_for_a_second_attempt() -> None:
    table = filled()
    stream = pa.RecordBatchReader.from_batches(SCHEMA, rides(("a", "rome", 7, 7.0)).to_batches())
    behind(table, ("a", "rome", 5, 5.0)).upsert(stream, options=OPTIMISTIC)
    assert ("a", "rome", 7, 7.0) in held(table)


def stream(rows: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches()))


def test_a_stream_that_goes_to_new_file_groups_is_written_beside_others() -> None:
    table = filled()
    first = on(Interrupted(table, upserting(("a", "rome", 7, 7.0)), times=2))
    first.append(stream(rides(("x", "rome", 7, 7.0))))
    first.bulk_insert(stream(rides(("y", "rome", 7, 7.0))))
    assert [row[0] for row in held(table) if row[0] in "axy"] == ["a", "x", "y"]


def test_a_stream_that_was_not_stored_cannot_run_again() -> None:
    table = filled()
    by_others, own = (
        rides(("n", "rome", 5, 5.0)).append_column(name, pa.array(["x"])) for name in ("note", "remark")
    )
    with pytest.raises(LostRaceError, match=r"changed the schema.*Write again"):
        on(Interrupted(table, lambda other: other.upsert(by_others))).append(stream(own))
    assert "remark" not in table.schema.names
    assert table.timeline.pending_writes() == ()


def test_a_policy_that_leaves_no_room_for_others_makes_a_single_writer() -> None:
    eager = WriteOptions.parse({"hoodie.cleaner.policy.failed.writes": "EAGER"})
    assert eager.concurrency.mode == "SINGLE_WRITER" and not eager.failed_writes.spares_writers
    assert WriteOptions.parse({}).concurrency.mode == "OPTIMISTIC_CONCURRENCY_CONTROL"
    assert WriteOptions.parse({}).failed_writes.policy == "LAZY"


def test_the_last_attempt_goes_first_where_the_earlier_ones_lost() -> None:
    table, refused = filled(), list[str]()
    others = {**OPTIMISTIC, "hoodie.write.lock.wait_time_ms": "0"}

    def persist(other: Table) -> None:
        try:
            other.upsert(rides(("a", "rome", 5, 5.0)), options=others)
        except ConflictError as error:
            refused.append(str(error))

    first = on(Interrupted(table, persist, times=1000))
    first.upsert(rides(("a", "rome", 7, 7.0)), options=OPTIMISTIC)
    assert ("a", "rome", 7, 7.0) in held(table)
    assert "goes first in partition rome" in refused[-1]


def test_a_conflict_without_retries_names_the_other_write_and_its_file_groups() -> None:
    table = filled()
    with pytest.raises(LostRaceError) as caught:
        behind(table, ("a", "rome", 5, 5.0)).upsert(rides(("a", "rome", 7, 7.0)), options=ONCE)
    other = table.timeline.latest_write()
    (file_slice,) = [each for each in table.inspect.files() if each.partition == "rome"]
    assert f"The commit {other.requested} of another writer ({this_process()}) was committed" in str(
        caught.value
    )
    assert f"rome/{file_slice.file_id}" in str(caught.value)
    assert ("a", "rome", 5, 5.0) in held(table)
    assert table.timeline.pending_writes() == ()


def test_two_writers_add_the_same_new_key_once() -> None:
    table = filled()
    behind(table, LATE).upsert(rides(("z", "rome", 8, 8.0)), options=OPTIMISTIC)
    assert [row for row in held(table) if row[0] == "z"] == [LATE]


def test_a_column_that_another_writer_added_stays() -> None:
    table = filled()
    wider = rides(("n", "bern", 5, 5.0)).append_column("note", pa.array(["x"]))

    first = on(Interrupted(table, lambda other: other.upsert(wider, options=OPTIMISTIC)))
    first.upsert(rides(("a", "rome", 7, 7.0)), options=OPTIMISTIC)
    assert "note" in table.schema.names
    assert ("a", "rome", 7, 7.0) in held(table)


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6), (MOR, 9)])
def test_what_a_killed_writer_left_goes_with_the_next_write_unless_it_had_decided_to_commit(
    table_type: str, version: int
) -> None:
    start = prepared(table_type, version, "upsert")
    for changes in range(1, 40, 3):
        storage = start.copy()
        with suppress(DrawstringError):
            opened(FaultyStorage(storage, changes), START_MS).upsert(NEWER, options=OPTIMISTIC)
        table = opened(storage, START_MS + HOUR_MS)
        before = settled_rows(storage, start, held(table))
        assert before in (start.before, start.after), changes
        table.upsert(rides(("next", "rome", 9, 9.0)))
        assert held(table) == sorted([*before, ("next", "rome", 9, 9.0)]), changes
        assert table.timeline.pending_writes() == (), changes
        assert table.services.validate().findings == (), changes


def test_a_single_writer_is_refused_beside_a_live_one() -> None:
    table = filled()

    def write_alone(other: Table) -> None:
        with pytest.raises(ConflictError, match="OPTIMISTIC_CONCURRENCY_CONTROL"):
            other.upsert(rides(LATE), options={"hoodie.write.concurrency.mode": "SINGLE_WRITER"})

    first = on(Interrupted(table, write_alone))
    first.upsert(rides(("a", "rome", 7, 7.0)), options=OPTIMISTIC)
    assert held(table)[0] == ("a", "rome", 7, 7.0)
    table.upsert(rides(LATE))
    assert LATE in held(table)


def test_a_lease_that_a_stalled_planner_took_at_the_time_of_a_write_does_not_tell_it_is_dead() -> None:
    table = filled()

    def lease_and_write(other: Table) -> None:
        context = context_of(other)
        (pending,) = other.timeline.pending_writes()
        with service_lease(context.storage, context.clock, context.ids, pending.requested) as lease:
            assert lease is not None
        other.upsert(rides(("new", "oslo", 9, 9.0)), options=OPTIMISTIC)
        assert other.timeline.pending_writes() == (pending,)

    on(Interrupted(table, lease_and_write)).upsert(rides(LATE), options=ONCE)
    assert {LATE, ("new", "oslo", 9, 9.0)} <= set(held(table))


def roll_back_as_hudi_rs(table: Table) -> None:
    """Take pending writes off the timeline, whoever made them."""
    storage = context_of(table).storage
    pending = [each.requested for each in table.timeline.pending_writes()]
    files = storage.list_tree(".hoodie/timeline")
    storage.delete([file.path for file in files if any(time in file.path for time in pending)])


@table_types
def test_a_write_that_hudi_rs_rolled_back_runs_again(table_type: str) -> None:
    table = filled(table_type=table_type)
    rows = rides(("a", "rome", 7, 7.0), LATE)
    with pytest.raises(LostRaceError, match="rolled this write back"):
        on(Interrupted(table, roll_back_as_hudi_rs)).upsert(rows, options=ONCE)
    assert ("a", "rome", 1, 1.0) in held(table)
    on(Interrupted(table, roll_back_as_hudi_rs)).upsert(rows, options=OPTIMISTIC)
    assert {("a", "rome", 7, 7.0), LATE} <= set(held(table))
    assert table.services.validate().findings == ()


def test_eager_rollbacks_and_several_writers_exclude_each_other() -> None:
    with pytest.raises(InvalidError, match="LAZY"):
        filled().upsert(rides(LATE), options={**OPTIMISTIC, "hoodie.clean.failed.writes.policy": "EAGER"})


def rewrite_and_clean(table: Table) -> None:
    table.upsert(rides(("a", "rome", 5, 5.0)), options=OPTIMISTIC)
    table.services.clean(retain_versions=1, options=OPTIMISTIC)


def rewrite_and_archive(table: Table) -> None:
    keep = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    for number in range(5):
        table.upsert(rides(("a", "rome", 5 + number, 5.0)), options={**OPTIMISTIC, **keep})


@table_types
def test_an_overwrite_runs_again_when_archiving_passed_the_writes_that_it_replaces(table_type: str) -> None:
    table = create(table_type=table_type)
    for number in range(6):
        table.upsert(rides(("a", "rome", number, 1.0), ("b", "oslo", number, 1.0)))
    start = table.timeline.start
    first = on(Interrupted(table, rewrite_and_archive))
    first.insert_overwrite(rides(("o", "rome", 7, 7.0)), options=OPTIMISTIC)
    assert table.timeline.start != start
    assert [row for row in held(table) if row[1] == "rome"] == [("o", "rome", 7, 7.0)]


@table_types
def test_slices_that_a_clean_deleted_are_not_missed(table_type: str) -> None:
    table = filled(table_type=table_type)
    compacting = {**OPTIMISTIC, "hoodie.compact.inline": "false"}
    first = on(Preceded(table, rewrite_and_clean))
    first.upsert(rides(("a", "rome", 7, 7.0)), options=compacting)
    assert [row for row in held(table) if row[0] == "a"] == [("a", "rome", 7, 7.0)]


def test_a_compaction_that_was_unscheduled_takes_no_rows_along() -> None:
    table = filled(table_type=MOR, version=6, properties=BUCKETS)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_COMPACTION)
    planned = table.services.schedule_compaction()

    def unschedule(other: Table) -> None:
        other.services.rollback(planned, options=OPTIMISTIC)

    first = on(Preceded(table, unschedule))
    first.upsert(rides(("a", "rome", 7, 7.0)), options={**OPTIMISTIC, **WITHOUT_COMPACTION})
    assert ("a", "rome", 7, 7.0) in held(table)


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])
def test_two_inserts_make_one_bucket(table_type: str, version: int) -> None:
    how = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = listing(create(table_type=table_type, version=version, properties=how))
    table.insert(rides(("o", "oslo", 1, 1.0)))
    first = on(Preceded(table, lambda other: other.insert(rides(("x", "rome", 1, 1.0)), options=OPTIMISTIC)))
    first.insert(rides(("y", "rome", 1, 1.0)), options=OPTIMISTIC)
    assert [row[0] for row in held(table)] == ["o", "x", "y"]
    assert len([each for each in table.inspect.files() if each.partition == "rome"]) == 1


@pytest.mark.parametrize("ends_first", [True, False])
@pytest.mark.parametrize("version", [6, 9])
def test_what_was_compacted_while_it_was_overwritten_is_not_missed_after_archiving(
    version: int, ends_first: bool
) -> None:
    """The compaction begins after the overwrite, and ends before it or after it."""
    table = filled(table_type=MOR, version=version, uses_metadata=False)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_COMPACTION)
    options = {**OPTIMISTIC, **WITHOUT_SERVICES}
    writer = Standing(
        table, lambda each: each.insert_overwrite(rides(("o", "rome", 7, 7.0)), options=options)
    )
    writer.start()
    compactor = table if ends_first else on(Interrupted(table, lambda _: writer.finish()))
    compactor.services.compact(options=OPTIMISTIC)
    writer.finish()
    assert writer.error is None
    table.services.clean(retain_versions=1)
    for number in range(3):
        table.upsert(rides(("p", "oslo", number, 1.0)), options=WITHOUT_SERVICES)
    keeps = {"hoodie.clean.commits.retained": "1"}
    assert table.services.archive(min_commits=4, max_commits=5, options=keeps)
    assert [row for row in held(table) if row[1] == "rome"] == [("o", "rome", 7, 7.0)]
    assert table.services.validate().findings == ()


def test_a_table_overwrite_and_an_upsert_leave_no_key_twice() -> None:
    table = filled(properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    first = on(Preceded(table, upserting(("n", "bern", 5, 5.0))))
    first.insert_overwrite_table(rides(("n", "rome", 7, 7.0)), options=OPTIMISTIC)
    assert held(table) == [("n", "rome", 7, 7.0)]
