"""What a write asks of the storage while it holds the table lock, in its own order.

In an object store each of these requests takes milliseconds, and other writers wait meanwhile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import drawstring
from drawstring.engine.local import LocalEngine
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.txn.locks.storage_lock import LEASE_PATH
from drawstring.txn.table_context import TableContext
from tests.support.rows import held, rides
from tests.support.tables import MOR, create

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
REQUESTS = (
    *("list_files", "list_folders", "list_tree", "read", "read_versioned", "exists", "open"),
    *("put", "put_if_absent", "put_if_match", "delete", "delete_tree"),
)


class Watched(MemoryStorage):
    """Notes the requests of one writer while anybody holds the table lock, those of the lock left out.

    Others write once the files of a write are there.
    """

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.others: list[Callable[[], object]] = []
        self.noted: list[str] = []

    def note(self, request: str, path: Any) -> None:
        lease = MemoryStorage.read_versioned(self, LEASE_PATH)
        is_held = lease is not None and not json.loads(lease[0])["expired"]
        if is_held and path != LEASE_PATH:
            path = path if isinstance(path, str) else " ".join(path)
            self.noted.append(f"{request} {named(path)}")

    def list_names(self, folder: str) -> list[str]:
        self.note("list_names", folder)
        return [status.name for status in MemoryStorage.list_files(self, folder)]

    def sync(self, folders: Iterable[str]) -> None:
        super().sync(folders)
        while self.others:
            self.others.pop()()


def _noting(request: str) -> Callable[..., Any]:
    made = getattr(MemoryStorage, request)

    def noted(self: Watched, path: Any, *rest: Any) -> Any:
        path = path if isinstance(path, str) else list(path)
        self.note(request, path)
        return made(self, path, *rest)

    return noted


for _request in REQUESTS:
    setattr(Watched, _request, _noting(_request))


def named(path: str) -> str:
    """Return a path without what differs from run to run."""
    path = path.replace(".hoodie/metadata/", "mdt/").replace(".hoodie/", "")
    return re.sub(r"-0_T.*", "-0_T", re.sub(r"\d{17}", "T", path))


def watched(*rows: tuple[Any, ...]) -> tuple[Table, Watched]:
    table = create(table_type=MOR, properties=BUCKETS)
    table.insert(rides(*rows))
    storage = Watched(table.uri)
    return Table(TableContext(storage, LocalEngine(threads=1))), storage


BEGIN = [
    "read hoodie.properties",
    "list_names timeline",
    "read timeline/T_T.deltacommit",
    "list_folders .hoodie",
    "list_files .locks",
    "list_folders .temp",
    "put .heartbeat/T",
    "put_if_absent timeline/T.deltacommit.requested",
    "put_if_absent timeline/T.deltacommit.inflight",
]
COMMIT = [
    "list_files .locks",
    "list_names timeline",
    "read hoodie.properties",
    "put_if_absent .locks/T.claim",
    "read_versioned .locks/T.claim",
    "put_if_match .locks/T.claim",
    "list_names timeline",
    "read hoodie.properties",
    "read mdt/hoodie.properties",
    "list_names mdt/timeline",
    "put_if_absent mdt/timeline/T.deltacommit.requested",
    "put_if_absent mdt/timeline/T.deltacommit.inflight",
    "put mdt/files/.files-0000-0_T",
    "put_if_absent mdt/.locks/T.claim",
    "list_names mdt/timeline",
    "put_if_absent mdt/timeline/T_T.deltacommit",
    "delete mdt/.locks/T.claim",
    "put_if_absent timeline/T_T.deltacommit",
]


def test_a_write_asks_for_nothing_under_the_table_lock_that_can_wait_or_be_done_before() -> None:
    table, storage = watched(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    assert storage.noted == [*BEGIN, *COMMIT]


def test_what_others_committed_meanwhile_is_read_before_the_table_lock_is_taken_again() -> None:
    table, storage = watched(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0))
    slow = Watched(table.uri)
    slow.others = [lambda: table.upsert(rides(("a", "rome", 2, 2.0)))]
    storage.others = [lambda: drawstring.open(table.uri).upsert(rides(("b", "oslo", 2, 2.0)))]
    Table(TableContext(slow, LocalEngine(threads=1))).upsert(rides(("c", "bern", 1, 1.0)))
    assert storage.noted == [*BEGIN[:4], "list_files .heartbeat", *BEGIN[4:], *COMMIT]
    assert len(held(table)) == 3
