"""Clusterings that nobody runs, and writes that find them."""

from __future__ import annotations

import pytest

from drawstring.base.errors import DrawstringError
from drawstring.model.instant import Action
from drawstring.table import Table
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, create

EXPIRES = {"hoodie.clustering.enable.expirations": "true"}
AT_ONCE = {**EXPIRES, "hoodie.clustering.expiration.threshold.mins": "0"}


def planned(table_type: str) -> Table:
    table = create(table_type=table_type)
    for number in range(2):
        table.bulk_insert(rides((f"k{number}", "rome", 1, 1.0)))
    assert table.services.schedule_clustering() is not None
    return table


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_planned_clustering_stays_until_it_expires(table_type: str) -> None:
    table = planned(table_type)
    for options in ({}, EXPIRES, {"hoodie.clustering.expiration.threshold.mins": "0"}):
        table.upsert(rides(("new", "oslo", 1, 1.0)), options=options)
        table.services.clean(options=options)
        assert table.timeline.pending_of(Action.CLUSTERING), options
    rows = held(table)
    table.services.clean(options=AT_ONCE)
    assert not table.timeline.pending_of(Action.CLUSTERING)
    assert held(table) == rows
    table.upsert(rides(("k0", "rome", 2, 2.0)))
    assert ("k0", "rome", 2, 2.0) in held(table)
    assert table.services.validate().findings == ()


def test_the_clean_after_a_write_finds_an_expired_clustering() -> None:
    table = planned(COW)
    table.insert(rides(("new", "oslo", 1, 1.0)), options=AT_ONCE)
    assert not table.timeline.pending_of(Action.CLUSTERING)


def test_writers_that_roll_back_nothing_expire_nothing() -> None:
    table = planned(COW)
    never = {**AT_ONCE, "hoodie.clean.failed.writes.policy": "NEVER"}
    try:
        table.insert(rides(("new", "oslo", 1, 1.0)), options=never)
        table.services.clean(options=never)
    except DrawstringError as error:
        pytest.fail(str(error))
    assert table.timeline.pending_of(Action.CLUSTERING)
