"""Writes and services that take the names of files from the metadata table, and never list the storage."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.filegroups.file_system_view import StorageListing
from drawstring.metadata.file_listing import MetadataListing, NamedFiles
from drawstring.model.files import FileStatus
from drawstring.model.instant import Instant
from drawstring.storage.protocol import Subfolder
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext
from tests.support.copies import copied
from tests.support.faults import FIRST, NEWER
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, create

KEPT = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
ACTIONS: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda table: table.upsert(NEWER, options=KEPT),
    "insert": lambda table: table.insert(rides(("z", "rome", 1, 1.0)), options=KEPT),
    "update": lambda table: table.update("city = 'rome'", {"fare": "fare + 1", "ts": "ts + 50"}),
    "delete": lambda table: table.delete(where="id = 'c'"),
    "insert_overwrite": lambda table: table.insert_overwrite(NEWER, options=KEPT),
    "delete_partition": lambda table: table.delete_partition("rome"),
    "compact": lambda table: table.services.compact(),
    "cluster": lambda table: table.services.cluster(),
    "clean": lambda table: table.services.clean(options={"hoodie.clean.commits.retained": "1"}),
    "savepoint": lambda table: table.savepoints.create(),
}


def opened(table: Table, *, by_metadata: bool = True) -> Table:
    """Open a table anew."""
    clock = SteppingClock(1_900_000_000_000)
    return Table(TableContext(context_of(table).storage, clock=clock, uses_metadata=by_metadata))


def written(table_type: str, *, by_metadata: bool = True, options: dict[str, str] | None = None) -> Table:
    """Create a table with some versions of its files, with a metadata table or without."""
    table = opened(create(table_type=table_type), by_metadata=by_metadata)
    chosen = {**KEPT, **(options or {})}
    table.upsert(FIRST, options=chosen)
    for ts in (3, 4, 5):
        table.upsert(rides(("c", "rome", ts, 3.0), ("d", "oslo", ts, 3.0)), options=chosen)
    return table


made = copied(written)


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No storage but that of the metadata table itself can be listed."""
    partitions, files = StorageListing.partitions, StorageListing.files

    def listed_partitions(self: StorageListing) -> list[str]:
        assert isinstance(self._storage, Subfolder)
        return partitions(self)

    def listed_files(self: StorageListing, partition: str) -> list[FileStatus]:
        assert isinstance(self._storage, Subfolder)
        return files(self, partition)

    monkeypatch.setattr(StorageListing, "partitions", listed_partitions)
    monkeypatch.setattr(StorageListing, "files", listed_files)


@pytest.mark.parametrize(
    ("table_type", "action"),
    [(kind, name) for name in ACTIONS for kind in (COW, MOR) if (kind, name) != (COW, "compact")],
)
def test_an_action_lists_no_storage_and_does_the_same(
    table_type: str, action: str, request: pytest.FixtureRequest
) -> None:
    listed, named = (made(table_type, by_metadata=each) for each in (False, True))
    ACTIONS[action](listed)
    request.getfixturevalue("unlisted")
    ACTIONS[action](named)
    kinds = [[each.action for each in table.timeline.instants] for table in (listed, named)]
    assert kinds[0] == kinds[1]
    request.getfixturevalue("monkeypatch").undo()
    assert held(named) == held(opened(named, by_metadata=False)) == held(listed)
    assert not named.services.validate().findings


def test_the_records_of_many_buckets_are_found(request: pytest.FixtureRequest) -> None:
    table = made(MOR, options=BUCKETS)
    request.getfixturevalue("unlisted")
    rows = [(f"k{number}", f"city{number % 7}", 1, 1.0) for number in range(40)]
    table.upsert(rides(*rows), options=BUCKETS)
    table.upsert(rides(*((key, city, 2, 2.0) for key, city, *_ in rows)), options=BUCKETS)
    assert {fare for key, _, _, fare in held(table) if key.startswith("k")} == {2.0}
    assert len(held(table)) == len({(key, city) for key, city, *_ in held(table)})


@pytest.mark.parametrize("is_long", [False, True])
def test_few_partitions_of_a_long_list_are_looked_up_and_many_read_at_once(
    monkeypatch: pytest.MonkeyPatch, *, is_long: bool
) -> None:
    table = made(COW)
    table.upsert(rides(*((f"k{number}", f"city{number}", 1, 1.0) for number in range(6))))
    monkeypatch.setattr(MetadataListing, "_is_long", lambda _: is_long)
    read: list[int] = []
    init = NamedFiles.__init__

    def noted(self: NamedFiles, files: Any) -> None:
        read.append(files.num_rows)
        init(self, files)

    monkeypatch.setattr(NamedFiles, "__init__", noted)
    context = context_of(table)
    listing = context.listing(table.config, table.timeline)
    assert listing is not None
    assert [len(listing.files(f"city{number}")) for number in range(6)] == [1] * 6
    assert read[:-1] == [1] * (4 if is_long else 0)
    assert read[-1] > 10
    assert listing.files("nowhere") == []


def test_a_listing_is_read_anew_where_it_is_unpickled() -> None:
    table = made(MOR)
    listing = context_of(table).listing(table.config, table.timeline)
    assert listing is not None
    before = {path: listing.files(path) for path in listing.partitions()}
    copied = pickle.dumps(listing)
    assert len(copied) < 20_000
    again = pickle.loads(copied)
    assert {path: again.files(path) for path in again.partitions()} == before


def test_a_damaged_metadata_table_stops_no_write(caplog: pytest.LogCaptureFixture) -> None:
    table = made(MOR)
    storage = context_of(table).storage
    logs = [each.path for each in storage.list_files(".hoodie/metadata/files") if ".log." in each.name]
    storage.put(sorted(logs)[-1], b"damaged")
    with caplog.at_level(logging.WARNING):
        table.upsert(NEWER)
    assert "The storage is listed instead of the metadata table" in caplog.text
    assert held(table) == held(opened(table, by_metadata=False))
    assert ("new", "bern", 2, 2.0) in held(table)


def test_a_write_reads_the_metadata_of_no_commit_but_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    table, read, seen = written(COW), TimelineStore.read, []

    def noted(store: TimelineStore, instant: Instant) -> bytes:
        seen.append(instant)
        return read(store, instant)

    monkeypatch.setattr(TimelineStore, "read", noted)
    newest = table.timeline.latest_write()
    table.upsert(NEWER, options=KEPT)
    assert {each for each in seen if each.is_write} <= {newest}


def test_a_savepoint_that_never_completed_hides_no_file() -> None:
    table = made(COW)
    last = table.timeline.writes()[-1].requested
    context_of(table).storage.put(f".hoodie/timeline/{last}.savepoint.inflight", b"")
    assert held(opened(table)) == held(opened(table, by_metadata=False))
