"""Statistics of columns that real Hudi wrote: built anew from the files they are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.metadata.maintained.column_stats import ColumnStatsMaintainer
from tests.support.built_statistics import built, kept
from tests.support.golden import unpack

KINDS = ("mdt_cow", "mdt_compacted", "mdt_replace", "idx_record_level", "idx_secondary", "idx_expression")
TABLES = (*(f"v{version}_{kind}" for version in (8, 9) for kind in KINDS), "v9_idx_record_level_partitioned")


@pytest.mark.parametrize("name", TABLES)
def test_statistics_of_files_are_those_of_real_hudi(name: str, tmp_path: Path) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    found = built(table, ColumnStatsMaintainer(memory_bytes=0))
    assert found
    assert found == kept(table, "column_stats")
