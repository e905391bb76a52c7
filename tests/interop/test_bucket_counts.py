"""Buckets by partition: drawstring and real Apache Hudi bring keys to the same ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from tests.support.referee import Referee

RULES = r"2024-(01|02)-\d{2},5;2024-03.*,3"
CITIES = ("2024-01-31", "2024-03-01", "2025-01-01")
BUCKETS = (5, 3, 2)
INDEX = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.partition.expressions": RULES,
}


def rides(numbers: range, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([f"r{number:03}" for number in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            # not by the remainder of three, which the hash of a number's text has too
            "day": pa.array([CITIES[number // 10 % 3] for number in numbers], pa.string()),
        }
    )


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("ours_first", [True, False])
def test_both_bring_keys_to_the_same_buckets(
    referee: Referee, tmp_path: Path, ours_first: bool, version: int
) -> None:
    path = str(tmp_path / "rides")
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.index.type": "BUCKET",
    }
    theirs = {**options, **INDEX}
    if ours_first:
        drawstring.create(
            path,
            rides(range(1), 1).schema,
            record_key="id",
            partition_by="day",
            ordering="ts",
            version=version,
            properties=INDEX,
        ).upsert(rides(range(90), 1))
        theirs = options  # the table says its buckets
    else:
        referee.write(path, rides(range(90), 1), theirs)
    model = {row["id"]: row["ts"] for row in rides(range(90), 1).to_pylist()}

    def settled(rows: pa.Table) -> None:
        model.update({row["id"]: row["ts"] for row in rows.to_pylist()})
        expected = sorted(model.items())
        for found in (drawstring.open(path).scan(columns=["id", "ts"]).to_arrow(), referee.read(path)):
            assert (
                sorted((row["id"], row["ts"]) for row in found.select(["id", "ts"]).to_pylist()) == expected
            )
        table = drawstring.open(path)
        assert [len(table.scan(where=f"day = '{day}'").tasks()) for day in CITIES] == list(BUCKETS)

    settled(rides(range(0), 1))
    rows = rides(range(60, 120), 2)
    referee.write(path, rows, theirs)
    settled(rows)
    rows = rides(range(100, 150), 3)
    drawstring.open(path).upsert(rows, options={} if ours_first else INDEX)
    settled(rows)
    if ours_first:
        found = referee.read(path, {"hoodie.enable.data.skipping": "true"})
        assert found.num_rows == len(model)


def test_hudi_goes_on_in_partitions_that_were_rescaled(referee: Referee, tmp_path: Path) -> None:
    path = str(tmp_path / "rides")
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
    }
    referee.write(path, rides(range(90), 1), options)
    table = drawstring.open(path)
    assert table.services.rescale_buckets(
        5,
        [CITIES[0], "2026-*"],
        options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    )
    assert [len(table.scan(where=f"day = '{day}'").tasks()) for day in CITIES] == [5, 2, 2]
    assert referee.read(path).num_rows == 90
    referee.write(path, rides(range(60, 120), 2), options)
    found = drawstring.open(path).scan(columns=["id", "ts"]).to_arrow()
    expected = {
        row["id"]: row["ts"]
        for row in (*rides(range(90), 1).to_pylist(), *rides(range(60, 120), 2).to_pylist())
    }
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(expected.items())
    assert [len(table.scan(where=f"day = '{day}'").tasks()) for day in CITIES] == [5, 2, 2]
    assert drawstring.open(path).services.validate().is_sound
