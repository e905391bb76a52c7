"""How many modules a call goes through: what a reader of the code has to open to follow it."""

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
UPSERT_MODULES_MAX = 82
SCAN_MODULES_MAX = 46
WITHOUT = {"hoodie.metadata.enable": "false"}
UPSERT_METADATA_MODULES_MAX, SCAN_METADATA_MODULES_MAX = 23, 7
"""Modules more that the metadata table takes."""


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


@pytest.fixture(params=[True, False], ids=["metadata", "listing"])
def has_metadata(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def table(tmp_path: Path, has_metadata: bool) -> drawstring.Table:
    """A bucket-indexed MERGE_ON_READ table with a base file and a log file; everything is imported."""
    drawstring.create(
        tmp_path / "t",
        ten_rows().schema,
        record_key="id",
        ordering="ts",
        table_type="MERGE_ON_READ",
        properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
    )
    table = drawstring.open(tmp_path / "t", options={} if has_metadata else WITHOUT)
    table.bulk_insert(ten_rows())
    table.upsert(ten_rows())
    table.scan().to_arrow()
    return table


def ten_rows() -> pa.Table:
    return pa.table({"id": [str(i) for i in range(10)], "ts": list(range(10)), "city": ["oslo"] * 10})


def test_an_upsert_goes_through_few_modules(table: drawstring.Table, has_metadata: bool) -> None:
    entered = modules_entered(lambda: table.upsert(ten_rows()))
    assert len(entered) <= UPSERT_MODULES_MAX + has_metadata * UPSERT_METADATA_MODULES_MAX, "\n".join(entered)


def test_a_scan_goes_through_few_modules(table: drawstring.Table, has_metadata: bool) -> None:
    entered = modules_entered(lambda: table.scan().to_arrow())
    assert len(entered) <= SCAN_MODULES_MAX + has_metadata * SCAN_METADATA_MODULES_MAX, "\n".join(entered)
