"""A compaction that one of drawstring and real Hudi plans, the other one runs, with writes in between."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.formats.metadata.records import one_record
from drawstring.model.instant import Action
from tests.support.histories import Case, row, write
from tests.support.interop import assert_both_read, hudi_options, hudi_writes
from tests.support.referee import Referee

EVERY_LOG = {"hoodie.compact.inline.max.delta.commits": "1"}
FEW_BLOCKS = {"hoodie.log.compaction.blocks.threshold": "2"}
NO_METADATA_TABLE = {"hoodie.metadata.enable": "false"}
"""In version 6 a compaction that makes a metadata table leaves out the log files that belong to itself."""
VERSIONS = (pytest.param(6, marks=pytest.mark.long), pytest.param(8, marks=pytest.mark.long), 9)


@pytest.mark.parametrize("version", VERSIONS)
def test_plans_change_hands(referee: Referee, tmp_path: Path, version: int) -> None:
    case = Case(version, "MERGE_ON_READ")
    history = write(str(tmp_path / "rides"), case)
    options = {**hudi_options(case), **EVERY_LOG, **NO_METADATA_TABLE}

    ours = history.table.services.schedule_compaction()
    assert ours is not None
    history.upsert([row(number, 600) for number in range(20, 40)])
    assert_both_read(referee, history)
    assert referee.service(history.path, "compaction", options, instant=ours) == ours
    assert_both_read(referee, history)

    theirs = referee.service(history.path, "compaction", options, run=False)
    assert theirs is not None
    hudi_writes(referee, history, "upsert", [row(number, 700) for number in range(30, 50)])
    history.table = drawstring.open(history.path)
    history.upsert([row(number, 800) for number in range(35, 45)])
    history.table.services.compact(
        progress=lambda done, of: history.upsert([row(1, 900 + done)]), instant=theirs
    )
    assert history.table.timeline.write_at(theirs)
    assert_both_read(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 1000) for number in range(5)])
    assert history.table.services.compact()
    assert history.table.timeline.pending_of(Action.COMPACTION) == ()
    assert_both_read(referee, history)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_reads_and_goes_on_with_compacted_logs(referee: Referee, tmp_path: Path, version: int) -> None:
    case = Case(version, "MERGE_ON_READ")
    history = write(str(tmp_path / "rides"), case)
    history.upsert([row(number, 600) for number in range(20, 40)])
    history.delete([row(number, 650) for number in (3, 21, 39)])

    assert history.table.services.log_compact(options=FEW_BLOCKS)
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 700) for number in (0, 3, 30, 50)])
    history.table = drawstring.open(history.path)
    history.upsert([row(number, 800) for number in (0, 21, 31)])
    assert_both_read(referee, history)


@pytest.mark.long
@pytest.mark.parametrize("version", [6, 8, 9])
def test_hudi_runs_a_log_compaction_that_drawstring_planned(
    referee: Referee, tmp_path: Path, version: int
) -> None:
    case = Case(version, "MERGE_ON_READ")
    history = write(str(tmp_path / "rides"), case)
    options = {
        **hudi_options(case),
        **FEW_BLOCKS,
        **NO_METADATA_TABLE,
        "hoodie.log.compaction.enable": "true",
    }
    history.upsert([row(number, 600) for number in range(20, 40)])
    history.delete([row(number, 650) for number in (3, 21, 39)])

    ours = history.table.services.schedule_log_compaction(options=FEW_BLOCKS)
    assert ours is not None
    assert referee.service(history.path, "log_compaction", options, instant=ours) == ours
    assert history.table.timeline.write_at(ours)
    assert_both_read(referee, history)


@pytest.mark.parametrize("version", VERSIONS)
def test_drawstring_runs_a_log_compaction_that_hudi_planned(
    referee: Referee, tmp_path: Path, version: int
) -> None:
    case = Case(version, "MERGE_ON_READ")
    history = write(str(tmp_path / "rides"), case)
    options = {**hudi_options(case), **FEW_BLOCKS, **NO_METADATA_TABLE}
    history.upsert([row(number, 600) for number in range(20, 40)])

    theirs = referee.service(history.path, "log_compaction", options, run=False)
    assert theirs is not None
    hudi_writes(
        referee, history, "upsert", [row(number, 700) for number in (0, 3, 30, 50)], **NO_METADATA_TABLE
    )
    history.table = drawstring.open(history.path)
    history.delete([row(number, 800) for number in (0, 21, 31)])
    assert [each.requested for each in history.table.timeline.pending_of(Action.LOG_COMPACTION)] == [theirs]
    result = history.table.services.log_compact(instant=theirs)
    assert result and result.instant == theirs and result.files == 3
    assert history.table.timeline.write_at(theirs)
    assert_both_read(referee, history)

    # Hudi counts the delta commits since a log compaction: there are two.
    not_yet = {**options, "hoodie.log.compaction.blocks.threshold": "3"}
    assert referee.service(history.path, "log_compaction", not_yet, run=False) is None
    assert referee.service(history.path, "compaction", {**options, **EVERY_LOG})
    assert_both_read(referee, history)


def test_hudi_reads_and_goes_on_with_a_table_after_hybrid_compactions(
    referee: Referee, tmp_path: Path
) -> None:
    case = Case(9, "MERGE_ON_READ")
    history = write(str(tmp_path / "rides"), case)
    hybrid = {
        **FEW_BLOCKS,
        "drawstring.compaction.hybrid": "true",
        "drawstring.compaction.hybrid.log.ratio": "9",
        "drawstring.compaction.hybrid.space.ratio": "9",
    }

    history.upsert([row(number, 600) for number in range(20, 40)])
    result = history.table.services.compact(options=hybrid)
    assert result
    assert any(each.logs and each.base for each in history.table.inspect.files())
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 700) for number in (0, 3, 30, 50)])
    history.table = drawstring.open(history.path)
    history.delete([row(number, 800) for number in (0, 21, 31)])
    assert_both_read(referee, history)

    planned = history.table.services.schedule_compaction(options=hybrid)
    assert planned is not None
    assert referee.service(history.path, "compaction", hudi_options(case), instant=planned) == planned
    assert_both_read(referee, history)


def test_hudi_reads_and_goes_on_with_a_table_whose_newest_log_files_were_merged(
    referee: Referee, tmp_path: Path
) -> None:
    case = Case(9, "MERGE_ON_READ")
    history = write(str(tmp_path / "rides"), case)
    tiers = {
        "hoodie.log.compaction.blocks.threshold": "3",
        "drawstring.compaction.hybrid": "true",
        "drawstring.compaction.hybrid.log.ratio": "999",
        "drawstring.compaction.hybrid.space.ratio": "999",
    }
    history.upsert([row(number, 590) for number in range(12_000)])
    history.table.services.compact()
    history.upsert([row(number, 600) for number in range(12_000)])
    for ts in (700, 800):
        history.upsert([row(number, ts) for number in range(3000, 3009)])
    planned = history.table.services.schedule_compaction(options=tiers)
    plan = one_record((tmp_path / f"rides/.hoodie/timeline/{planned}.compaction.requested").read_bytes())
    assert {len(each["deltaFilePaths"]) for each in plan["operations"]} == {2}, "the large one is left alone"
    history.table.services.compact(instant=planned)
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(number, 950) for number in range(3000, 3012)])
    history.table = drawstring.open(history.path)
    assert_both_read(referee, history)
    assert referee.service(history.path, "compaction", {**hudi_options(case), **EVERY_LOG})
    assert_both_read(referee, history)
