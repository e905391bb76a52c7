"""Partitions that get another number of buckets: same rows, in the new buckets, in one commit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.options.write_options import options_of
from drawstring.index.bucket import FOLDER
from drawstring.model.instant import Action
from drawstring.services.bucket_rescaling import BucketRules, plan_rescaling, rescale_by_rules
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.transaction import begin, lock_table
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, create

KEYS = [f"k{number:02}" for number in range(30)]


def hashed(table_type: str = MOR, version: int = 9, keys: list[str] = KEYS, **more: str) -> Table:
    """A table with two buckets in each of two partitions; half of the rows have a second version."""
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", **more}
    table = create(table_type=table_type, version=version, properties=properties)
    table.insert(rides(*((key, city, 1, 1.0) for city in ("oslo", "rome") for key in keys)))
    table.upsert(rides(*((key, city, 2, 2.0) for city in ("oslo", "rome") for key in keys[::2])))
    return table


def buckets(table: Table, city: str) -> set[str]:
    return {each.file_id[:8] for each in table.inspect.files() if each.partition == city}


def counts(table: Table) -> list[dict[str, Any]]:
    storage = context_of(table).storage
    files = sorted(storage.list_files(FOLDER), key=lambda each: each.name)
    return [json.loads(storage.read(each.path)) for each in files]


@pytest.mark.parametrize(
    ("table_type", "version", "more"),
    [
        (MOR, 9, {}),
        (MOR, 6, {}),
        (COW, 9, {"hoodie.populate.meta.fields": "false"}),
        (COW, 8, {"hoodie.table.storage.layout": "default"}),
    ],
)
def test_a_rescaled_partition_has_its_rows_in_the_new_buckets(
    table_type: str, version: int, more: dict[str, str]
) -> None:
    table = hashed(table_type, version, **more)
    before = held(table)
    result = table.services.rescale_buckets(5, "rome")
    assert (result.operation, result.files, result.records_written) == ("rescale_buckets", 5, 30)
    assert held(table) == before
    assert buckets(table, "rome") == {f"{number:08}" for number in range(5)}
    assert len(buckets(table, "oslo")) == 2
    for key in KEYS:
        found = table.scan(where=f"id = '{key}'")
        assert found.to_arrow().num_rows == len(found.tasks()) == 2
    assert table.services.validate().is_sound


def test_writes_after_a_rescaling_find_the_records_and_new_partitions_follow_the_rules() -> None:
    table = hashed()
    table.services.rescale_buckets(5, ["rome", "b*"])
    newer = [(key, city, 3, 3.0) for city in ("rome", "bern") for key in KEYS]
    table.upsert(rides(*newer))
    assert held(table) == sorted([*newer, *(each for each in held(table) if each[1] == "oslo")])
    assert len(buckets(table, "rome")) == len(buckets(table, "bern")) == 5
    table.services.compact()
    table.delete(rides(("k00", "rome", 4, 4.0)))
    assert table.scan(where="city = 'rome'").to_arrow().num_rows == 29
    assert table.services.validate().is_sound


def test_rules_of_later_rescalings_come_first() -> None:
    table = hashed()
    table.services.rescale_buckets(5, ["rome"])
    table.services.rescale_buckets(3)
    table.services.rescale_buckets(4, ["rome"])
    assert not table.services.rescale_buckets(4, ["rome"])
    assert (len(buckets(table, "rome")), len(buckets(table, "oslo"))) == (4, 3)
    assert [each["expressions"] for each in counts(table)] == ["^rome$,5", ".*,3", "^rome$,4;.*,3"]
    assert {each["defaultBucketNumber"] for each in counts(table)} == {2}


def test_a_rescaling_changes_no_record_for_incremental_queries_and_time_travel() -> None:
    table = hashed()
    before, last = held(table), table.timeline.writes()[-1]
    rescaled = table.services.rescale_buckets(5, ["rome"])
    assert table.incremental(last.completed).to_arrow().num_rows == 0
    as_of = table.scan(as_of=last.requested, where="id = 'k07'").to_arrow()
    assert sorted(as_of["city"].to_pylist()) == ["oslo", "rome"]
    table.upsert(rides(("k07", "rome", 9, 9.0)))
    assert table.incremental(rescaled.completed).to_arrow()["id"].to_pylist() == ["k07"]
    assert len(before) == len(held(table)) == 60


@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
def test_a_restore_to_before_a_rescaling_brings_earlier_buckets_back(table_type: str, version: int) -> None:
    table = hashed(table_type, version)
    before, last = held(table), table.timeline.writes()[-1]
    table.services.rescale_buckets(5, ["rome"])
    table.savepoints.restore(last.requested)
    assert (held(table), counts(table), len(buckets(table, "rome"))) == (before, [], 2)
    table.upsert(rides(("k07", "rome", 9, 9.0)))
    assert len(held(table)) == 60


@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
@pytest.mark.scaled
def test_a_rescaling_that_dies_at_any_step_is_done_or_undone(table_type: str, version: int) -> None:
    start = Prepared.of(hashed(table_type, version, KEYS[:6]))
    newer = [(key, "rome", 9, 9.0) for key in KEYS[:6]]
    for storage, step in start.deaths(lambda table: table.services.rescale_buckets(3, ["rome"]), steps_min=2):
        table = opened(storage, START_MS + HOUR_MS)
        assert held(table) == start.before, step
        table.upsert(rides(*newer))
        assert held(table) == sorted([*newer, *(each for each in start.before if each[1] != "rome")]), step
        assert table.services.validate().is_sound, step
        assert (orphans(table), leftovers(table)) == ([], []), step
        assert len(counts(table)) == len([each for each in buckets(table, "rome") if each > "00000001"]), step
        table.services.rescale_buckets(3, ["rome"])
        assert len(held(table)) == 12, step


def test_a_rescaling_waits_for_other_writes_and_compactions() -> None:
    table = hashed()
    beside = options_of("upsert", {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
    lazy = {"hoodie.clean.failed.writes.policy": "LAZY"}
    with lock_table(context_of(table), beside.locking) as locked:
        time = locked.store.new_time(locked.store.load())
        with (
            begin(locked, Action.DELTA_COMMIT, time, b"", beside.failed_writes),
            locked.lock.released(),
            pytest.raises(ConflictError, match="under way"),
        ):
            table.services.rescale_buckets(5, ["rome"], options=lazy)
    table = hashed()
    before = held(table)
    assert table.services.schedule_compaction() is not None
    with pytest.raises(ConflictError, match="pending compaction"):
        table.services.rescale_buckets(5, ["rome"])
    assert (held(table), counts(table)) == (before, [])


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_table_without_partitions_gets_another_number_of_buckets(table_type: str) -> None:
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = create(table_type=table_type, partition_by=None, properties=properties)
    table.upsert(rides(*((key, "oslo", 1, 1.0) for key in KEYS)))
    assert table.services.rescale_buckets(5).files == 5
    assert buckets(table, "") == {f"{number:08}" for number in range(5)}
    newer = [(key, "oslo", 2, 2.0) for key in KEYS]
    table.upsert(rides(*newer))
    assert held(table) == newer
    assert len(table.scan(where="id = 'k07'").tasks()) == 1
    assert len(buckets(table, "")) == 5
    assert table.services.validate().is_sound


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_rules_replace_those_of_the_table_or_come_before_them(table_type: str) -> None:
    table = hashed(table_type)
    context, options = context_of(table), options_of("upsert", {})
    before = held(table)
    rules = BucketRules("ro.*,5")
    assert plan_rescaling(context, rules, options) == {"rome": 5}
    assert counts(table) == []
    assert rescale_by_rules(context, rules, options)
    assert plan_rescaling(context, rules, options) == {}
    assert not rescale_by_rules(context, rules, options)
    assert rescale_by_rules(context, BucketRules("os.*,3", is_added=True), options)
    assert (len(buckets(table, "rome")), len(buckets(table, "oslo"))) == (5, 3)
    assert rescale_by_rules(context, BucketRules("be.*,7", default=4), options)
    assert (len(buckets(table, "rome")), len(buckets(table, "oslo"))) == (4, 4)
    assert [each["expressions"] for each in counts(table)] == ["ro.*,5", "os.*,3;ro.*,5", "be.*,7"]
    assert [each["defaultBucketNumber"] for each in counts(table)] == [2, 2, 4]
    assert held(table) == before
    for wrong in (BucketRules("rome"), BucketRules("ro.*,5", default=0)):
        with pytest.raises(InvalidError):
            rescale_by_rules(context, wrong, options)
    assert table.services.validate().is_sound


def test_a_rescaling_of_what_has_no_buckets_is_refused() -> None:
    plain = create()
    plain.insert(rides(("a", "rome", 1, 1.0)))
    rings = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    ringed = create(table_type=MOR, properties=rings)
    ringed.insert(rides(("a", "rome", 1, 1.0)))
    for table in (plain, ringed):
        with pytest.raises(InvalidError, match="simple bucket engine"):
            table.services.rescale_buckets(5)
    table = hashed()
    for number, partitions in ((0, None), (5, []), (5, [""])):
        with pytest.raises(InvalidError):
            table.services.rescale_buckets(number, partitions)
