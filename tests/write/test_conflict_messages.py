"""What the error of a lost write says: both instants, why, the file groups, and what to do."""

from __future__ import annotations

import re

import pytest

from drawstring.base.errors import LostRaceError
from drawstring.table import Table
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
        table, upserting(("a", "rome", 9, 9.0), options=ONCE), lambda other: other.schedule_clustering()
    )
    (plan,) = table.timeline.pending()
    (group,) = [each.file_id for each in table.file_slices() if each.partition == "rome"]
    assert f"The clustering {plan.requested} of another writer was planned" in message
    assert f"it is going to rewrite file groups that this write changed: rome/{group}." in message
    assert "Write again when the clustering is done" in message
