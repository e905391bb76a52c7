"""Partitions go when their time is over, and no sooner."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.base.clock import SteppingClock, SystemClock
from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create, listing

DAY_MS = 86_400_000
FIRST_DAY_MS = SystemClock().now_ms() - 8 * DAY_MS
"""The eighth day is today: files that tasks write get today's time."""

DAYS = "hoodie.partition.ttl.strategy.days.retain"

tables = pytest.mark.parametrize(("table_type", "version"), [(COW, 6), (COW, 9), (MOR, 6), (MOR, 9)])


def on_day(storage: Storage, day: int) -> Table:
    """Open a table on a day; its files get that day's time."""
    clock = SteppingClock(FIRST_DAY_MS + day * DAY_MS)
    return Table(TableContext(MemoryStorage(storage.spec.uri, clock), clock=clock))


def lived_in(table_type: str, version: int, **options: Any) -> Storage:
    """Rome is written to on days 0 and 8 (an update), oslo on day 0, bern on day 5."""
    storage = context_of(
        create(table_type=table_type, version=version, properties={"hoodie.index.type": "SIMPLE"})
    ).storage
    on_day(storage, 0).upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=WITHOUT_SERVICES)
    on_day(storage, 5).upsert(rides(("c", "bern", 1, 1.0)), options=WITHOUT_SERVICES)
    on_day(storage, 8).upsert(rides(("a", "rome", 2, 2.0)), options={**WITHOUT_SERVICES, **options})
    return storage


@tables
def test_partitions_go_that_nobody_wrote_to_for_so_long(table_type: str, version: int) -> None:
    table = on_day(lived_in(table_type, version), 10)
    assert table.services.plan_expiry(options={DAYS: 11}) == []
    assert not table.services.expire_partitions(options={DAYS: 11})
    assert table.services.plan_expiry(options={DAYS: 3}) == ["bern", "oslo"]
    result = table.services.expire_partitions(options={DAYS: 6})
    assert result
    assert held(table) == [("a", "rome", 2, 2.0), ("c", "bern", 1, 1.0)]
    assert not table.services.expire_partitions(options={DAYS: 6})
    table.upsert(rides(("b", "oslo", 9, 9.0)))
    assert table.services.plan_expiry(options={DAYS: 6}) == []


@pytest.mark.parametrize("version", [6, 9])
def test_the_first_write_counts_where_that_is_asked_for(version: int) -> None:
    table = on_day(lived_in(COW, version), 10)
    by_creation = {"hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME", DAYS: 7}
    assert table.services.plan_expiry(options=by_creation) == ["oslo", "rome"]
    one = {"hoodie.partition.ttl.strategy.max.delete.partitions": "1"}
    assert table.services.plan_expiry(options={**by_creation, **one}) == ["oslo"]
    rome = {"hoodie.partition.ttl.strategy.partition.selected": "rome,paris"}
    assert table.services.plan_expiry(options={**by_creation, **rome}) == ["rome"]


def test_a_write_drops_old_partitions_when_told_to() -> None:
    storage = lived_in(COW, 9, **{"hoodie.partition.ttl.inline": "true", DAYS: "4"})
    assert held(on_day(storage, 9)) == [("a", "rome", 2, 2.0), ("c", "bern", 1, 1.0)]


@tables
@pytest.mark.parametrize("lost", [".parquet", ""], ids=["base file", "folder"])
def test_a_damaged_partition_holds_up_no_other(
    table_type: str, version: int, lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage = lived_in(table_type, version)
    storage.delete([each.path for each in storage.list_tree("bern") if each.name.endswith(lost)])
    table = listing(on_day(storage, 10))
    assert table.services.plan_expiry(options={DAYS: 3}) == ["oslo"]
    result = table.services.expire_partitions(options={DAYS: 3})
    assert result
    assert result.partitions_dropped == 1
    assert "partition 'bern' is damaged and is not dropped" in caplog.text
    with pytest.raises(CorruptTableError):
        held(table)
    table.delete_partition("bern")
    assert held(table) == [("a", "rome", 2, 2.0)]


@pytest.mark.parametrize("version", [6, 9])
def test_a_late_update_in_a_log_file_keeps_a_partition_when_its_commit_is_archived(version: int) -> None:
    storage = lived_in(MOR, version)
    short = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    for number in range(5):
        on_day(storage, 9).upsert(rides(("z", "milan", number, 1.0)), options=short)
    table = on_day(storage, 10)
    assert len(table.timeline.writes()) <= 5
    assert table.services.plan_expiry(options={DAYS: 3}) == ["bern", "oslo"]


def test_what_is_not_said_or_not_known_is_refused() -> None:
    table = create()
    with pytest.raises(InvalidError, match=r"days\.retain"):
        table.services.expire_partitions()
    with pytest.raises(InvalidError, match=r"days\.retain"):
        table.upsert(rides(("a", "rome", 1, 1.0)), options={"hoodie.partition.ttl.inline": "true"})
    with pytest.raises(UnsupportedError, match="CUSTOM"):
        table.services.expire_partitions(
            options={"hoodie.partition.ttl.management.strategy.type": "CUSTOM", DAYS: 1}
        )
    assert table.timeline.instants == ()
