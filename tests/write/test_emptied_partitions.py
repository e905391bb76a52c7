"""Writes to a partition that a clean takes for empty at the same time."""

from __future__ import annotations

import pytest

from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.interleavings import NOW_MS, interleave, opened
from tests.support.rows import rides
from tests.support.simulation.pauses import SharedClock
from tests.support.tables import BUCKETS, COW, MOR, WITHOUT_SERVICES, create

EVERY = 3
"""Of so many storage calls one is tried."""

HOUR_MS = 3_600_000


def with_dropped_partition(
    table_type: str, version: int, how: dict[str, str], uses_metadata: bool = False
) -> Table:
    """Return a table with a partition whose files the next clean deletes."""
    created = create(table_type=table_type, version=version, properties=how)
    table = opened(context_of(created).storage, SharedClock(NOW_MS - HOUR_MS), uses_metadata)
    table.upsert(rides(("a", "bern", 1, 1.0), ("b", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    table.delete_partition("bern", options=WITHOUT_SERVICES)
    for ts in (2, 3):
        table.upsert(rides(("b", "rome", ts, 1.0)), options=WITHOUT_SERVICES)
    return table


@pytest.mark.parametrize(
    ("table_type", "version", "how"), [(COW, 9, {}), (MOR, 9, BUCKETS), (MOR, 6, {})], ids=str
)
def test_a_clean_that_drops_the_partition_of_a_write_loses_no_rows(
    table_type: str, version: int, how: dict[str, str]
) -> None:
    outcomes = interleave(
        with_dropped_partition(table_type, version, how),
        lambda table, options: table.upsert(rides(("n", "bern", 9, 9.0)), options=options),
        lambda table, options: table.services.clean(retain_commits=1, options=options),
        every=EVERY,
    )
    assert "done" in outcomes


@pytest.mark.parametrize(("table_type", "how"), [(COW, {}), (MOR, BUCKETS)], ids=str)
def test_the_metadata_table_keeps_a_partition_that_a_write_fills_after_a_clean(
    table_type: str, how: dict[str, str]
) -> None:
    table = with_dropped_partition(table_type, 9, how, uses_metadata=True)
    assert table.config.metadata_partitions == ("files",)
    outcomes = interleave(
        table,
        lambda table, options: table.upsert(rides(("n", "bern", 9, 9.0)), options=options),
        lambda table, options: table.services.clean(retain_commits=1, options=options),
        every=EVERY,
    )
    assert "done" in outcomes
