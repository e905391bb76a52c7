"""Tables that earlier releases of drawstring wrote: every later one reads them as the one that wrote them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import drawstring
from tests.sealed.make import answers, metadata, rows
from tests.support.tables import WITHOUT_SERVICES

TABLES = Path(__file__).parent / "tables"
NAMES = sorted(path.stem for path in TABLES.glob("*.zip"))


def unpacked(name: str, folder: Path) -> drawstring.Table:
    with zipfile.ZipFile(TABLES / f"{name}.zip") as packed:
        packed.extractall(folder)
    return drawstring.open(folder / name)


@pytest.mark.parametrize("name", NAMES)
def test_every_query_reads_what_the_writer_read(name: str, tmp_path: Path) -> None:
    table = unpacked(name, tmp_path)
    expected = json.loads((TABLES / f"{name}.json").read_text())
    if "metadata" in expected:
        assert json.loads(json.dumps(metadata(table), default=str)) == expected.pop("metadata")
    assert answers(table) == expected
    assert table.services.validate().findings == ()


@pytest.mark.parametrize("name", NAMES)
def test_writing_goes_on(name: str, tmp_path: Path) -> None:
    table = unpacked(name, tmp_path)
    before = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    table.upsert(rows(("a", "rome", 90, 90.0, "later")), options=WITHOUT_SERVICES)
    if table.config.is_merge_on_read:
        assert table.services.compact()
    after = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert after.pop("a")["note"] == "later"
    before.pop("a")
    own = ("id", "ts", "fare", "note")
    assert table.services.validate().findings == ()
    assert [[row[name] for name in own] for row in after.values()] == [
        [row[name] for name in own]
        for row in sorted(before.values(), key=lambda row: list(after).index(row["id"]))
    ]
