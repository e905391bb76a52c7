"""How many modules of the package a small call enters: whoever follows the call opens that many files."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import drawstring

SOURCES = Path(drawstring.__file__).parent
ROWS = 10
BUDGETS = {
    "COPY_ON_WRITE": {"upsert": 95, "point read": 60},
    "MERGE_ON_READ": {"upsert": 80, "point read": 66},
}
"""Bounds that changes only lower."""


def rows(first: int) -> pa.Table:
    numbers = range(first, first + ROWS)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "fare": pa.array([1.5] * ROWS),
            "city": pa.array(["lima", "oslo"] * (ROWS // 2)),
        }
    )


def entered_modules(call: Callable[[], Any]) -> list[str]:
    """Run a call and return the modules of the package with a function that it enters."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return sorted(
        str(path.relative_to(SOURCES)) for file in files if (path := Path(file)).is_relative_to(SOURCES)
    )


@pytest.mark.parametrize("table_type", BUDGETS)
def test_a_small_call_stays_within_its_budget_of_modules(table_type: str, tmp_path: Path) -> None:
    index = {"index": "BUCKET", "bucket_count": 4} if table_type == "MERGE_ON_READ" else {}
    table = drawstring.create(
        tmp_path / "rides",
        rows(0).schema,
        record_key="id",
        partition_by="city",
        table_type=table_type,
        **index,  # type: ignore[arg-type]
    )
    for first in (0, 10, 0):
        table.upsert(rows(first))
    table.scan(where="id = 7").to_arrow()
    writer, reader = drawstring.open(tmp_path / "rides"), drawstring.open(tmp_path / "rides")
    calls: dict[str, Callable[[], Any]] = {
        "upsert": lambda: writer.upsert(rows(5)),
        "point read": lambda: reader.scan(where="id = 7").to_arrow(),
    }
    entered = {name: entered_modules(call) for name, call in calls.items()}
    over = {name: found for name, found in entered.items() if len(found) > BUDGETS[table_type][name]}
    assert over == {}, {name: len(found) for name, found in entered.items()}
    assert all("table.py" in found for found in entered.values())
