"""`validate` finds damaged indexes of the metadata table, and `repair` builds them again."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from tests.support.rows import rides
from tests.support.tables import COW, MOR, create


@pytest.mark.parametrize("version", [6, 9, 10])
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("index", ["record_index", "column_stats"])
def test_a_damaged_index_is_found_and_built_again(
    tmp_path: Path, table_type: str, version: int, index: str
) -> None:
    table = create(path=tmp_path / "t", table_type=table_type, version=version)
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 7.0)))
    table.indexes.create(index)
    table.upsert(rides(("a", "rome", 2, 5.0)))
    assert table.services.validate().is_sound
    for file in (tmp_path / "t/.hoodie/metadata" / index).rglob("*.hfile"):
        with file.open("r+b") as opened:
            opened.write(b"garbage!" * 8)
    damaged = drawstring.open(tmp_path / "t")
    assert [finding.check for finding in damaged.services.validate().findings] == ["metadata"]
    assert damaged.services.validate(quick=True).is_sound
    damaged.services.repair(apply=True)
    repaired = drawstring.open(tmp_path / "t")
    assert repaired.services.validate().is_sound
    assert index in [each.name for each in repaired.indexes.list()]


def test_a_damaged_block_of_the_metadata_table_is_told_with_the_repair_that_helps(tmp_path: Path) -> None:
    """A damaged number of its format makes a block look as if a newer release had written it."""
    table = create(path=tmp_path / "t", table_type=MOR, version=9)
    table.insert(rides(("a", "rome", 1, 1.0)))
    table.indexes.create("column_stats")
    table.upsert(rides(("a", "rome", 2, 5.0)))
    (log, *_) = (tmp_path / "t/.hoodie/metadata/column_stats").rglob(".*.log.*")
    content = bytearray(log.read_bytes())
    content[17] ^= 0x77  # the version of the block's format
    log.write_bytes(content)
    (finding,) = drawstring.open(tmp_path / "t").services.validate().findings
    assert "the metadata table is damaged. Run `drawstring services repair`" in finding.what
    drawstring.open(tmp_path / "t").services.repair(apply=True)
    assert drawstring.open(tmp_path / "t").services.validate().is_sound
