"""A write with files and no markers may have been completed: it is rolled back, and its files are kept."""

from __future__ import annotations

from contextlib import suppress

import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import DrawstringError
from drawstring.model.instant import Instant
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.rollback.file_owners import instants_in
from drawstring.txn.rollback.lost_commits import LOST_FOLDER
from tests.support.consistent_buckets import row, written_during_resizing
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, lose_completion, opened
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import held, rides
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, create

FIRST, SECOND, NEXT = ("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0), ("c", "oslo", 1, 1.0)
UPDATED = ("a", "rome", 2, 2.0)
LAZY = {"hoodie.clean.failed.writes.policy": "LAZY"}
versions = pytest.mark.parametrize("version", (6, 8, 9))
kinds = pytest.mark.parametrize(
    ("table_type", "verb"), ((COW, "append"), (COW, "upsert"), (MOR, "append"), (MOR, "upsert"))
)


def with_lost(table_type: str, version: int, verb: str) -> tuple[Table, Instant, dict[str, bytes]]:
    """A table whose last write lost its completed file: new base files, rewritten ones, or log files."""
    table = create(table_type=table_type, version=version)
    table.insert(rides(FIRST))
    getattr(table, verb)(rides(UPDATED if verb == "upsert" else SECOND))
    write = table.timeline.writes()[-1]
    return table, write, lose_completion(table, write)


def files(storage: Storage, folder: str = "") -> dict[str, bytes]:
    """What lies below a folder, by path in it."""
    return {
        status.path.removeprefix(f"{folder}/"): storage.read(status.path)
        for status in storage.list_tree(folder)
    }


@kinds
@versions
def test_until_the_next_write_a_backup_of_the_lost_file_brings_it_back(
    table_type: str, version: int, verb: str
) -> None:
    table, write, lost = with_lost(table_type, version, verb)
    (finding,) = table.services.validate().findings
    assert (finding.severity, finding.check, finding.instant) == ("warning", "timeline", write.requested)
    assert "Put that file back from a backup" in finding.what
    for path, data in lost.items():
        context_of(table).storage.put(path, data)
    table.upsert(rides(NEXT))
    assert held(table) == sorted([*((UPDATED,) if verb == "upsert" else (FIRST, SECOND)), NEXT])
    assert table.services.validate().findings == ()


@kinds
@versions
@pytest.mark.scaled
def test_the_next_write_rolls_it_back_and_keeps_what_it_wrote_though_it_dies_at_any_step(
    table_type: str, version: int, verb: str
) -> None:
    table, write, _ = with_lost(table_type, version, verb)
    before = files(context_of(table).storage)
    for storage, step in Prepared.of(table).deaths(lambda each: each.upsert(rides(NEXT))):
        again = opened(storage, START_MS + HOUR_MS)
        assert held(again) in ([FIRST], sorted([FIRST, NEXT]))
        again.upsert(rides(NEXT))
        assert (held(again), leftovers(again)) == (sorted([FIRST, NEXT]), []), step
        assert [each.check for each in again.services.validate().findings] == ["kept"]
        kept = files(storage, f"{LOST_FOLDER}/{write.requested}")
        assert len(kept) >= 3, "a data file and two files of the timeline"
        assert kept.items() <= before.items(), "under the paths and with the bytes that they had"


@versions
def test_what_it_wrote_into_buckets_to_come_is_kept_with_the_rest(version: int) -> None:
    table, resizing, _ = written_during_resizing(version)
    table.upsert(rides(row(8, 700)))
    write = table.timeline.writes()[-1]
    storage = context_of(table).storage
    logs = [each for each in data_files(storage) if ".log." in each]
    written = {each for each in logs if write.requested in (instants_in(storage, each) or ())}
    assert any(f"_{resizing}.log" in each for each in written) and len(written) == 2
    lose_completion(table, write)
    table.upsert(rides(row(9, 800)))
    kept = files(storage, f"{LOST_FOLDER}/{write.requested}")
    assert written <= kept.keys()


@versions
def test_rows_that_were_kept_can_be_written_again(version: int) -> None:
    table, write, _ = with_lost(COW, version, "append")
    table.upsert(rides(NEXT))
    storage, folder = context_of(table).storage, f"{LOST_FOLDER}/{write.requested}"
    (path,) = (each.path for each in storage.list_tree(folder) if each.path.endswith(".parquet"))
    rows = pq.read_table(storage.open(path))
    table.upsert(rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie_")]))
    assert held(table) == sorted([FIRST, SECOND, NEXT])
    (finding,) = table.services.validate().findings
    assert (finding.severity, finding.check, finding.path) == ("note", "kept", folder)
    storage.delete_tree(folder)
    assert table.services.validate().findings == ()


@versions
def test_a_clean_that_takes_dead_writes_back_and_repair_keep_them_too(version: int) -> None:
    for way in (
        lambda each: each.services.clean(options=LAZY),
        lambda each: each.services.repair(apply=True),
        lambda each: each.services.rollback(),
    ):
        table, write, _ = with_lost(COW, version, "append")
        way(table)
        assert table.timeline.pending_writes() == ()
        assert files(context_of(table).storage, f"{LOST_FOLDER}/{write.requested}")


@versions
def test_what_is_given_up_by_name_is_not_kept(version: int) -> None:
    table, write, _ = with_lost(MOR, version, "append")
    table.services.rollback(write.requested)
    assert (held(table), table.services.validate().findings) == ([FIRST], ())


class DiesAtTheEnd(FaultyStorage):
    """Dies for good when a write is about to complete."""

    def before_change(self, path: str) -> None:
        if path.endswith(".claim"):
            self.die(path)
        super().before_change(path)


@pytest.mark.parametrize("table_type", (COW, MOR))
@versions
@pytest.mark.scaled
def test_what_a_dead_writer_left_is_not_kept_though_its_rollback_dies_at_any_step(
    table_type: str, version: int
) -> None:
    table = create(table_type=table_type, version=version)
    table.insert(rides(FIRST))
    with suppress(DrawstringError):
        opened(DiesAtTheEnd(context_of(table).storage, 1_000), START_MS - HOUR_MS).upsert(rides(UPDATED))
    (dead,) = table.timeline.pending_writes()
    for storage, step in Prepared.of(table).deaths(
        lambda each: each.services.rollback(dead.requested), steps_min=4
    ):
        again = opened(storage, START_MS + HOUR_MS)
        again.upsert(rides(NEXT))
        assert (held(again), again.services.validate().findings) == (sorted([FIRST, NEXT]), ()), step
