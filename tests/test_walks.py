"""How many modules a call goes through: whoever follows the call opens that many files."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

import drawstring

SOURCE = Path(drawstring.__file__).parent
ROWS = 10
WITHOUT = {"hoodie.metadata.enable": "false"}
BUDGETS = {
    ("COPY_ON_WRITE", True): {"upsert": 94, "point read": 56, "scan": 40},
    ("COPY_ON_WRITE", False): {"upsert": 79, "point read": 50, "scan": 37},
    ("MERGE_ON_READ", True): {"upsert": 79, "point read": 62, "scan": 50},
    ("MERGE_ON_READ", False): {"upsert": 65, "point read": 59, "scan": 47},
}
"""Bounds by table type, and by whether the table has a metadata table. A change only lowers them."""


def ten_rows(first: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, first + ROWS), pa.int64()),
            "fare": pa.array([1.5] * ROWS),
            "city": pa.array(["lima", "oslo"] * (ROWS // 2)),
        }
    )


def modules_entered(call: Callable[[], object]) -> list[str]:
    """Return the modules of drawstring in which a call runs a function, imports left out.

    Those of a Spark session that other tests left in the process do not count: it listens to writes.
    """
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            entered.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    inside = (Path(name).relative_to(SOURCE) for name in entered if name.startswith(str(SOURCE)))
    return sorted(str(path) for path in inside if path.parts[0] != "spark")


@pytest.mark.parametrize(("table_type", "has_metadata"), BUDGETS)
def test_a_call_of_ten_rows_goes_through_few_modules(
    table_type: str, has_metadata: bool, tmp_path: Path
) -> None:
    """All calls run once before they count, so that everything is imported."""
    is_mor = table_type == "MERGE_ON_READ"
    drawstring.create(
        tmp_path / "rides",
        ten_rows(0).schema,
        record_key="id",
        partition_by="city",
        table_type=table_type,
        index="BUCKET" if is_mor else None,
        bucket_count=4 if is_mor else None,
    )
    table = drawstring.open(tmp_path / "rides", options={} if has_metadata else WITHOUT)
    calls: dict[str, Callable[[], object]] = {
        "upsert": lambda: table.upsert(ten_rows(5)),
        "point read": lambda: table.scan(where="id = 7").to_arrow(),
        "scan": lambda: table.scan().to_arrow(),
    }
    table.upsert(ten_rows(0))
    for call in calls.values():
        call()
    for name, call in calls.items():
        entered = modules_entered(call)
        assert len(entered) <= BUDGETS[table_type, has_metadata][name], (name, len(entered), entered)
