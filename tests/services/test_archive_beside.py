"""Archiving beside others: what needs no table lock is done without it, and what they do meanwhile counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import ConflictError, InvalidError, UnavailableError
from drawstring.model.instant import Action
from drawstring.services import archive
from drawstring.storage.local import FileSystem, LocalStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.archive.writer import Prepared, shorten
from drawstring.txn.locks.file_lock import FileLock
from drawstring.txn.locks.table_lock import FILE_LOCK_PATH
from drawstring.txn.table_context import TableContext
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.interleavings import opened
from tests.support.rows import held, rides
from tests.support.stalled import Stalled, check, shared
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create, listing, store_of
from tests.support.validation import errors

SHORT = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "2"}


class Watching(FileSystem):
    """Notes the flushes and deletions that happen while somebody holds the table lock."""

    lock: FileLock | None = None

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[str] = []
        self.deleted: list[str] = []

    def _is_locked(self) -> bool:
        return self.lock is not None and self.lock.is_held()

    def flush_file(self, descriptor: int, path: str) -> None:
        if self._is_locked():
            self.flushed.append(path)
        super().flush_file(descriptor, path)

    def flush_folder(self, path: str) -> None:
        if self._is_locked():
            self.flushed.append(path)
        super().flush_folder(path)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        if self._is_locked():
            self.deleted.append(path)


def upserted(table: Table, count: int, options: dict[str, str] = WITHOUT_SERVICES) -> list[str]:
    return [table.upsert(rides(("a", "rome", n, float(n))), options=options).instant for n in range(count)]


def archived(storage: Storage, table: Table) -> list[str]:
    return [each.requested for each in open_archive(storage, table.config).completed("") if each.is_write]


def test_only_the_publication_of_the_archive_needs_the_table_lock(tmp_path: Path) -> None:
    address = str(tmp_path / "table")
    times = upserted(create(path=address, table_type=MOR), 12, {**WITHOUT_SERVICES, **COMPACTED})
    files = Watching()
    storage = LocalStorage(address, files=files)
    table = Table(TableContext(storage))
    files.lock = FileLock(f"{address}/{FILE_LOCK_PATH}")
    result = table.services.archive(options=SHORT)
    assert result and result.instants >= 6
    assert archived(storage, table) == times[: -len(table.timeline.writes())]
    folders = [each for each in files.flushed if each.endswith("history")]
    assert files.flushed == folders, "nothing but the names in the archives"
    assert 0 < len(folders) <= 4
    assert [each for each in files.deleted if "commit" in each] == []
    assert held(table) == [("a", "rome", 11, 11.0)]


class Beside(FaultyStorage):
    """Lets others act once, after the files of the archive were made and before they are published.

    Args:
        inner: the storage that does the work.
        act: what they do.
    """

    def __init__(self, inner: Storage, act: Callable[[], object]) -> None:
        super().__init__(inner, 1 << 60)
        self._act: Callable[[], object] | None = act

    def stage(self, files: Sequence[tuple[str, bytes]]) -> Callable[[], None]:
        act, self._act = self._act, None
        if act is not None:
            act()
        return super().stage(files)


@pytest.mark.parametrize("version", [6, 9])
def test_a_savepoint_that_others_make_meanwhile_is_kept(version: int) -> None:
    table = listing(create(version=version))
    times = upserted(table, 8)
    storage = context_of(table).storage
    beside = listing(Table(TableContext(Beside(storage, lambda: table.savepoints.create(times[2])))))
    result = beside.services.archive(options=SHORT)
    assert result and result.last == times[1]
    assert [each.requested for each in table.timeline.writes()] == times[2:]


@pytest.mark.parametrize("version", [6, 9])
def test_two_that_archive_at_the_same_time_archive_each_instant_once(version: int) -> None:
    table = listing(create(version=version))
    times = upserted(table, 8)
    storage = context_of(table).storage

    def others() -> None:
        table.services.archive(options=SHORT)
        upserted(table, 3)

    listing(Table(TableContext(Beside(storage, others)))).services.archive(options=SHORT)
    there = [each.requested for each in table.timeline.writes()]
    assert len(there) == 3
    assert archived(storage, table) + there == [*times, *there]


class Dying(FaultyStorage):
    """Dies when the completed file of a write is to leave the timeline.

    Args:
        inner: the storage that does the work.
        requested: of the write.
    """

    def __init__(self, inner: Storage, requested: str) -> None:
        super().__init__(inner, 1 << 60)
        self._requested = requested

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            if self._requested in path and path.endswith("commit"):
                raise InjectedFault("killed")
            super().delete([path])


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_in_the_archive_that_is_still_on_the_timeline_gets_no_savepoint(
    version: int,
) -> None:
    table = listing(create(version=version))
    times = upserted(table, 8)
    with pytest.raises(InjectedFault):
        listing(Table(TableContext(Dying(context_of(table).storage, times[2])))).services.archive(
            options=SHORT
        )
    assert [each.requested for each in table.timeline.writes()] == times[2:]
    with pytest.raises(InvalidError, match=times[6]):
        table.savepoints.create(times[3])
    table.savepoints.create(times[6])
    table.services.archive(options=SHORT)
    assert archived(context_of(table).storage, table) == times[:5]
    assert [each.requested for each in table.timeline.writes()] == times[5:]


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_was_archived_since_the_timeline_was_read_can_still_be_read(version: int) -> None:
    table = listing(create(version=version))
    upserted(table, 8)
    store = store_of(table)
    first = store.load().writes()[0]
    expected = store_of(table).commit_metadata(first)
    assert table.services.archive(options=SHORT)
    assert store.commit_metadata(first) == expected


Shorten = Callable[[], None]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Callable[[Table], Shorten]:
    """Let others archive, and stand still before anything leaves the timeline; a call lets them go on."""

    def publish(table: Table) -> Shorten:
        waiting: list[Prepared] = []
        with monkeypatch.context() as patched:
            patched.setattr(archive, "shorten", lambda *prepared: waiting.extend(prepared))
            assert table.services.archive(options=SHORT)
        return lambda: shorten(*waiting)

    return publish


class BeforeReading(FaultyStorage):
    """Lets others act once, before a file is read for a number of times.

    Args:
        inner: the storage that does the work.
        path: part of the path of the file.
        times: the number.
        act: what they do.
    """

    def __init__(self, inner: Storage, path: str, times: int, act: Callable[[], object]) -> None:
        super().__init__(inner, 1 << 60)
        self._path = path
        self._left = times
        self._act = act

    def read(self, path: str) -> bytes:
        if self._path in path:
            self._left -= 1
            if self._left == 0:
                self._act()
        return super().read(path)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("times", [1, 2], ids=["without the lock", "under the lock"])
def test_instants_that_others_take_away_while_it_is_planned_do_no_harm(
    version: int, times: int, published: Callable[[Table], Shorten]
) -> None:
    table = listing(create(version=version))
    first = upserted(table, 4)
    table.services.clean(options=SHORT)
    (clean,) = [each for each in table.timeline.instants if each.action is Action.CLEAN]
    more = upserted(table, 8)
    act = published(table)
    latest = [table.upsert(rides(("a", "rome", 50 + n, 1.0)), options=WITHOUT_SERVICES) for n in range(2)]
    storage = context_of(table).storage
    beside = BeforeReading(storage, f"{clean.requested}", times, act)
    listing(Table(TableContext(beside))).services.archive(options=SHORT)
    there = [each.requested for each in table.timeline.writes()]
    assert archived(storage, table) + there == [*first, *more, *(each.instant for each in latest)]
    assert len(there) == 3
    assert errors(table) == []


class Unlisted(FaultyStorage):
    """Does not list the timeline of the metadata table."""

    def list_names(self, folder: str) -> list[str]:
        if folder.startswith(".hoodie/metadata/"):
            raise UnavailableError("The storage failed.", path=folder)
        return super().list_names(folder)


def test_nothing_is_archived_while_the_metadata_table_cannot_be_read() -> None:
    table = create()
    times = upserted(table, 8)
    assert table.services.plan_archive(options=SHORT) == [], "the metadata table was not compacted yet"
    with pytest.raises(UnavailableError):
        Table(TableContext(Unlisted(context_of(table).storage, 1 << 60))).services.archive(options=SHORT)
    assert [each.requested for each in table.timeline.writes()] == times


@pytest.mark.parametrize(("old", "new"), [(6, 9), (9, 6)])
@pytest.mark.parametrize("reads", [1, 5, 9, None], ids=str)
def test_a_version_changes_while_others_take_archived_instants_away(
    old: int, new: int, reads: int | None, tmp_path: Path, published: Callable[[Table], Shorten]
) -> None:
    table = listing(create(path=tmp_path / "t", version=old))
    times = upserted(table, 8)
    act = published(table)
    storage = context_of(table).storage
    beside = BeforeReading(storage, "commit", reads or 0, act)
    listing(Table(TableContext(beside))).versions.upgrade(new) if new > old else listing(
        Table(TableContext(beside))
    ).versions.downgrade(new)
    if reads is None:
        act()
    changed = listing(drawstring.open(tmp_path / "t"))
    there = [each.requested for each in changed.timeline.writes()]
    assert sorted({*archived(storage, changed), *there}) == times
    assert held(changed) == [("a", "rome", 7, 7.0)]
    assert errors(changed) == []
    more = upserted(changed, 3)
    changed.services.archive(options=SHORT)
    there = [each.requested for each in changed.timeline.writes()]
    assert archived(storage, changed) + there == [*times, *more]
    assert len(there) == 3


class StallsPublishing(Stalled):
    """Stands still before it puts a manifest of the archive."""

    def _look(self, path: str, data: bytes) -> None:
        if path.rpartition("/")[2].startswith("manifest_"):
            self._stand()


def test_an_archiver_that_loses_the_lock_before_its_last_put_leaves_a_write_that_got_a_savepoint() -> None:
    storage, clock = shared(COW, 9)
    table = opened(storage, clock)
    upserted(table, 6)
    table.services.archive(options=SHORT)  # the manifests of a first archive count without a version file
    before = archived(storage, table)
    times = upserted(table, 6)
    stalled = StallsPublishing(storage, clock, lambda other: other.savepoints.create(times[0]))
    with pytest.raises(ConflictError, match="lease on the table was lost"):
        opened(stalled, clock).services.archive(options=SHORT)
    assert stalled.has_stood
    check(storage, clock)
    assert archived(storage, table) == before != []
    table.savepoints.restore(times[0])
    assert held(table) == [("a", "rome", 5, 5.0), ("b", "rome", 1, 1.0)]
    upserted(table, 6)
    table.services.archive(options=SHORT)
    assert len(archived(storage, table)) > len(before)
