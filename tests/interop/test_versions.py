"""Tables that drawstring upgraded or downgraded go on in real Hudi, and are what Hudi makes of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import drawstring
from drawstring.config.table.properties import decode_properties
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.timeline import parse_instant
from tests.support.histories import Case, History, create, plain, row, table_of
from tests.support.interop import assert_both_read, hudi_options, hudi_writes
from tests.support.referee import Referee
from tests.support.tables import COW, MOR, WITHOUT_SERVICES
from tests.support.version_changes import change_version

SHORT = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
NO_METADATA = {"hoodie.metadata.enable": "false"}
CHANGES = [
    (COW, 6, 8),
    (COW, 9, 6),
    (MOR, 6, 8),
    (MOR, 6, 9),
    (MOR, 8, 6),
    (MOR, 9, 6),
    (MOR, 8, 9),
    (MOR, 9, 8),
]
CHEAP = ((COW, 9, 6), (MOR, 6, 9))

_OLD_NAME_OF_STRATEGY = "hoodie.compaction.record.merger.strategy"
_METADATA_TABLE = (
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
)


def marked(cheap: tuple[tuple[object, ...], ...], cases: list[tuple[object, ...]]) -> list[object]:
    return [
        pytest.param(*case, id="-".join(map(str, case)), marks=[] if case in cheap else [pytest.mark.long])
        for case in cases
    ]


def lived(path: str, case: Case) -> History:
    """Make a table with archived instants, a savepoint, and three writes that can be travelled to."""
    history = create(path, case)
    for number in range(6):
        history.table.upsert(
            table_of([row(key, number) for key in range(12)]), options={**case.write_options, **SHORT}
        )
        if case.is_mor and number % 2:
            history.table.services.compact(options=SHORT)
    history.model.upsert([row(key, 5) for key in range(12)])
    history.table.savepoints.create(comments="before")
    for number in (100, 200):
        rows = [row(key, number) for key in range(number // 100, 16, 3)]
        history.table.upsert(table_of(rows), options={**case.write_options, **WITHOUT_SERVICES})
        history.model.upsert(rows)
        history.after.append(history.model.sorted())
    gone = [row(key, 300) for key in (2, 3)]
    history.table.delete(table_of(gone), options={**case.write_options, **WITHOUT_SERVICES})
    history.model.delete(gone)
    history.after.append(history.model.sorted())
    return history


@pytest.mark.parametrize(("table_type", "old", "new"), marked(CHEAP, CHANGES))
def test_hudi_goes_on_with_a_table_whose_version_changed(
    referee: Referee, tmp_path: Path, table_type: str, old: int, new: int
) -> None:
    case = Case(old, table_type, "avro")
    history = lived(str(tmp_path / "rides"), case)
    times = [each.requested for each in history.table.timeline.writes()][-3:]
    change_version(history.table, new)
    assert_both_read(referee, history)
    for time, rows in zip(times, history.after, strict=True):
        assert plain(history.table.scan(as_of=time).to_arrow()) == rows
        assert plain(referee.read(history.path, {"as.of.instant": time})) == rows

    history.case = replace(case, version=new)
    hudi_writes(referee, history, "upsert", [row(key, 400) for key in range(0, 20, 3)], **NO_METADATA)
    hudi_writes(referee, history, "delete", [row(6, 500)], **NO_METADATA)
    assert_both_read(referee, history)
    if case.is_mor:
        referee.compact(history.path, {**NO_METADATA, "hoodie.compact.inline.max.delta.commits": "1"})
    referee.service(history.path, "archive", {**hudi_options(history.case), **SHORT, **NO_METADATA})
    assert_both_read(referee, history)

    history.table = drawstring.open(history.path)
    assert history.table.config.version == new
    history.upsert([row(key, 600) for key in range(5)])
    if case.is_mor:
        history.table.services.compact()
    assert_both_read(referee, history)
    change_version(history.table, old)
    assert_both_read(referee, history)


@pytest.mark.parametrize(
    ("table_type", "old", "new"), marked(((MOR, 6, 9),), [(COW, 6, 9), (MOR, 6, 9), (COW, 9, 6), (MOR, 8, 6)])
)
def test_a_changed_table_is_what_hudi_makes_of_it(
    referee: Referee, tmp_path: Path, table_type: str, old: int, new: int
) -> None:
    ours = lived(str(tmp_path / "ours"), Case(old, table_type, "avro"))
    theirs = tmp_path / "theirs"
    shutil.copytree(ours.path, theirs)
    change_version(ours.table, new)
    referee.change_version(str(theirs), new, NO_METADATA)
    here, there = (
        decode_properties((Path(each) / ".hoodie/hoodie.properties").read_bytes())
        for each in (ours.path, theirs)
    )
    for name in (_OLD_NAME_OF_STRATEGY, *_METADATA_TABLE):  # ours goes, and the next write builds it again
        there.pop(name, None)
    if new == 6:
        there.setdefault("hoodie.compaction.payload.class", here["hoodie.compaction.payload.class"])
    assert here == there
    assert instants(ours.table) == instants(drawstring.open(theirs))
    assert plain(drawstring.open(theirs).scan().to_arrow()) == plain(ours.table.scan().to_arrow())


def instants(table: Table) -> set[tuple[str, str, str]]:
    """Return the states of all instants but compactions, which each engine ran at its own time."""
    names = (each.name for each in context_of(table).storage.list_files(table.config.timeline_folder))
    found = (parse_instant(name, table.config.layout) for name in names)
    planned = {each.requested for each in table.timeline.instants if each.action.value == "commit"}
    is_mor = table.config.is_merge_on_read
    return {
        (each.requested, str(each.action.completed_action), each.state.name)
        for each in found
        if each is not None and not (is_mor and each.requested in planned)
    }
