"""Moves instants of a table into its archived timeline, the way Hudi lays it out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import drawstring

ROW = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


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
    pq.write_table(pa.Table.from_pylist(rows, ROW), history / name)
    version = history / "_version_"
    number = int(version.read_text()) if version.exists() else 0
    listed = json.loads((history / f"manifest_{number}").read_text())["files"] if number else []
    files = [*listed, {"fileName": name, "fileLen": (history / name).stat().st_size}]
    (history / f"manifest_{number + 1}").write_text(json.dumps({"files": files}))
    version.write_text(str(number + 1))
    for instant in moved:
        for path in folder.glob(f"{instant.requested}*"):
            path.unlink()
