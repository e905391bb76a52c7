"""Statistics of columns that real Hudi wrote: built anew from the files they are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.metadata.partitions import column_stats
from drawstring.metadata.partitions.column_stats import (
    ColumnStatsMaintainer,
    IndexedColumns,
    PartitionStatsMaintainer,
)
from tests.support.built_statistics import built, kept
from tests.support.golden import unpack

KINDS = ("mdt_cow", "mdt_compacted", "mdt_replace", "idx_record_level", "idx_secondary", "idx_expression")
TABLES = (*(f"v{version}_{kind}" for version in (8, 9) for kind in KINDS), "v9_idx_record_level_partitioned")


@pytest.mark.parametrize("name", TABLES)
def test_statistics_of_files_are_those_of_real_hudi(name: str, tmp_path: Path) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    found = built(table, ColumnStatsMaintainer(IndexedColumns(), memory_bytes=0))
    assert found
    known = kept(table, "column_stats")
    for row in (*found.values(), *known.values()):
        row["ColumnStatsMetadata"]["isTightBound"] = True  # which Hudi never says
    assert found == known


@pytest.mark.parametrize("name", [each for each in TABLES if "replace" not in each])
@pytest.mark.parametrize("from_files", [True, False])
def test_statistics_of_partitions_are_those_of_real_hudi(
    name: str, from_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    if from_files:
        monkeypatch.setattr(column_stats, "_with_statistics", lambda metadata: None)
    found = built(table, PartitionStatsMaintainer())
    assert found
    assert found == kept(table, "partition_stats")
