"""A look at a table whose timeline or properties change between two storage calls."""

from __future__ import annotations

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError
from drawstring.model.instant import Action
from drawstring.storage.protocol import Storage
from drawstring.testing import context_of
from drawstring.timeline.archive.lsm import current_version, encode_manifest
from drawstring.timeline.properties import BACKUP_PATH, PROPERTIES_PATH, load_config
from drawstring.timeline.store import TimelineStore
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import rides
from tests.support.tables import create


class ChangesAfter(FaultyStorage):
    """Others put and delete files after a file was asked for, once.

    Args:
        inner: the storage that does the work.
        path: of the file.
        put: what they put, by path.
        delete: what they delete.
    """

    def __init__(self, inner: Storage, path: str, put: dict[str, bytes], delete: list[str]) -> None:
        super().__init__(inner, 1 << 60)
        self._inner, self._path, self._put, self._delete = inner, path, put, delete

    def read(self, path: str) -> bytes:
        try:
            return super().read(path)
        finally:
            if path == self._path:
                self._path = ""
                for each, data in self._put.items():
                    self._inner.put(each, data)
                self._inner.delete(self._delete)


def test_properties_that_are_changed_during_a_look_are_not_lost() -> None:
    storage = context_of(create()).storage
    data = storage.read(PROPERTIES_PATH)
    storage.put(BACKUP_PATH, data)
    storage.delete([PROPERTIES_PATH])  # as Hudi does before it writes them anew
    changing = ChangesAfter(storage, PROPERTIES_PATH, {PROPERTIES_PATH: data}, [BACKUP_PATH])
    assert load_config(changing).name == "rides"
    storage.delete([PROPERTIES_PATH])
    create_lost = ChangesAfter(storage, "", {}, [])
    storage.put(".hoodie/timeline/20260101000000000.commit.requested", b"")
    with pytest.raises(CorruptTableError):
        load_config(create_lost)


def test_a_plan_that_was_taken_off_during_a_look_is_no_damage() -> None:
    table = create(version=6)
    table.insert(rides(("a", "rome", 1, 1.0)))
    instant = table.services.schedule_clustering()
    assert instant is not None
    (pending,) = table.timeline.pending_of(Action.CLUSTERING)
    storage = context_of(table).storage
    plan = f".hoodie/{pending.requested}.replacecommit.requested"
    data = storage.read(plan)

    class TakenOff(FaultyStorage):
        def read(self, path: str) -> bytes:
            if path == plan:
                storage.delete([plan])
            return super().read(path)

    store = TimelineStore(TakenOff(storage, 1 << 60), table.config, SteppingClock())
    assert pending.requested not in {each.requested for each in store.load().instants}
    storage.put(plan, data)
    storage.put(f".hoodie/{pending.requested}.replacecommit.inflight", b"")
    with pytest.raises(CorruptTableError, match="requested file of this replacecommit"):
        store.load()


def test_a_version_of_the_archive_that_is_being_written_does_not_count() -> None:
    storage = context_of(create()).storage
    storage.put("folder/manifest_3", encode_manifest([]))
    assert current_version(storage, "folder") == 3
    storage.put("folder/_version_", b"")
    assert current_version(storage, "folder") == 3
