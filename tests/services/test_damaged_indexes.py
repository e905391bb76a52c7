"""`validate` finds damaged indexes of the metadata table, and `repair` builds them again."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from tests.support.rows import rides
from tests.support.tables import COW, MOR, create


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("index", ["record_index", "column_stats"])
def test_a_damaged_index_is_found_and_built_again(
    tmp_path: Path, table_type: str, version: int, index: str
) -> None:
    table = create(path=tmp_path / "t", table_type=table_type, version=version)
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 7.0)))
    table.create_index(index)
    table.upsert(rides(("a", "rome", 2, 5.0)))
    assert table.validate().is_sound
    for file in (tmp_path / "t/.hoodie/metadata" / index).rglob("*.hfile"):
        with file.open("r+b") as opened:
            opened.write(b"garbage!" * 8)
    damaged = drawstring.open(tmp_path / "t")
    assert [finding.check for finding in damaged.validate().findings] == ["metadata"]
    assert damaged.validate(quick=True).is_sound
    damaged.repair(apply=True)
    repaired = drawstring.open(tmp_path / "t")
    assert repaired.validate().is_sound
    assert index in [each.name for each in repaired.indexes()]
