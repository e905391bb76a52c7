"""Small tables without rows, for the rooms that never look at any."""

from __future__ import annotations

import uuid
from pathlib import Path

from drawstring.base.clock import SteppingClock
from drawstring.config.table.config import TableConfig
from drawstring.model.files import FileStatus
from drawstring.model.instant import Action, Instant
from drawstring.storage.local import LocalStorage
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties_store import create_table, load_config
from drawstring.timeline.store import TimelineStore
from tests.support.golden import unpack

LAYOUTS = {6: 1, 8: 2, 9: 2}


def properties(version: int, table_type: str = "MERGE_ON_READ") -> dict[str, str]:
    newer = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.timeline.path": "timeline"}
    return {
        "hoodie.table.name": "rides",
        "hoodie.table.type": table_type,
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": str(LAYOUTS[version]),
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "city",
        "hoodie.table.timeline.timezone": "UTC",
        **(newer if version > 6 else {}),
    }


def memory() -> MemoryStorage:
    return MemoryStorage(f"memory://{uuid.uuid4()}")


def new_table(version: int, storage: Storage | None = None) -> tuple[Storage, TableConfig]:
    storage = storage or memory()
    return storage, create_table(storage, properties(version), SteppingClock())


def new_store(version: int) -> tuple[Storage, TimelineStore]:
    storage, config = new_table(version)
    return storage, TimelineStore(storage, config, SteppingClock())


def begin(store: TimelineStore, action: Action = Action.DELTA_COMMIT) -> Instant:
    return store.start(store.request(action, store.new_time(store.load())))


def golden(name: str, folder: Path) -> tuple[LocalStorage, TableConfig]:
    """Unpack a table that real Hudi wrote."""
    storage = LocalStorage(str(unpack(name, folder)))
    return storage, load_config(storage)


def paths(storage: Storage, folder: str = "") -> list[str]:
    return [status.path for status in storage.list_tree(folder)]


def contents(storage: Storage, folder: str = "") -> dict[str, bytes]:
    return {path: storage.read(path) for path in paths(storage, folder)}


def status(path: str, size: int = 1) -> FileStatus:
    return FileStatus(path, size)
