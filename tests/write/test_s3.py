"""The whole life of a table on an object store: a real S3 server in a process of its own."""

from __future__ import annotations

import json

import pytest

import drawstring
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import ConflictError
from drawstring.txn.locks.lease_lock import LEASE_PATH, Lease, LeaseLock
from tests.support.faults import leftovers, orphans
from tests.support.rows import held, rides
from tests.support.s3_server import S3Server
from tests.support.s3_tables import table_on_s3
from tests.support.tables import COW, MOR

NO_WAIT = {"hoodie.write.lock.wait_time_ms": "50"}


@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
def test_a_table_lives_on_s3(s3: S3Server, table_type: str, version: int) -> None:
    table = table_on_s3(s3, table_type, version)
    first = table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0), ("c", "oslo", 1, 1.0)))
    second = table.upsert(rides(("a", "rome", 2, 2.0), ("b", "rome", 0, 0.0)))
    table.delete(rides(("c", "oslo", 1, 1.0)))
    expected = [("a", "rome", 2, 2.0), ("b", "rome", 1, 1.0)]
    assert held(table) == expected
    if table_type == MOR:
        assert table.compact()
        assert held(table) == expected
    assert [row[0] for row in held(table, as_of=first.instant)] == ["a", "b", "c"]
    changes = table.incremental(first.completed or first.instant, second.completed or second.instant)
    assert ("a", 2) in [(row["id"], row["ts"]) for row in changes.to_arrow().to_pylist()]
    again = drawstring.open(table.uri, storage_options=s3.options)
    assert held(again, where="city = 'rome' and fare > 1.5") == expected[:1]
    assert (orphans(again), leftovers(again)) == ([], [])


def test_a_second_writer_on_s3_gives_up_while_the_first_one_writes(s3: S3Server) -> None:
    table = table_on_s3(s3, COW, 9)
    first = LeaseLock(table._context.storage, SystemClock(), SystemIds())
    assert first.try_acquire()
    with pytest.raises(ConflictError, match=r"owner .*lease good for \d+ s more.*wait_time_ms") as caught:
        table.upsert(rides(("a", "rome", 1, 1.0)), options=NO_WAIT)
    assert caught.value.table == table.uri
    first.release()
    table.upsert(rides(("a", "rome", 1, 1.0)), options=NO_WAIT)
    assert held(table) == [("a", "rome", 1, 1.0)]


def test_the_lease_of_a_killed_writer_ends_by_itself(s3: S3Server) -> None:
    table = table_on_s3(s3, COW, 9)
    storage, now_ms = table._context.storage, SystemClock().now_ms()
    storage.put(LEASE_PATH, Lease(False, now_ms + 60_000, "killed").encode())
    with pytest.raises(ConflictError, match="owner killed"):
        table.upsert(rides(("a", "rome", 1, 1.0)), options=NO_WAIT)
    storage.put(LEASE_PATH, Lease(False, now_ms - 60_000, "killed").encode())
    table.upsert(rides(("a", "rome", 1, 1.0)), options=NO_WAIT)
    assert held(table) == [("a", "rome", 1, 1.0)]
    assert json.loads(storage.read(LEASE_PATH))["expired"] is True
