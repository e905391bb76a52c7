"""Archiving: the active timeline stays short, and nothing that somebody still asks is archived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SystemClock
from drawstring.base.errors import InvalidError
from drawstring.config.keys.services import Archiving
from drawstring.formats.metadata.archive import ArchivedInstantRow
from drawstring.formats.metadata.plans import decode_clean
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import CleanMetadata
from drawstring.services.archive import ArchiveFacts, overlapping, plan_archive
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.archive.lsm import LsmTimelineWriter
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.archive.writer import archive_instants
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableContext
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened
from tests.support.faulty_storage import FaultyStorage
from tests.support.golden import golden_storage
from tests.support.rows import held, rides
from tests.support.storages import files_of
from tests.support.tables import COW, MOR, WITHOUT_COMPACTION, WITHOUT_SERVICES, create, listing

NEVER = WITHOUT_SERVICES
SHORT = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.timeline.compaction.batch.size": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}
SIZES = Archiving(True, 3, 4, beyond_savepoint=False, batch_files=3, file_bytes_max=1 << 30, manifests_kept=3)

tables = pytest.mark.parametrize(
    ("table_type", "version"), [(COW, 6), (COW, 9), (MOR, 6), (MOR, 8), (MOR, 9)]
)


def archived(table: Table) -> list[Instant]:
    return open_archive(context_of(table).storage, table.config).completed("")


def everything(table: Table) -> list[str]:
    """Requested times of all writes, archived or not."""
    return [each.requested for each in (*archived(table), *table.timeline.instants) if each.is_write]


def upserted(table: Table, rounds: Iterable[int], **options: Any) -> list[str]:
    return [table.upsert(rides(("a", "rome", n, float(n))), options=options).instant for n in rounds]


@pytest.mark.parametrize(
    ("table_type", "version", "options"),
    [(COW, 6, {}), (COW, 9, {}), (MOR, 8, {}), pytest.param(MOR, 9, WITHOUT_COMPACTION, id="only deltas")],
)
def test_the_active_timeline_stays_short_and_no_commit_is_lost(
    table_type: str, version: int, options: dict[str, str]
) -> None:
    table = create(table_type=table_type, version=version)
    times = upserted(table, range(32), **options)
    assert 20 <= len(table.timeline.writes()) <= 30
    assert [each for each in everything(table) if each in times] == times
    assert held(table) == [("a", "rome", 31, 31.0)]
    archive = open_archive(context_of(table).storage, table.config)
    for instant in archive.completed(""):
        if instant.is_write:
            assert archive.commit_metadata(instant).stats
    found = table.incremental("earliest", columns=["id", "ts"]).to_arrow().to_pylist()
    assert found == [{"id": "a", "ts": 31}]


@tables
def test_archiving_is_asked_for_and_shown_before(table_type: str, version: int) -> None:
    table = listing(create(table_type=table_type, version=version))
    times = upserted(table, range(7), **NEVER)
    assert [each.requested for each in table.services.plan_archive(options=SHORT)] == times[:4]
    result = table.services.archive(options=SHORT)
    assert result and (result.instants, result.first, result.last) == (4, times[0], times[3])
    assert [each.requested for each in table.timeline.writes()] == times[4:]
    assert not table.services.archive(options=SHORT)
    assert table.services.plan_archive(options=SHORT) == []


@pytest.mark.parametrize("version", [8, 9])
def test_the_history_compacts_itself_and_keeps_few_files(version: int) -> None:
    table = create(version=version)
    times = upserted(table, range(30), **SHORT)
    assert everything(table) == times
    names = [each.name for each in context_of(table).storage.list_files(table.config.history_folder)]
    levels = {name.rpartition("_")[2] for name in names if name.endswith(".parquet")}
    assert "2.parquet" in levels
    assert len(names) <= 20
    assert len([name for name in names if name.startswith("manifest_")]) <= 5


def test_the_archive_of_version_6_keeps_few_files() -> None:
    table = create(version=6)
    times = upserted(table, range(25), **SHORT)
    assert everything(table) == times
    assert len(context_of(table).storage.list_files(table.config.history_folder)) == 1


@pytest.mark.parametrize("version", [6, 9])
def test_services_are_archived_with_their_plans(version: int) -> None:
    table = create(table_type=MOR, version=version)
    for number in range(8):
        upserted(table, [number], **NEVER)
        table.services.compact()
        table.insert_overwrite(rides(("b", "oslo", number, 1.0)), options=NEVER)
        table.services.clean(options=SHORT)
    expected = held(table)
    before = {each.requested: each for each in table.timeline.instants}
    result = table.services.archive(options=SHORT)
    assert result and result.instants > 12
    assert {each.requested for each in archived(table)} <= before.keys()
    assert {str(each.action) for each in archived(table)} >= {
        "commit",
        "deltacommit",
        "replacecommit",
        "clean",
    }
    assert held(table) == expected
    if version == 9:
        storage, config = context_of(table).storage, table.config
        (file,) = [s for s in storage.list_files(config.history_folder) if s.name.endswith(".parquet")]
        rows = _rows(storage, file.path)
        assert {row["action"] for row in rows if row["plan"]} == {"commit", "replacecommit", "clean"}
        cleans = [row for row in rows if row["action"] == "clean"]
        assert all(decode_clean(row["metadata"]).started == row["instantTime"] for row in cleans)


def _rows(storage: Storage, path: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    with storage.open(path) as file:
        rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


@pytest.mark.parametrize("name", ["v6_mor_clean", "v6_cow_insert_overwrite_table", "v6_mor_compacted"])
def test_instants_of_real_hudi_are_archived_as_they_were(name: str, tmp_path: Path) -> None:
    storage, config = golden_storage(name, tmp_path)
    store = TimelineStore(storage, config, SystemClock())
    going = [each for each in store.load().instants if each.is_completed][:-1]
    then = {each: store.commit_metadata(each) for each in going if each.is_write}
    archive_instants(storage, config, SIZES, going, lambda: None)
    archive = open_archive(storage, config)
    assert archive.completed("") == going
    for instant, said in then.items():
        assert archive.commit_metadata(instant) == said
    assert [each for each in store.load().instants if each in going] == []


def prepared(table_type: str, version: int) -> Prepared:
    table = listing(create(table_type=table_type, version=version))
    upserted(table, range(5), **NEVER)
    table.services.archive(options=SHORT)
    upserted(table, range(5, 8), **NEVER)
    table.services.clean(options=SHORT)
    return Prepared.of(table)


@pytest.mark.parametrize(("table_type", "version"), [(COW, 6), (MOR, 9)])
@pytest.mark.scaled
def test_archiving_that_dies_at_any_step_is_done_by_the_next(table_type: str, version: int) -> None:
    start = prepared(table_type, version)
    times = everything(opened(start.copy(), START_MS))
    for storage, step in start.deaths(lambda table: table.services.archive(options=SHORT)):
        table = listing(opened(storage, START_MS + HOUR_MS))
        assert held(table) == start.after, step
        assert sorted(set(everything(table))) == times, step
        assert not table.timeline.pending(), step
        upserted(table, [9], **SHORT, **WITHOUT_COMPACTION)
        assert everything(table)[:-1] == times, step
        assert held(table) == [("a", "rome", 9, 9.0)], step
        assert leftovers(table) == [], step


class Counting(FaultyStorage):
    """Counts what is read."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, 1 << 60)
        self.reads = 0

    def read(self, path: str) -> bytes:
        self.reads += 1
        return super().read(path)

    def open(self, path: str) -> Any:
        self.reads += 1
        return super().open(path)


def test_a_table_with_10000_instants_reads_no_more_than_one_with_40() -> None:
    def counted(storage: Storage) -> tuple[int, int]:
        counting = Counting(storage)
        table = Table(TableContext(counting))
        assert held(table) == [("a", "rome", 39, 39.0)]
        scanned = counting.reads
        upserted(table, [39])
        return scanned, counting.reads - scanned

    table = create()
    upserted(table, range(40))
    storage = context_of(table).storage
    files = files_of(storage)
    short = counted(Prepared(files, [], []).copy())
    history = LsmTimelineWriter(storage, table.config.history_folder, SIZES)
    for start in range(0, 10_000, 1000):
        times = [f"2020{number:013d}" for number in range(start, start + 1000)]
        history.write([ArchivedInstantRow(time, time, "commit", b"", None) for time in times], lambda: None)
    history.tidy(lambda: None)
    long = counted(storage)
    assert len(everything(table)) > 10_000
    assert short[0] < 80
    assert long <= (short[0], short[1] + 10)


def test_more_must_stay_than_when_archiving_begins() -> None:
    table = create()
    with pytest.raises(InvalidError, match=r"keep\.max\.commits"):
        table.services.archive(options={"hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "5"})


def writes(count: int, *others: Instant, action: Action = Action.COMMIT) -> Timeline:
    made = [Instant(f"{number:03}", action, State.COMPLETED, f"{number:03}5") for number in range(count)]
    return Timeline.of([*made, *others])


def chosen(timeline: Timeline, archiving: Archiving = SIZES, **facts: Any) -> list[str]:
    known: dict[str, Any] = {
        "is_merge_on_read": False,
        "retained": None,
        "last": None,
        "saved": (),
        "deltas_kept": 5,
    }
    return [each.requested for each in plan_archive(ArchiveFacts(timeline, **(known | facts)), archiving)]


def test_as_many_writes_stay_as_are_asked_for() -> None:
    assert chosen(writes(4)) == []
    assert chosen(writes(5)) == ["000", "001"]
    assert chosen(writes(9)) == ["000", "001", "002", "003", "004", "005"]


def test_writes_stay_whose_files_a_clean_keeps() -> None:
    assert chosen(writes(9), retained="002") == []
    assert chosen(writes(20), retained="010") == ["000", "001", "002", "003", "004", "005", "006", "007"]


def test_nothing_goes_that_comes_after_something_pending() -> None:
    pending = Instant("004", Action.COMPACTION, State.REQUESTED)
    timeline = Timeline.of([*(i for i in writes(9).instants if i.requested != "004"), pending])
    assert chosen(timeline) == ["000", "001", "002"]


def test_savepoints_stop_it_or_are_left_out() -> None:
    assert chosen(writes(9), saved=("002",)) == ["000", "001"]
    beyond = Archiving(True, 3, 4, True, 3, 1 << 30, 3)
    assert chosen(writes(9), beyond, saved=("002",)) == ["000", "001", "003", "004", "005", "006"]


def test_what_completed_after_a_write_with_a_savepoint_stays() -> None:
    late = Instant("0015", Action.REPLACE_COMMIT, State.COMPLETED, "0045")
    timeline = writes(9, late)
    assert chosen(timeline, saved=("002",)) == ["000", "001"]
    cleaned = CleanMetadata("0085", 1, "", "007", "008", savepoints=("002",))
    assert chosen(timeline, last=cleaned) == ["000", "001"]


def test_a_replacing_write_stays_until_a_clean_took_what_it_replaced() -> None:
    replacing = Instant("0015", Action.REPLACE_COMMIT, State.COMPLETED, "0016")
    clean = Instant("0085", Action.CLEAN, State.COMPLETED, "0086")
    timeline = writes(9, replacing, clean)
    assert chosen(timeline) == ["000", "001"]
    assert chosen(timeline, last=CleanMetadata("0085", 1, "", "001", "008")) == ["000", "001"]
    done = CleanMetadata("0085", 1, "", "007", "008")
    assert chosen(timeline, last=done) == ["000", "001", "0015", "002", "003", "004", "005"]
    then_saved = CleanMetadata("0085", 1, "", "007", "008", savepoints=("000",))
    assert chosen(timeline, last=then_saved) == ["000", "001"]


def test_a_delta_commit_that_completed_after_a_compaction_began_stays() -> None:
    late = Instant("0015", Action.DELTA_COMMIT, State.COMPLETED, "0045")
    deltas = writes(9, late, action=Action.DELTA_COMMIT).instants
    compaction = Instant("003", Action.COMMIT, State.COMPLETED, "0035")
    timeline = Timeline.of([*(each for each in deltas if each.requested != "003"), compaction])
    assert list(overlapping(timeline)) == [late]
    assert chosen(timeline, is_merge_on_read=True, overlapping="0015") == ["000", "001"]
    assert chosen(timeline) == ["000", "001", "0015", "002", "003", "004", "005"]


class NoLock:
    """Stands for an engine that does not look at drawstring's lock."""

    def check(self) -> None:
        pass


@contextmanager
def unlocked(*_: object) -> Iterator[NoLock]:
    yield NoLock()


def test_a_late_delta_commit_is_archived_once_its_log_files_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = listing(create(table_type=MOR, version=9))
    upserted(table, range(2), **NEVER)
    beside = {**NEVER, "hoodie.clean.failed.writes.policy": "NEVER"}

    def compacted_meanwhile() -> Iterator[pa.RecordBatch]:
        with monkeypatch.context() as patched:
            patched.setattr("drawstring.txn.transaction.table_lock", unlocked)
            assert table.services.compact(options=beside)
        (own,) = table.timeline.pending_writes()
        context_of(table).storage.delete([f".hoodie/.locks/{own.requested}.claim"])
        yield from rides(("a", "rome", 2, 2.0)).to_batches()

    reader = pa.RecordBatchReader.from_batches(rides().schema, compacted_meanwhile())
    alone = {**NEVER, "hoodie.write.concurrency.mode": "SINGLE_WRITER"}
    late = table.upsert(reader, options=alone).instant
    assert [each.requested for each in overlapping(table.timeline)] == [late]
    upserted(table, range(3, 8), **NEVER)
    assert table.services.archive(options=SHORT)
    assert table.timeline.writes()[0].requested == late
    assert not table.services.archive(options=SHORT)
    assert held(table) == [("a", "rome", 7, 7.0)]

    for number in range(8, 11):
        upserted(table, [number], **NEVER)
        table.services.compact(options=NEVER)
    table.services.clean(options=SHORT)
    assert table.services.archive(options=SHORT)
    assert table.timeline.write_at(late) is None
    assert len(table.timeline.writes()) <= 4
    assert held(table) == [("a", "rome", 10, 10.0)]


def test_the_deltas_that_make_a_compaction_due_stay() -> None:
    timeline = writes(9, action=Action.DELTA_COMMIT)
    assert chosen(timeline, is_merge_on_read=True, deltas_kept=7) == ["000", "001"]
    assert chosen(timeline, is_merge_on_read=True, deltas_kept=2) == [
        "000",
        "001",
        "002",
        "003",
        "004",
        "005",
    ]


def test_cleans_rollbacks_and_restores_go_along() -> None:
    others = [
        Instant("0005", Action.CLEAN, State.COMPLETED, "0006"),
        Instant("0015", Action.ROLLBACK, State.COMPLETED, "0016"),
        Instant("0025", Action.CLEAN, State.COMPLETED, "0026"),
        Instant("0026", Action.RESTORE, State.COMPLETED, "0027"),
        Instant("0055", Action.CLEAN, State.COMPLETED, "0056"),
    ]
    went = ["000", "0005", "001", "0015", "002", "0025", "0026", "003", "004", "005"]
    assert chosen(writes(9, *others)) == went


@tables
def test_no_instant_stays_that_is_older_than_an_archived_write(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    first, *_ = upserted(table, range(3), **NEVER)
    if table_type == MOR:
        table.services.compact(options=NEVER)
    upserted(table, [3], **NEVER)
    assert table.services.clean(options=SHORT)
    upserted(table, range(4, 12), **NEVER)
    table.services.archive(options=SHORT | {"hoodie.clean.automatic": "false"})
    newest = max(each.requested for each in archived(table) if each.is_write)
    assert min(each.requested for each in table.timeline.instants) > newest
    with pytest.raises(InvalidError, match="may have been cleaned away"):
        table.scan(as_of=first).to_arrow()


def test_a_default_table_of_real_files_is_archived(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", rides().schema, record_key="id", partition_by="city")
    upserted(table, range(33))
    folder = tmp_path / "t" / ".hoodie" / "timeline"
    assert len(list(folder.glob("*.commit"))) == 20 + (33 - 31)
    assert list((folder / "history").glob("*_0.parquet"))
    assert held(table) == [("a", "rome", 32, 32.0)]


@pytest.mark.parametrize("version", [6, 9])
def test_writes_that_the_last_clean_retained_stay_if_they_are_asked_to(version: int) -> None:
    table = create(version=version)
    times = upserted(table, range(12), **NEVER)
    assert table.services.clean(options={"hoodie.clean.commits.retained": "6"}).earliest_retained == times[6]
    blocked = SHORT | {"hoodie.archive.block.on.latest.clean.ectr": "true"}
    assert [each.requested for each in table.services.plan_archive(options=SHORT) if each.is_write] == times[
        :9
    ]
    assert [
        each.requested for each in table.services.plan_archive(options=blocked) if each.is_write
    ] == times[:6]
    assert table.services.archive(options=blocked)
    assert [each.requested for each in table.timeline.writes()] == times[6:]
