"""What the error of a lost write says: both instants, why, the file groups, and what to do."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from drawstring.base.errors import LostRaceError
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import Act, Interrupted, on, upserting
from tests.support.rows import rides
from tests.support.tables import BUCKETS, MOR, NEW_FILE_GROUPS, filled, store_of

ONCE = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"}
NEW_GROUPS = {**OPTIMISTIC, **NEW_FILE_GROUPS}
BESIDE = {**ONCE, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
ONE_BUCKET = {**BUCKETS, "hoodie.bucket.index.num.buckets": "1"}
NEW = ("n", "rome", 5, 5.0)


def lost(table: Table, write: Act, act: Act) -> str:
    """Return the message of a write while which others act; it names both and the other's file groups."""
    with pytest.raises(LostRaceError) as caught:
        write(on(Interrupted(table, act)))
    (own,) = table.timeline.rolled_back
    assert f"while this write, {own}, ran" in str(caught.value)
    assert "Nothing of this write was committed. Write again" in str(caught.value)
    return str(caught.value)


def of_newest(table: Table) -> str:
    """Return how a message names the newest write and its file groups."""
    write = table.timeline.latest_write()
    assert write is not None
    stats = {f"{each.partition}/{each.file_id}" for each in store_of(table).commit_metadata(write).stats}
    return f"{write.requested} .*{', '.join(sorted(stats))}"


@pytest.mark.parametrize(
    ("write", "act", "why"),
    [
        (
            lambda table: table.update("fare > 0", {"fare": "fare + 1"}, options=ONCE),
            upserting(("n", "oslo", 5, 5.0)),
            "changed or added rows where this write reads them",
        ),
        (
            upserting(("n", "rome", 6, 6.0), options=ONCE),
            lambda table: table.upsert(rides(NEW), options=NEW_GROUPS),
            "both may have inserted the same new keys",
        ),
        (
            lambda table: table.insert_overwrite(rides(NEW), options=ONCE),
            lambda table: table.insert(rides(NEW), options=NEW_GROUPS),
            "replaces all rows of partitions",
        ),
    ],
    ids=["read", "same key", "overwritten"],
)
def test_a_conflict_over_rows_says_why_and_where(write: Act, act: Act, why: str) -> None:
    table = filled()
    message = lost(table, write, act)
    assert why in message
    assert re.search("The commit " + of_newest(table), message)


def test_two_that_fill_a_new_bucket_are_told_so() -> None:
    table = filled(table_type=MOR, properties=ONE_BUCKET)
    message = lost(
        table,
        upserting(("n", "oslo", 6, 6.0), ("a", "rome", 6, 6.0), options=BESIDE),
        upserting(("m", "oslo", 5, 5.0)),
    )
    assert "both filled the same new buckets" in message
    assert re.search("The deltacommit " + of_newest(table), message)


def test_a_write_is_told_to_wait_for_a_clustering_that_was_planned_meanwhile() -> None:
    table = filled()
    message = lost(
        table,
        upserting(("a", "rome", 9, 9.0), options=ONCE),
        lambda other: other.services.schedule_clustering(),
    )
    (plan,) = table.timeline.pending()
    (group,) = [each.file_id for each in table.inspect.files() if each.partition == "rome"]
    assert f"The clustering {plan.requested} of another writer was planned" in message
    assert f"it is going to rewrite file groups that this write changed: rome/{group}." in message
    assert "Write again when the clustering is done" in message


def test_a_schema_that_both_change_is_told_with_the_other_write() -> None:
    table = filled()
    by_others, own = (
        rides(("n", "bern", 5, 5.0), ("a", "rome", 5, 5.0)).append_column(name, pa.array(["x", "y"]))
        for name in ("note", "remark")
    )
    with pytest.raises(LostRaceError, match="changed the schema") as caught:
        on(Interrupted(table, lambda other: other.append(by_others))).append(own, options=ONCE)
    (dead,) = table.timeline.rolled_back
    other = table.timeline.latest_write()
    assert other is not None
    assert f"The commit {other.requested} of another writer" in str(caught.value)
    assert f"while this write, {dead}, which changes it too" in str(caught.value)


def test_properties_that_changed_are_named() -> None:
    table = filled()
    path = ".hoodie/hoodie.properties"

    def change(other: Table) -> None:
        storage = context_of(other).storage
        storage.put(path, storage.read(path) + b"hoodie.table.note=x\n")

    with pytest.raises(LostRaceError, match=r"properties of the table \(hoodie\.table\.note\)") as caught:
        on(Interrupted(table, change)).upsert(rides(NEW), options=ONCE)
    (dead,) = table.timeline.rolled_back
    assert f"this write, {dead}, ran" in str(caught.value)
    assert caught.value.path == path


def test_a_write_that_was_rolled_back_meanwhile_names_the_rollback() -> None:
    table = filled()

    def roll_back(other: Table) -> None:
        storage = context_of(other).storage
        (write,) = other.timeline.pending_writes()
        storage.delete([f"{HEARTBEAT_FOLDER}/{write.requested}"])
        other.services.rollback(write.requested)

    with pytest.raises(LostRaceError) as caught:
        on(Interrupted(table, roll_back)).upsert(rides(NEW), options=ONCE)
    (rollback,) = table.timeline.completed_of(Action.ROLLBACK)
    assert f"while it ran (by the rollback {rollback.requested})" in str(caught.value)
    assert str(caught.value).endswith(f"instant: {next(iter(table.timeline.rolled_back))})")
