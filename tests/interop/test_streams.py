"""A stream that real Hudi and drawstring write in turns: each finds the other's batches by the checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import drawstring
from tests.support.referee import Referee

FIRST = 1_700_000_000
NAME = "default_single_writer"
OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
}


def test_each_skips_the_batches_that_the_other_committed(referee: Referee, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table, batches = str(tmp_path / "rides"), [rows(number) for number in range(4)]

    def hudi_streams(*numbers: int) -> None:
        for number in numbers:
            file = tmp_path / "in" / f"{number}.parquet"
            pq.write_table(batches[number], file)
            os.utime(file, (FIRST + number, FIRST + number))  # Spark takes the oldest file first
        referee.stream(table, str(tmp_path / "in"), "id long, ts long", str(tmp_path / "checkpoint"), OPTIONS)

    hudi_streams(0, 1)
    ours = drawstring.open(table).stream(NAME, operation="insert")
    assert ours.position == "1"
    assert ours.write(batches[2], "2").inserts == 2
    hudi_streams(2, 3)
    again = drawstring.open(table).stream(NAME, operation="insert")
    assert again.position == "3"
    found = sorted(drawstring.open(table).scan().to_arrow()["id"].to_pylist())
    assert found == list(range(8)), "batch 2 was left out by Hudi, batch 3 was not"
    assert sorted(referee.read(table)["id"].to_pylist()) == found


def rows(number: int) -> pa.Table:
    return pa.table({"id": [2 * number, 2 * number + 1], "ts": [1, 1]})
