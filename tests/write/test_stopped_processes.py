"""Processes that are stopped (SIGSTOP) for longer than their lease on a table in an object store."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.archive.reader import open_archive
from tests.support.processes import running
from tests.support.rows import held, rides
from tests.support.store_server import StoreServer
from tests.support.store_tables import table_in
from tests.support.tables import COW, MOR
from tests.support.validation import errors
from tests.write.stopped_process import KEEP_FEW, LEASE_MS

WAIT = {"hoodie.write.lock.wait_time_ms": "30000", **KEEP_FEW}
FIRST = (("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0), ("c", "oslo", 1, 1.0))


def write_on(table: Table, first: int) -> None:
    """Write until archiving has passed what was pending before."""
    for ts in range(first, first + 7):
        table.upsert(rides(("b", "rome", ts, float(ts)), ("d", "oslo", ts, float(ts))), options=WAIT)


def known_writes(table: Table) -> set[str]:
    archived = open_archive(context_of(table).storage, table.config).completed("")
    return {each.requested for each in (*table.timeline.writes(), *archived) if each.is_write}


CASES = {
    "before its first file": (COW, 9, "upsert", r"rome/.*\.parquet"),
    "before it decides": (MOR, 9, "upsert", r"\.hoodie/\.locks/\d+\.claim"),
    "before it is completed": (MOR, 6, "upsert", r"\.hoodie/\d+\.deltacommit"),
    "in a clustering": (MOR, 9, "cluster", r".*_\d+\.parquet"),
    "in an archiving": (COW, 9, "archive", r"\.hoodie/timeline/history/.*"),
}


SHORT = {("s3", "before it decides")}
STORES_AND_CASES = [
    pytest.param(store, name, marks=[] if (store, name) in SHORT else pytest.mark.long)
    for store in ("s3", "gcs", "azure")
    for name in CASES
]


@pytest.mark.parametrize(("store", "name"), STORES_AND_CASES, indirect=["store"])
def test_a_process_that_was_stopped_cannot_undo_or_double_what_others_did(
    store: StoreServer, name: str
) -> None:
    table_type, version, verb, place = CASES[name]
    table = table_in(store, table_type, version)
    others = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    if verb == "archive":  # it would wait for a compaction of the metadata table
        others["hoodie.metadata.enable"] = "false"
    table.insert(rides(*FIRST), options=others)
    for ts in range(2, 8):
        table.upsert(rides(("b", "rome", ts, float(ts))), options=others)
    before = known_writes(table)
    with running("tests.write.stopped_process", table.uri, json.dumps(store.options), verb, place) as other:
        assert "/" in other.says()
        os.kill(other.pid, signal.SIGSTOP)
        time.sleep(2 * LEASE_MS / 1000)
        write_on(table, 10)
        os.kill(other.pid, signal.SIGCONT)
        other.go_on()
        end = other.says()
    latest = [("b", "rome", 16, 16.0), ("c", "oslo", 1, 1.0), ("d", "oslo", 16, 16.0)]
    never = sorted([("a", "rome", 1, 1.0), *latest])
    done = sorted([("a", "rome", 2, 2.0), *latest, ("z", "rome", 1, 1.0)])
    assert verb != "upsert" or end == "done"
    expected = done if verb == "upsert" else never
    assert held(table) == expected, end
    write_on(table, 20)
    latest = [("b", "rome", 26, 26.0), ("d", "oslo", 26, 26.0)]
    expected = sorted([*(row for row in expected if row[0] not in ("b", "d")), *latest])
    assert held(table) == expected, end
    assert before < known_writes(table)
    assert errors(table) == []
