"""How much of files in ORC and Lance is in memory at once while sorted files are merged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from drawstring.filegroups import sorted_merge
from drawstring.filegroups.read.log_records import LogRecords
from drawstring.filegroups.sorted_merge import SortedRun, merge_by_fences
from drawstring.table import Table
from tests.support.limits import SetLimits
from tests.support.sorted_tables import sorted_table
from tests.support.tables import WITHOUT_SERVICES

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string())])
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
ROWS, TEXT = 20_000, "x" * 1_000
WINDOW_BYTES = 1 << 20


def rows_of(ts: int, step: int = 1) -> pa.Table:
    """Return rows that take 20 MB in memory and next to nothing in a file: they are one stripe."""
    keys = [f"{number:08}" for number in range(0, ROWS, step)]
    return pa.table([keys, [ts] * len(keys), [TEXT] * len(keys)], schema=SCHEMA)


class Held:
    """The bytes of the windows that the runs of a merge have in memory, all runs together."""

    def __init__(self) -> None:
        self.largest = 0

    def fenced(self, runs: list[SortedRun[Any]]) -> Iterator[list[list[Any]]]:
        for parts in merge_by_fences(runs):
            taken = sum(_bytes(window) for part in parts for window in part)
            held = sum(_bytes(window) for run in runs for window, _ in run._held)
            self.largest = max(self.largest, taken + held)
            yield parts


def _bytes(window: Any) -> int:
    if isinstance(window, LogRecords):
        return int(window.versions.rows.nbytes)
    rows = window if isinstance(window, pa.Table) else window.rows
    return int(rows.nbytes)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, limit: SetLimits) -> Held:
    held = Held()
    limit(batch_bytes=WINDOW_BYTES, base_window_bytes=WINDOW_BYTES, windows_bytes=4 * WINDOW_BYTES)
    monkeypatch.setattr(sorted_merge, "merge_by_fences", held.fenced)
    return held


def table_of(ending: str, path: Path) -> Table:
    """Create a table whose base file and log file have 20 MB of rows each."""
    properties = {**BUCKET, "hoodie.table.base.file.format": ending}
    table = sorted_table(SCHEMA, properties, path=path, partition_by=())
    table.upsert(rows_of(1), options=WITHOUT_SERVICES)
    table.services.compact()
    table.upsert(rows_of(2), options=WITHOUT_SERVICES)
    return table


@pytest.mark.parametrize("ending", ["orc", "lance"])
def test_files_are_merged_window_by_window(ending: str, tmp_path: Path, held: Held) -> None:
    table = table_of(ending, tmp_path / "t")
    assert set(table.scan(["ts"]).to_arrow().column(0).to_pylist()) == {2}
    assert 0 < held.largest < 8 * WINDOW_BYTES
    held.largest = 0
    assert table.services.compact()
    assert 0 < held.largest < 8 * WINDOW_BYTES
    found = table.scan(["id", "ts"]).to_arrow()
    assert found.column("id").to_pylist() == rows_of(2).column("id").to_pylist()
    assert set(found.column("ts").to_pylist()) == {2}
