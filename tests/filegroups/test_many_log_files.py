"""Slices with more log files than a process may have open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.limits import Limits
from drawstring.storage.local import LocalStorage
from drawstring.table import Table
from tests.support.limits import SetLimits
from tests.support.rows import held, rides
from tests.support.sorted_tables import LSM
from tests.support.tables import MOR, WITHOUT_SERVICES, create

BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
KINDS: dict[str, dict[str, Any]] = {
    "inline": {"version": 9, "properties": BUCKET},
    "native": {"version": 10, "properties": BUCKET},
    "sorted": {"version": 10, "properties": {**BUCKET, **LSM}},
}
LOGS = 12


class OpenFiles:
    """Notes how many data files are open at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = 0
        self._files: list[pa.NativeFile] = []
        original = LocalStorage.open

        def open_file(storage: LocalStorage, path: str) -> pa.NativeFile:
            file = original(storage, path)
            if ".hoodie" not in path:
                self._files = [each for each in [*self._files, file] if not each.closed]
                self.most = max(self.most, len(self._files))
            return file

        monkeypatch.setattr(LocalStorage, "open", open_file)


def with_many_log_files(kind: str, path: Path) -> Table:
    table = create(path=path, table_type=MOR, partition_by=(), **KINDS[kind])
    table.bulk_insert(rides(*((f"{key:03}", "rome", 0, 0.0) for key in range(30))), options=WITHOUT_SERVICES)
    for ts in range(1, LOGS + 1):
        changed = [(f"{key:03}", "rome", ts, float(ts)) for key in range(ts % 5, 30, 5)]
        table.upsert(rides(*changed), options=WITHOUT_SERVICES)
    return drawstring.open(path)


@pytest.mark.parametrize("windows_bytes", [Limits().windows_bytes, 0], ids=["at once", "by windows"])
@pytest.mark.parametrize("kind", KINDS)
def test_few_of_many_log_files_are_open_at_once(
    kind: str, windows_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: SetLimits
) -> None:
    table = with_many_log_files(kind, tmp_path / "t")
    limit(windows_bytes=windows_bytes)
    expected = held(table)
    limit(files_open_max=3)
    files = OpenFiles(monkeypatch)

    assert held(drawstring.open(tmp_path / "t")) == expected
    assert table.scan(where="id = '007'").to_arrow().num_rows == 1
    assert table.services.log_compact(min_blocks=2)
    assert held(table) == expected
    assert table.services.compact()
    assert held(table) == expected
    assert 3 < files.most <= 3 + 2, "one of which is read, and the base file"
