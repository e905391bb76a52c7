"""Clustering by drawstring and real Apache Hudi: each runs the other's plans, and goes on with the result."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.model.instant import Action
from tests.support.consistent_buckets import CONSISTENT
from tests.support.histories import Case, History, create, row, table_of
from tests.support.interop import (
    HUDI_STRATEGIES,
    SPLIT,
    assert_both_read,
    consistent_table,
    hudi_options,
    hudi_writes,
)
from tests.support.limits import SetLimits
from tests.support.referee import Referee
from tests.support.tables import NEW_FILE_GROUPS, file_groups

SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "fare"}
CASES = [
    Case(6, "COPY_ON_WRITE"),
    pytest.param(Case(6, "MERGE_ON_READ", "avro"), marks=pytest.mark.long),
    pytest.param(Case(8, "MERGE_ON_READ"), marks=pytest.mark.long),
    pytest.param(Case(9, "COPY_ON_WRITE"), marks=pytest.mark.long),
    Case(9, "MERGE_ON_READ"),
]
cases = pytest.mark.parametrize("case", CASES, ids=str)


def many_files(path: str, case: Case) -> History:
    """Write a table with several file groups a partition, some of them with log files."""
    history = create(path, case)
    for start in (0, 20, 40):
        rows = [row(number, 100 + start) for number in range(start, start + 20)]
        history.table.insert(table_of(rows), options=NEW_FILE_GROUPS)
        history.model.upsert(rows)
    changes = [row(number, 200) for number in (1, 25, 48)]
    history.table.upsert(table_of(changes), options={**NEW_FILE_GROUPS, **case.write_options})
    history.model.upsert(changes)
    return history


@cases
def test_hudi_goes_on_with_a_table_that_drawstring_clustered(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = many_files(str(tmp_path / "rides"), case)
    assert history.table.services.cluster(options=SORTED)
    assert file_groups(drawstring.open(history.path)) == 3
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 600) for number in (3, 44, 70)])
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 650) for number in (80, 81, 82)], **NEW_FILE_GROUPS)
    again = {**hudi_options(case), **SORTED, "hoodie.clustering.plan.strategy.small.file.limit": "9000000"}
    assert referee.service(history.path, "clustering", again)
    assert_both_read(referee, history)


@cases
def test_each_runs_the_clusterings_that_the_other_scheduled(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = many_files(str(tmp_path / "rides"), case)
    asked = {**hudi_options(case), **SORTED}
    planned = history.table.services.schedule_clustering(options=SORTED)
    assert planned is not None
    assert referee.service(history.path, "clustering", asked, instant=planned) == planned
    assert_both_read(referee, history)
    assert file_groups(drawstring.open(history.path)) == 3

    hudi_writes(referee, history, "upsert", [row(number, 650) for number in range(80, 90)], **NEW_FILE_GROUPS)
    theirs = referee.service(history.path, "clustering", asked, run=False)
    table = drawstring.open(history.path)
    assert [each.requested for each in table.timeline.pending_of(Action.CLUSTERING)] == [theirs]
    done = table.services.cluster(instant=theirs)
    assert done and done.instant == theirs
    assert_both_read(referee, history)
    assert file_groups(drawstring.open(history.path)) == 3

    hudi_writes(referee, history, "upsert", [row(number, 700) for number in (3, 81)])
    assert_both_read(referee, history)


@cases
def test_hudi_goes_on_with_base_files_that_drawstring_put_together(
    referee: Referee, tmp_path: Path, case: Case, limit: SetLimits
) -> None:
    limit(stitched_group_bytes_min=0)
    history = many_files(str(tmp_path / "rides"), case)
    more = [row(number, 300) for number in range(60, 90)]
    hudi_writes(referee, history, "upsert", more, **NEW_FILE_GROUPS)
    history.table = drawstring.open(history.path)
    assert history.table.services.compact_base_files()
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 600) for number in (3, 44, 61, 170)])
    assert_both_read(referee, history)

    hudi_writes(
        referee, history, "upsert", [row(number, 650) for number in (280, 281, 282)], **NEW_FILE_GROUPS
    )
    history.table = drawstring.open(history.path)
    planned = history.table.services.schedule_base_file_compaction()
    if planned is not None:
        options = hudi_options(case)
        assert referee.service(history.path, "clustering", options, instant=planned) == planned
    assert_both_read(referee, history)


@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.long), 9])
def test_both_split_buckets_and_go_on_with_the_ring(referee: Referee, tmp_path: Path, version: int) -> None:
    case, path = Case(version, "MERGE_ON_READ", "avro"), str(tmp_path / "rides")
    history = consistent_table(path, case)
    result = history.table.services.cluster(options=SPLIT)
    assert result and result.files == 12
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 200) for number in range(0, 70, 3)], **CONSISTENT)
    assert_both_read(referee, history)
    assert file_groups(drawstring.open(path)) == 12

    history.table = drawstring.open(path)
    history.upsert([row(number, 300) for number in range(0, 75, 5)])
    history.table.services.compact()
    assert_both_read(referee, history)

    options = {
        **hudi_options(case),
        **CONSISTENT,
        **SPLIT,
        **HUDI_STRATEGIES,
        "hoodie.bucket.index.max.num.buckets": "6",
    }
    planned = referee.service(
        path, "clustering", {**options, "hoodie.parquet.max.file.size": "3000"}, run=False
    )
    assert planned is not None
    history.table = drawstring.open(path)
    assert history.table.services.cluster(instant=planned)
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 400) for number in range(0, 80, 7)], **CONSISTENT)
    assert_both_read(referee, history)


def test_hudi_goes_on_with_the_new_ring_of_a_dropped_partition(referee: Referee, tmp_path: Path) -> None:
    case, path = Case(9, "MERGE_ON_READ", "avro"), str(tmp_path / "rides")
    history = create(path, case, properties=CONSISTENT)
    rows = [row(number, 100) for number in range(60)]
    history.upsert(rows)
    city = rows[0]["city"]
    history.table.delete_partition(city)
    history.model.delete([each for each in rows if each["city"] == city])
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 200) for number in range(0, 70, 3)], **CONSISTENT)
    assert_both_read(referee, history)
    history.table = drawstring.open(path)
    history.upsert([row(number, 300) for number in range(0, 75, 5)])
    history.table.services.compact()
    assert_both_read(referee, history)


@pytest.mark.parametrize(
    "case",
    [
        Case(9, "MERGE_ON_READ", "avro"),
        pytest.param(Case(8, "MERGE_ON_READ"), marks=pytest.mark.long),
        pytest.param(Case(6, "MERGE_ON_READ", "avro"), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_hudi_goes_on_with_the_new_rings_of_overwritten_partitions(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = create(str(tmp_path / "rides"), case, properties=CONSISTENT)
    rows = [row(number, 100) for number in range(60)]
    history.upsert(rows)
    there = [each for each in rows if each["city"] == rows[0]["city"]]
    history.table.insert_overwrite(table_of([row(0, 50), row(63, 50)]))
    history.model.delete(there)
    history.model.upsert([row(0, 50), row(63, 50)])
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 200) for number in range(0, 70, 3)], **CONSISTENT)
    assert_both_read(referee, history)
    history.table = drawstring.open(history.path)
    history.table.insert_overwrite_table(table_of([row(number, 60) for number in (0, 3, 1)]))
    history.model.rows.clear()
    history.model.upsert([row(number, 60) for number in (0, 3, 1)])
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 300) for number in range(0, 75, 5)], **CONSISTENT)
    history.table = drawstring.open(history.path)
    history.upsert([row(number, 400) for number in range(0, 75, 10)])
    history.table.services.compact()
    assert_both_read(referee, history)
