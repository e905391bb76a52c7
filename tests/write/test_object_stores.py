"""The whole life of a table in an object store: a server of each kind in a process of its own."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import replace

import pytest

import drawstring
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import ConflictError
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.locks.storage_lock import LEASE_PATH, Lease, LeaseLock
from tests.support.faults import leftovers, orphans
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.processes import running
from tests.support.rows import held, rides
from tests.support.storages import Aged
from tests.support.store_server import StoreServer, s3_first
from tests.support.store_tables import table_in
from tests.support.tables import COW, MOR

NO_WAIT = {"hoodie.write.lock.wait_time_ms": "50"}


@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
def test_a_table_lives_in_a_store(store: StoreServer, table_type: str, version: int) -> None:
    table = table_in(store, table_type, version)
    first = table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0), ("c", "oslo", 1, 1.0)))
    second = table.upsert(rides(("a", "rome", 2, 2.0), ("b", "rome", 0, 0.0)))
    table.delete(rides(("c", "oslo", 1, 1.0)))
    expected = [("a", "rome", 2, 2.0), ("b", "rome", 1, 1.0)]
    assert held(table) == expected
    for _ in range(2 if table_type == MOR else 0):
        assert table.services.compact()
        assert held(table) == expected
        table.upsert(rides(("a", "rome", 2, 2.0)))
    assert [row[0] for row in held(table, as_of=first.instant)] == ["a", "b", "c"]
    changes = table.incremental(first.completed or first.instant, second.completed or second.instant)
    assert ("a", 2) in [(row["id"], row["ts"]) for row in changes.to_arrow().to_pylist()]
    again = drawstring.open(table.uri, storage_options=store.options)
    assert held(again, where="city = 'rome' and fare > 1.5") == expected[:1]
    assert table.services.clean(retain_commits=1)
    assert held(again) == expected
    assert (orphans(again), leftovers(again)) == ([], [])


@pytest.mark.parametrize("fail_after", [1, 4, 8])
def test_what_a_dead_writer_left_in_a_store_is_rolled_back(store: StoreServer, fail_after: int) -> None:
    table = table_in(store, MOR, 9)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)))
    dying = Table(replace(context_of(table), storage=FaultyStorage(context_of(table).storage, fail_after)))
    with pytest.raises(InjectedFault):
        dying.upsert(rides(("a", "rome", 2, 2.0), ("b", "oslo", 2, 2.0)))
    later = Table(replace(context_of(table), storage=Aged(context_of(table).storage)))
    later.upsert(rides(("c", "rome", 1, 1.0)))
    ts = {row[0]: row[2] for row in held(table)}
    assert ts in ({"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 2, "c": 1})
    assert (orphans(table), leftovers(table)) == ([], [])


@s3_first
def test_two_processes_take_turns(store: StoreServer) -> None:
    table = table_in(store, COW, 9)
    arguments = (table.uri, json.dumps(store.options), "upsert", re.escape(LEASE_PATH))
    with ExitStack() as stack:
        writers = [stack.enter_context(running("tests.write.stopped_process", *arguments)) for _ in range(2)]
        assert [writer.says() for writer in writers] == [LEASE_PATH, LEASE_PATH]
        for writer in writers:
            writer.go_on()
        assert [writer.says() for writer in writers] == ["done", "done"]
    assert held(table) == [("a", "rome", 2, 2.0), ("z", "rome", 1, 1.0)]
    assert len(table.timeline.writes()) == 2


@s3_first
def test_a_second_writer_gives_up_while_the_first_one_writes(store: StoreServer) -> None:
    table = table_in(store, COW, 9)
    first = LeaseLock(context_of(table).storage, SystemClock(), SystemIds())
    assert first.try_acquire()
    with pytest.raises(ConflictError, match=r"owner .*lease good for \d+ s more.*wait_time_ms") as caught:
        table.upsert(rides(("a", "rome", 1, 1.0)), options=NO_WAIT)
    assert caught.value.table == table.uri
    first.release()
    table.upsert(rides(("a", "rome", 1, 1.0)), options=NO_WAIT)
    assert held(table) == [("a", "rome", 1, 1.0)]


@s3_first
def test_the_lease_of_a_killed_writer_ends_by_itself(store: StoreServer) -> None:
    table = table_in(store, COW, 9)
    storage, clock = context_of(table).storage, SystemClock()
    storage.put(LEASE_PATH, Lease(False, clock.now_ms() + 60_000, "killed").encode())
    with pytest.raises(ConflictError, match="owner killed"):
        table.upsert(rides(("a", "rome", 1, 1.0)), options=NO_WAIT)
    storage.put(LEASE_PATH, Lease(False, clock.now_ms() + 1_500, "killed").encode())
    table.upsert(rides(("a", "rome", 1, 1.0)), options={"hoodie.write.lock.wait_time_ms": "20000"})
    assert held(table) == [("a", "rome", 1, 1.0)]
    assert json.loads(storage.read(LEASE_PATH))["expired"] is True
