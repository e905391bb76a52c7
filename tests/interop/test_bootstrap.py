"""Bootstrapped tables, made by drawstring or by real Apache Hudi, and written to by both in turns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import drawstring
from tests.support.referee import Referee
from tests.support.tables import COW, MOR

CITIES = ("lima", "oslo", "rome")
SELECTOR = "org.apache.hudi.client.bootstrap.selector."
Rows = list[tuple[str, int, str]]


def rides(*numbers: int, fare: int | None = None, ts: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([f"r{number:03}" for number in numbers], pa.string()),
            "fare": pa.array([number if fare is None else fare for number in numbers], pa.int64()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "city": pa.array([CITIES[number % 3] for number in numbers], pa.string()),
        }
    )


def rows_of(table: pa.Table) -> Rows:
    return sorted((row["id"], row["fare"], row["city"]) for row in table.to_pylist())


def source_at(path: Path) -> str:
    partitioning = ds.partitioning(pa.schema([("city", pa.string())]), flavor="hive")
    ds.write_dataset(
        rides(*range(30)),
        path,
        format="parquet",
        partitioning=partitioning,
        max_rows_per_file=6,
        max_rows_per_group=4,
    )
    return str(path)


def options(table_type: str, version: int, **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        # Hudi 1.2.0 fails to gather the statistics of columns that its skeletons lack.
        "hoodie.metadata.enable": "false",
        **more,
    }


def take_turns(referee: Referee, path: str, how: dict[str, str]) -> None:
    model = {row[0]: row for row in rows_of(rides(*range(30)))}

    def settled(changes: pa.Table | None = None) -> None:
        if changes is not None:
            model.update({row[0]: row for row in rows_of(changes)})
        expected = sorted(model.values())
        columns = ["id", "fare", "city"]
        assert rows_of(drawstring.open(path).scan(columns=columns).to_arrow()) == expected
        assert rows_of(referee.read(path, columns=columns)) == expected

    settled()
    theirs = rides(1, 5, 30, fare=-1, ts=2)
    referee.write(path, theirs, {**how, "hoodie.datasource.write.operation": "upsert"})
    settled(theirs)
    ours = rides(1, 7, 8, 33, fare=-2, ts=3)
    drawstring.open(path).upsert(ours)
    settled(ours)
    drawstring.open(path).delete(rides(9, 10))
    del model["r009"], model["r010"]
    settled()
    if drawstring.open(path).config.is_merge_on_read:
        drawstring.open(path).services.compact()
        settled()
    theirs = rides(1, 2, 12, fare=-4, ts=4)
    referee.write(path, theirs, {**how, "hoodie.datasource.write.operation": "upsert"})
    settled(theirs)


@pytest.mark.parametrize(
    ("table_type", "version", "mode"),
    [
        (COW, 9, "metadata"),
        (MOR, 8, "mixed"),
        (MOR, 6, "metadata"),
        pytest.param(COW, 9, "full", marks=pytest.mark.long),
        pytest.param(COW, 6, "mixed", marks=pytest.mark.long),
        pytest.param(MOR, 9, "metadata", marks=pytest.mark.long),
    ],
)
def test_real_hudi_goes_on_with_a_table_that_drawstring_bootstrapped(
    referee: Referee, tmp_path: Path, table_type: str, version: int, mode: str
) -> None:
    path = str(tmp_path / "rides")
    drawstring.bootstrap(
        path,
        source_at(tmp_path / "source"),
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
        version=version,
        mode="metadata" if mode == "mixed" else mode,
        matching="city=[lr].*" if mode == "mixed" else None,
    )
    take_turns(referee, path, options(table_type, version))


@pytest.mark.parametrize(
    ("table_type", "version"), [(MOR, 9), (COW, 6), pytest.param(COW, 8, marks=pytest.mark.long)]
)
def test_drawstring_goes_on_with_a_table_that_real_hudi_bootstrapped(
    referee: Referee, tmp_path: Path, table_type: str, version: int
) -> None:
    path, source = str(tmp_path / "rides"), source_at(tmp_path / "source")
    how = {
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.bootstrap.base.path": source,
        "hoodie.bootstrap.mode.selector": f"{SELECTOR}BootstrapRegexModeSelector",
        "hoodie.bootstrap.mode.selector.regex": "city=[lr].*",
        "hoodie.bootstrap.mode.selector.regex.mode": "METADATA_ONLY",
    }
    referee.write(path, rides(), options(table_type, version, **how))
    take_turns(referee, path, options(table_type, version))
