"""Timelines of tables without rows, active and archived."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.config.table_config import TableConfig
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import create_table
from drawstring.timeline.store import TimelineStore
from tests.support.storages import memory

LAYOUTS = {6: 1, 8: 2, 9: 2}
ARCHIVED_INSTANT = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


def properties(version: int, table_type: str = "MERGE_ON_READ") -> dict[str, str]:
    """Return the properties of an empty table of a version."""
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


def new_table(version: int, storage: Storage | None = None) -> tuple[Storage, TableConfig]:
    """Create an empty table."""
    storage = storage or memory()
    return storage, create_table(storage, properties(version), SteppingClock())


def new_store(version: int) -> tuple[Storage, TimelineStore]:
    """Create an empty table; return what writes its timeline."""
    storage, config = new_table(version)
    return storage, TimelineStore(storage, config, SteppingClock())


def begin(store: TimelineStore, action: Action = Action.DELTA_COMMIT) -> Instant:
    """Request and start an instant."""
    return store.start(store.request(action, store.new_time(store.load())))


def archive(table: drawstring.Table, instants: int) -> None:
    """Move the oldest instants of a table of layout 2 into one more file of the archive."""
    folder = Path(table.uri) / ".hoodie" / "timeline"
    history = folder / "history"
    moved = [instant for instant in table.timeline.instants if instant.is_completed][:instants]
    rows = [
        {
            "instantTime": instant.requested,
            "completionTime": instant.completed,
            "action": str(instant.action),
            "metadata": (folder / f"{instant.requested}_{instant.completed}.{instant.action}").read_bytes(),
            "plan": None,
            "version": 1,
        }
        for instant in moved
    ]
    history.mkdir(exist_ok=True)
    name = f"{moved[0].requested}_{moved[-1].requested}_0.parquet"
    pq.write_table(pa.Table.from_pylist(rows, ARCHIVED_INSTANT), history / name)
    version = history / "_version_"
    number = int(version.read_text()) if version.exists() else 0
    listed = json.loads((history / f"manifest_{number}").read_text())["files"] if number else []
    files = [*listed, {"fileName": name, "fileLen": (history / name).stat().st_size}]
    (history / f"manifest_{number + 1}").write_text(json.dumps({"files": files}))
    version.write_text(str(number + 1))
    for instant in moved:
        for path in folder.glob(f"{instant.requested}*"):
            path.unlink()
