"""Tables laid out in other ways than by one column: real Hudi reads them and goes on with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.timeline.store import TimelineStore
from drawstring.txn import transaction
from tests.support.histories import SCHEMA, Case, History, plain, row, table_of, write
from tests.support.interop import assert_both_read, hudi_writes, merge_on_read_cases_8_long
from tests.support.referee import Referee
from tests.support.tables import BUCKETS, WITHOUT_COMPACTION


class Killed(BaseException):
    """The end of a writer's process."""


MOR = Case(9, "MERGE_ON_READ")
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}

LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "no-partitions": (
        {"partition_by": ()},
        {
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        },
    ),
    "two-columns-hive-style": (
        {"partition_by": ["city", "day"], "properties": HIVE_STYLE},
        {
            "hoodie.datasource.write.partitionpath.field": "city,day",
            # Before version 9 Hudi asks to be told that no release from 0.14.1 to 1.0.2 wrote the keys.
            "hoodie.write.complex.keygen.validation.enable": "false",
            **HIVE_STYLE,
        },
    ),
    "two-key-columns": (
        {"record_key": ["id", "city"]},
        {
            "hoodie.datasource.write.recordkey.field": "id,city",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        },
    ),
    "bucket-index": ({"properties": BUCKETS}, {**BUCKETS, "hoodie.bucket.index.hash.field": "id"}),
}


@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.long), 9])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hudi_goes_on_with_each_layout(referee: Referee, tmp_path: Path, layout: str, version: int) -> None:
    ours, theirs = LAYOUTS[layout]
    case = Case(version, "MERGE_ON_READ")
    history = write(str(tmp_path / "rides"), case, **ours)
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 600) for number in range(30, 60)], **theirs)
    assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    history.upsert([row(number, 700) for number in (0, 31, 59, 70)])
    assert history.table.services.compact()
    assert_both_read(referee, history)


def test_hudi_reads_a_column_that_was_added_later(referee: Referee, tmp_path: Path) -> None:
    history = write(str(tmp_path / "rides"), MOR)
    rows = table_of([row(number, 600) for number in range(50, 55)])
    history.table.upsert(
        rows.append_column("note", [["late"] * 5]), options={**MOR.write_options, **WITHOUT_COMPACTION}
    )
    ours = history.table.scan(columns=["id", "note"]).to_arrow().sort_by("id")
    theirs = referee.read(history.path, columns=["id", "note"]).sort_by("id")
    assert theirs.to_pylist() == ours.to_pylist()
    assert theirs["note"].to_pylist().count("late") == 5


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_partitions_that_were_overwritten(
    referee: Referee, tmp_path: Path, table_type: str
) -> None:
    history = write(str(tmp_path / "rides"), Case(9, table_type))
    lima = [row(number, 1) for number in (1, 4, 100)]
    history.table.insert_overwrite(table_of(lima))
    expected = [found for found in history.model.sorted() if found["city"] != "lima"] + lima
    assert plain(referee.read(history.path)) == sorted(expected, key=lambda found: str(found["id"]))

    history.table.insert_overwrite_table(table_of(lima))
    assert plain(referee.read(history.path)) == lima


def test_hudi_reads_rows_that_were_bulk_inserted(referee: Referee, tmp_path: Path) -> None:
    rows = [row(number, 100) for number in range(200)]
    path = str(tmp_path / "rides")
    table = drawstring.create(path, SCHEMA, name="rides", record_key="id", partition_by="city")
    table.bulk_insert(table_of(rows))
    assert plain(referee.read(path)) == rows


@merge_on_read_cases_8_long
def test_hudi_goes_on_after_a_write_that_died_and_its_rollback(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = write(str(tmp_path / "rides"), case)
    die_before_completion(history)
    assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    history.upsert([row(number, 600) for number in (0, 31, 59, 70)])
    assert "rollback" in {str(at.action) for at in history.table.timeline.instants}
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 700) for number in range(28, 33)])
    assert_both_read(referee, history)


@pytest.mark.long
@merge_on_read_cases_8_long
def test_hudi_rolls_back_a_write_that_died(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)
    die_before_completion(history)
    hudi_writes(referee, history, "upsert", [row(number, 700) for number in range(28, 33)])
    assert "rollback" in {str(at.action) for at in drawstring.open(history.path).timeline.instants}
    assert_both_read(referee, history)


def die_before_completion(history: History) -> None:
    """Let an upsert write all its files and die before it says on the timeline that it is complete."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    lost = table_of([row(number, 900) for number in range(60)])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(TimelineStore, "complete", die)
        # A killed process does not roll itself back either.
        patch.setattr(transaction, "abort_write", die)
        history.table.upsert(lost, options=history.case.write_options)
    assert history.table.timeline.pending()
