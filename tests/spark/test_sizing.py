"""File sizing on Spark: new records fill small files, and a hot partition is divided among tasks."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import drawstring
import drawstring.spark
from drawstring.services import small_files
from tests.support.spark_tables import COW, MOR, load, save

pytestmark = pytest.mark.spark
SIZES = {"hoodie.parquet.max.file.size": "60000", "hoodie.parquet.small.file.limit": "50000"}


def wide(spark: SparkSession, start: int, count: int, ts: int = 1) -> DataFrame:
    """Rows of which one in fifty is in another city than the rest."""
    city = "if(id % 50 = 0, 'oslo', 'rome')"
    return spark.range(start, start + count).selectExpr(
        "id", f"{city} as city", f"{ts}L as ts", "concat(sha2(cast(id as string), 512), uuid()) as note"
    )


def file_ids(path: Path, city: str) -> set[str]:
    return {each.file_id for each in drawstring.open(path).inspect.files() if each.partition == city}


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_new_records_fill_small_files_and_share_the_rest(
    session: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    path = tmp_path / "rides"
    save(wide(session, 0, 3000), path, "upsert", **options, **SIZES)
    hot, cold = file_ids(path, "rome"), file_ids(path, "oslo")
    assert (len(hot) >= 4, len(cold)) == (True, 1)
    save(wide(session, 2950, 100, ts=2), path, "upsert", **options, **SIZES)
    assert (file_ids(path, "rome") >= hot, file_ids(path, "oslo")) == (True, cold)
    assert len(file_ids(path, "rome")) <= len(hot) + 1
    save(wide(session, 3050, 3000), path, "insert", **options, **SIZES)
    assert len(file_ids(path, "rome")) >= len(hot) + 4
    expected = [(number, 2 if 2950 <= number < 3050 else 1) for number in range(6050)]
    assert load(session, path) == expected


@pytest.mark.parametrize(
    "order",
    [
        {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
        {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"},
        {"hoodie.bulkinsert.sort.mode": "PARTITION_PATH_REPARTITION"},
        {"hoodie.bulkinsert.user.defined.partitioner.sort.columns": "note"},
    ],
    ids=["global", "partition", "repartition", "columns"],
)
def test_a_bulk_insert_is_in_the_order_asked_for(
    session: SparkSession, tmp_path: Path, order: dict[str, str]
) -> None:
    path = tmp_path / "rides"
    save(wide(session, 0, 2000).repartition(4, "note"), path, "bulk_insert", **COW, **order)
    assert load(session, path) == [(number, 1) for number in range(2000)]
    found: dict[str, list[tuple[str, str]]] = {}
    columns = ["_hoodie_file_name", "_hoodie_record_key", "note", "city"]
    for row in drawstring.open(path).scan(columns=columns, where="city = 'rome'").to_arrow().to_pylist():
        found.setdefault(row["_hoodie_file_name"], []).append((row["_hoodie_record_key"], row["note"]))
    if "hoodie.bulkinsert.sort.mode" not in order:
        assert all([note for _, note in rows] == sorted(note for _, note in rows) for rows in found.values())
    elif order["hoodie.bulkinsert.sort.mode"].endswith("SORT"):
        assert all(rows == sorted(rows) for rows in found.values())
    else:
        assert len(found) == 1
    if order.get("hoodie.bulkinsert.sort.mode") == "GLOBAL_SORT":
        ends = sorted((rows[0], rows[-1]) for rows in found.values())
        assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))


def test_an_append_adds_base_files_and_looks_at_nothing(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rides"
    save(wide(session, 0, 100), path, "append", **COW)
    before = file_ids(path, "rome")
    save(wide(session, 99, 2, ts=2), path, "append", **COW)
    assert len(file_ids(path, "rome") - before) >= 1
    assert load(session, path) == sorted([(number, 1) for number in range(100)] + [(99, 2), (100, 2)])


def test_appends_merge_the_small_files_that_they_leave(session: SparkSession, tmp_path: Path) -> None:
    path, due = tmp_path / "rides", {"drawstring.append.merge.min.files": "3"}
    for start in (0, 100, 200):
        save(wide(session, start, 100).coalesce(1), path, "append", **COW, **due)
        assert len(file_ids(path, "rome")) == {0: 1, 100: 2, 200: 1}[start]
    assert load(session, path) == [(number, 1) for number in range(300)]


def test_a_merge_that_a_dead_append_left_makes_way(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, due = tmp_path / "rides", {"drawstring.append.merge.min.files": "2"}
    with monkeypatch.context() as patch:
        patch.setattr(small_files, "run_clustering", lambda *_: None)
        for start in (0, 100, 200):
            save(wide(session, start, 100).coalesce(1), path, "append", **COW, **due)
    assert len(drawstring.open(path).timeline.pending()) == 1
    save(wide(session, 99, 2, ts=2), path, "upsert", **COW)
    assert drawstring.open(path).timeline.pending() == ()
    changed = [(number, 2 if number in (99, 100) else 1) for number in range(300)]
    assert load(session, path) == changed
