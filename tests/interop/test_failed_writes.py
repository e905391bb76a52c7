"""Dead writes that are left to cleaning (LAZY): either engine passes over the other's and takes them back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drawstring.filegroups.write.markers import MARKER_ROOT
from drawstring.model.files import PARTITION_METADATA
from drawstring.model.instant import Action
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from drawstring.txn.rollback.lost_commits import LOST_FOLDER
from drawstring.txn.table_context import TableContext
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.histories import Case, History, Row, create, row, table_of
from tests.support.interop import assert_both_read, hudi_options, hudi_writes
from tests.support.referee import Referee
from tests.support.tables import WITHOUT_SERVICES, store_of

LAZY = {
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.concurrency.mode": "SINGLE_WRITER",  # beside others the next write rolls dead ones back
    "hoodie.metadata.index.column.stats.enable": "false",
    **WITHOUT_SERVICES,
}
"""Beside a pending write Hudi 1.2.0 cannot add column statistics, and does not keep the metadata table."""

WITHOUT_NEW_BASE_FILES = {"hoodie.parquet.small.file.limit": "0"}
"""Hudi 1.2.0 passes over log files of a file group that has a later base file of a pending write."""

CASES = [Case(6, "MERGE_ON_READ", "avro"), Case(9, "COPY_ON_WRITE"), Case(9, "MERGE_ON_READ")]
pytestmark = [pytest.mark.long, pytest.mark.parametrize("case", CASES, ids=str)]


def upsert(history: History, number: int) -> None:
    rows = [row(key, 100 * number) for key in range(number % 3, 12, 2)]
    history.table.upsert(table_of(rows), options={**history.case.write_options, **LAZY})
    history.model.upsert(rows)


class DiesAtTheEnd(FaultyStorage):
    """Dies for good when a write is about to complete."""

    def __init__(self, path: str) -> None:
        super().__init__(open_storage(path), 10_000)

    def before_change(self, path: str) -> None:
        if path.endswith(".claim"):
            self._fail_after = 0
        super().before_change(path)


def age_heartbeat(history: History, requested: str) -> None:
    path = Path(history.path) / HEARTBEAT_FOLDER / requested
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.utime(path, (1_000_000_000, 1_000_000_000))


def test_hudi_cleans_up_after_a_dead_writer_of_drawstring(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = create(str(tmp_path / "rides"), case)
    upsert(history, 1)
    dying = Table(TableContext(DiesAtTheEnd(history.path)))
    options = {**case.write_options, **LAZY, **WITHOUT_NEW_BASE_FILES}
    with pytest.raises(InjectedFault):
        dying.upsert(table_of([row(key, 900) for key in range(20)]), options=options)
    (dead,) = history.table.timeline.pending_writes()
    hudi_writes(referee, history, "upsert", [row(key, 200) for key in range(4)], **LAZY)
    assert_both_read(referee, history)
    referee.service(history.path, "clean", {**hudi_options(case), **LAZY})
    assert history.table.timeline.pending_writes() == (dead,)  # its heartbeat is young

    age_heartbeat(history, dead.requested)
    referee.service(history.path, "clean", {**hudi_options(case), **LAZY})
    assert history.table.timeline.pending() == ()
    assert any(each.action is Action.ROLLBACK for each in history.table.timeline.instants)
    assert_both_read(referee, history)
    upsert(history, 3)
    assert_both_read(referee, history)


def test_drawstring_cleans_up_after_a_dead_writer_of_hudi(
    referee: Referee, tmp_path: Path, case: Case
) -> None:
    history = create(str(tmp_path / "rides"), case)
    upsert(history, 1)
    kept = {key: dict(value) for key, value in history.model.rows.items()}
    hudi_writes(referee, history, "upsert", [row(key, 900) for key in range(20)], **LAZY)
    history.model.rows = kept
    table = history.table
    dead = table.timeline.writes()[-1]
    (Path(history.path) / store_of(table).path(dead)).unlink()
    age_heartbeat(history, dead.requested)
    upsert(history, 2)
    if case.is_mor:
        table.services.compact(options=LAZY)
    assert [each.requested for each in table.timeline.pending_writes()] == [dead.requested]
    assert_both_read(referee, history)

    table.services.clean(options=LAZY)
    assert table.timeline.pending() == ()
    # It has no markers: as far as drawstring can tell it may have been completed.
    assert (Path(history.path) / LOST_FOLDER / dead.requested).is_dir()
    assert_both_read(referee, history)
    hudi_writes(referee, history, "upsert", [row(key, 300) for key in range(7)], **LAZY)
    assert_both_read(referee, history)


class DiesHalfway(FaultyStorage):
    """Dies for good when a write has made ten data files."""

    def __init__(self, path: str) -> None:
        super().__init__(open_storage(path), 10_000)
        self.made: list[str] = []

    def before_change(self, path: str) -> None:
        if not path.startswith(".hoodie") and not path.endswith(PARTITION_METADATA):
            self.made.append(path)
            if len(self.made) > 10:
                self._fail_after = 0
        super().before_change(path)


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_hudi_finds_files_that_drawstring_marked_together(
    referee: Referee, tmp_path: Path, case: Case, operation: str
) -> None:
    history = create(str(tmp_path / "rides"), case)
    history.upsert([in_city(key, 100) for key in range(40)])
    storage = DiesHalfway(history.path)
    dying = Table(TableContext(storage))
    with pytest.raises(InjectedFault):
        changed = table_of([in_city(key, 900) for key in range(40)])
        getattr(dying, operation)(changed, options={**case.write_options, **LAZY})
    (dead,) = history.table.timeline.pending_writes()
    folder = Path(history.path) / MARKER_ROOT / dead.requested
    assert (folder / "MARKERS.type").is_file()
    assert sum(len(each.read_text().splitlines()) for each in folder.glob("MARKERS[0-9]*")) >= 20
    made = [Path(history.path) / each for each in storage.made if (Path(history.path) / each).exists()]
    assert 8 <= len(made) <= 12

    age_heartbeat(history, dead.requested)
    referee.service(history.path, "clean", {**hudi_options(case), **LAZY})
    assert history.table.timeline.pending() == ()
    assert not folder.exists()
    if not (case.version == 6 and operation == "upsert" and case.is_mor):  # these get rollback commands
        assert not any(each.exists() for each in made)
    assert_both_read(referee, history)
    history.upsert([in_city(key, 1000) for key in range(0, 40, 3)])
    assert_both_read(referee, history)


def in_city(key: int, ts: int) -> Row:
    return row(key, ts) | {"city": f"city {key % 20}"}
