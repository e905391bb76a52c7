"""Buckets are resized while drawstring and real Apache Hudi write; each runs the other's plan."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from tests.support.consistent_buckets import CONSISTENT
from tests.support.histories import Case, History, row
from tests.support.interop import (
    HUDI_STRATEGIES,
    SPLIT,
    assert_both_read,
    consistent_table,
    hudi_options,
    hudi_writes,
)
from tests.support.referee import Referee
from tests.support.tables import file_groups

DUAL = {**CONSISTENT, **HUDI_STRATEGIES, "hoodie.metadata.enable": "false"}
"""A metadata table that Hudi makes while a resizing is pending lists no file that bears its time."""


def write_by_both(referee: Referee, history: History, ts: int) -> None:
    history.table = drawstring.open(history.path)
    history.upsert([row(number, ts) for number in range(0, 70, 3)])
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, ts + 10) for number in range(0, 75, 4)], **DUAL)
    assert_both_read(referee, history)
    history.table = drawstring.open(history.path)
    history.upsert([row(number, ts + 20) for number in range(0, 75, 5)])
    history.delete([row(number, ts + 30) for number in (6, 8)])
    assert_both_read(referee, history)


@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.long), 9])
def test_both_write_twice_while_buckets_are_resized_and_run_the_plan(
    referee: Referee, tmp_path: Path, version: int
) -> None:
    case = Case(version, "MERGE_ON_READ", "avro")
    history = consistent_table(str(tmp_path / "rides"), case)
    before = file_groups(drawstring.open(history.path))
    planned = history.table.services.schedule_clustering(options=SPLIT)
    assert planned is not None
    write_by_both(referee, history, 200)
    assert file_groups(drawstring.open(history.path)) == before
    assert referee.service(history.path, "clustering", {**hudi_options(case), **DUAL}, instant=planned)
    assert file_groups(drawstring.open(history.path)) > before
    assert_both_read(referee, history)
    history.table = drawstring.open(history.path)
    history.upsert([row(number, 300) for number in range(0, 80, 7)])
    history.table.services.compact()

    options = {**hudi_options(case), **DUAL, **SPLIT, "hoodie.parquet.max.file.size": "3000"}
    options["hoodie.bucket.index.max.num.buckets"] = "16"
    planned = referee.service(history.path, "clustering", options, run=False)
    assert planned is not None
    write_by_both(referee, history, 400)
    history.table = drawstring.open(history.path)
    assert history.table.services.cluster(instant=planned)
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 500) for number in range(0, 80, 7)], **DUAL)
    assert_both_read(referee, history)
    assert history.table.services.validate().findings == ()
