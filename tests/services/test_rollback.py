from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.log_inline.blocks import BlockType, HeaderKey, encode_block, scan_blocks
from drawstring.formats.metadata.commit import encode_compaction_plan
from drawstring.formats.metadata.rollback import decode_rollback, decode_rollback_plan, encode_rollback_plan
from drawstring.model.files import FileStatus, LogFile, parse_data_file
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import CompactionOperation, CompactionPlan, RollbackPlan, RollbackRequest
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from drawstring.timeline.claims import Fence
from drawstring.timeline.store import TimelineStore
from drawstring.txn.rollback.recovery import rollback_inflight_plan, rollback_pending
from drawstring.txn.rollback.rollback import RollbackContext, RollbackFacts, plan_rollback, rollback_instant
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.golden import golden_storage
from tests.support.storages import by_clock, files_of, paths, status
from tests.support.timelines import begin, new_table

VERSIONS = (6, 8, 9)
OLD, FAILED = "20240131100000000", "20240131110000000"


def context_on(storage: Storage, config: TableConfig, start_ms: int = 1_800_000_000_000) -> RollbackContext:
    clock = SteppingClock(start_ms)
    by_clock(storage, clock)
    return RollbackContext(storage, config, TimelineStore(storage, config, clock), clock)


def data_block(instant: str) -> bytes:
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, b"x" * 50)


def is_of(path: str, instant: str) -> bool:
    file = parse_data_file(FileStatus(path, 0))
    return file is not None and file.instant == instant


def commands(storage: Storage) -> dict[str, tuple[str | None, str | None]]:
    """Rollback commands by log file: the rollback and the instant that it takes back."""
    found = {}
    for log in filter(None, map(LogFile.parse, storage.list_tree(""))):
        with storage.open(log.status.path) as file:
            for block in scan_blocks(file, log.status.size_bytes):
                if block.kind is BlockType.COMMAND:
                    found[log.status.path] = (block.instant, block.rolls_back)
    return found


class Failed:
    """A table with one completed delta commit and one that failed after writing everything."""

    def __init__(self, version: int, *, marked: bool = True) -> None:
        self.storage, self.config = new_table(version)
        store = TimelineStore(self.storage, self.config, SteppingClock())
        self.good = store.complete(begin(store), b"").requested
        self._put(f"lima/f1-0_0-1-0_{self.good}.parquet", b"base")
        self._put(self._log(self.good, 1), data_block(self.good))
        self.before = {path: data for path, data in files_of(self.storage).items() if path.startswith("lima")}
        self.bad = begin(store).requested
        markers = Markers(self.storage, self.bad)
        self.left = [
            f"lima/f2-0_0-2-0_{self.bad}.parquet",
            f"rome/f3-0_0-2-0_{self.bad}.parquet",
            self._log(self.bad, 2),
        ]
        for path in self.left:
            if marked:
                markers.create(path, "CREATE")
            self._put(path, data_block(self.bad))

    @property
    def context(self) -> RollbackContext:
        return context_on(self.storage, self.config)

    def dying(self, fail_after: int) -> RollbackContext:
        return context_on(FaultyStorage(self.storage, fail_after), self.config)

    def is_clean(self) -> bool:
        data = {path: data for path, data in files_of(self.storage).items() if not path.startswith(".hoodie")}
        kept = {path: data for path, data in data.items() if path in self.before}
        others = set(data) - set(self.before)
        expected = {self.left[2], *commands(self.storage)} if self.config.rules.names_logs_by_slice else set()
        timeline = self.context.store.load()
        temporary = paths(self.storage, ".hoodie/.temp") + paths(self.storage, ".hoodie/.locks")
        fences = {f".hoodie/.locks/{each}.claim" for each in timeline.rolled_back}
        is_settled = not timeline.pending() and set(temporary) <= fences
        return kept == self.before and others == expected and is_settled

    def _log(self, instant: str, number: int) -> str:
        named_by = self.good if self.config.rules.names_logs_by_slice else instant
        version = number if self.config.rules.names_logs_by_slice else 1
        return f"lima/.f1-0_{named_by}.log.{version}_0-{number}-0"

    def _put(self, path: str, data: bytes) -> None:
        self.storage.put(path, data)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("marked", [True, False])
def test_a_failed_write_leaves_no_trace(version: int, marked: bool) -> None:
    table = Failed(version, marked=marked)
    assert rollback_pending(table.context) == [table.bad]
    assert table.is_clean()
    assert rollback_pending(table.context) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_rollback_says_on_the_timeline_what_it_did(version: int) -> None:
    table = Failed(version)
    rollback_pending(table.context)
    store = table.context.store
    (rollback,) = [instant for instant in store.load().instants if instant.action is Action.ROLLBACK]
    done = decode_rollback(store.read(rollback), table.storage.full_uri(""))
    assert (done.instant, done.action, done.started) == (table.bad, "deltacommit", rollback.requested)
    gone = table.left[:2] if version == 6 else table.left
    assert sorted(path for stat in done.stats for path in stat.deleted) == sorted(gone)
    written = {path for stat in done.stats for path in stat.command_files}
    assert written == set(commands(table.storage))
    assert decode_rollback_plan(store.read_requested(rollback), "").instant == table.bad


def test_version_6_appends_one_command_to_a_slice_with_failed_blocks() -> None:
    table = Failed(6)
    rollback_pending(table.context)
    (rollback,) = [each for each in table.context.store.load().instants if each.action is Action.ROLLBACK]
    assert commands(table.storage) == {
        f"lima/.f1-0_{table.good}.log.3_0-2-0": (rollback.requested, table.bad)
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_that_dies_at_any_step_is_finished_by_the_next_writer(version: int) -> None:
    for fail_after in range(100):
        table = Failed(version)
        try:
            rollback_pending(table.dying(fail_after))
        except InjectedFault:
            good = table.context.store.load().writes()
            assert [instant.requested for instant in good] == [table.good]
            assert table.before.items() <= files_of(table.storage).items()
            rollback_pending(table.context)
            assert table.is_clean(), f"after {fail_after} changes"
        else:
            break
    assert fail_after > 12


@pytest.mark.parametrize("version", VERSIONS)
def test_dying_twice_is_no_worse(version: int) -> None:
    for first in range(0, 24, 3):
        for second in range(0, 24, 4):
            table = Failed(version)
            for fail_after in (first, second):
                try:
                    rollback_pending(table.dying(fail_after))
                except InjectedFault:
                    continue
            rollback_pending(table.context)
            assert table.is_clean(), f"after {first} and {second} changes"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_died_before_its_first_file_is_taken_off(version: int) -> None:
    storage, config = new_table(version)
    context = context_on(storage, config)
    requested = context.store.request(Action.COMMIT, context.store.new_time(context.store.load()))
    assert rollback_pending(context) == [requested.requested]
    assert context.store.load().pending() == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_several_failed_writes_go_newest_first(version: int) -> None:
    storage, config = new_table(version)
    context = context_on(storage, config)
    times = [
        begin(context.store, action).requested for action in (Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    ]
    assert rollback_pending(context) == times[::-1]
    assert context.store.load().pending() == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_compaction_stays(version: int) -> None:
    storage, config = new_table(version)
    context = context_on(storage, config)
    compaction = begin(context.store, Action.COMPACTION)
    assert rollback_pending(context) == []
    assert context.store.load().pending() == (compaction,)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_loses_its_attempt_and_can_run_again(version: int) -> None:
    storage, config = new_table(version)
    context = context_on(storage, config)
    store = context.store
    plan = encode_compaction_plan(CompactionPlan(()))
    compaction = store.start(store.request(Action.COMPACTION, store.new_time(store.load()), plan))
    base = f"lima/f1-0_0-1-0_{compaction.requested}.parquet"
    later_log = f"lima/.f1-0_{compaction.requested}.log.1_0-2-0"
    for path in (base, later_log):
        storage.put(path, b"x")
    Markers(storage, compaction.requested).create(base, "CREATE")
    fence = rollback_inflight_plan(context, compaction)
    assert isinstance(fence, Fence)
    assert [path for path in paths(storage) if not path.startswith(".hoodie")] == [later_log]
    assert paths(storage, ".hoodie/.temp") == []
    (requested,) = store.load().pending()
    assert requested == Instant(compaction.requested, Action.COMPACTION, State.REQUESTED)
    assert store.read_requested(requested) == plan
    assert store.complete(store.start(requested), b"", fence).action is Action.COMMIT


def test_a_rolled_back_log_file_in_a_plan_stays_when_its_marker_comes_back() -> None:
    # A power cut takes back the deletion of a marker, long after the rollback was acknowledged.
    table = Failed(6)
    rollback_pending(table.context)
    failed_log, store = table.left[2], table.context.store
    operation = CompactionOperation("lima", "f1-0", table.good, None, (failed_log.rpartition("/")[2],))
    plan = encode_compaction_plan(CompactionPlan((operation,)))
    compaction = store.request(Action.COMPACTION, store.new_time(store.load()), plan)
    Markers(table.storage, table.bad).create(failed_log, "APPEND")
    rollback_pending(table.context)
    assert table.storage.exists(failed_log)
    store.complete(store.start(compaction), b"")
    rollback_pending(table.context)
    assert not table.storage.exists(failed_log)
    assert paths(table.storage, ".hoodie/.temp") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_completed_write_is_not_rolled_back(version: int) -> None:
    table = Failed(version)
    (good,) = table.context.store.load().writes()
    with pytest.raises(InvalidError, match="completed"):
        rollback_instant(table.context, good)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_failed_write_of_real_hudi_goes(version: int, tmp_path: Path) -> None:
    storage, config = golden_storage(f"v{version}_mor_inflight", tmp_path)
    context = context_on(storage, config)
    (failed,) = context.store.load().pending_writes()
    before = files_of(storage)
    assert rollback_pending(context) == [failed.requested]
    after = files_of(storage)
    left = [path for path in before if is_of(path, failed.requested)]
    assert len(left) == (2 if version == 6 else 5)
    assert not any(path in after for path in left)
    assert all(after[path] == data for path, data in before.items() if failed.requested not in path)
    targets = {target for _, target in commands(storage).values()}
    assert len(commands(storage)) == (3 if version == 6 else 0)
    assert targets == ({failed.requested} if version == 6 else set())
    assert context.store.load().pending() == ()


def started_elsewhere(table: Failed, content: bytes, state: State = State.INFLIGHT) -> Instant:
    store = table.context.store
    rollback = store.request(Action.ROLLBACK, store.new_time(store.load()), content)
    return store.start(rollback) if state is State.INFLIGHT else rollback


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_rollback_that_another_engine_began_is_finished(version: int, state: State) -> None:
    table = Failed(version)
    requests = [RollbackRequest(path.rpartition("/")[0], files_to_delete=(path,)) for path in table.left[:2]]
    if version == 6:
        requests.append(RollbackRequest("lima", "f1-0", table.good, log_blocks={"": 1}))
    else:
        requests.append(RollbackRequest("lima", files_to_delete=(table.left[2],)))
    plan = RollbackPlan(table.bad, "deltacommit", tuple(requests))
    rollback = started_elsewhere(table, encode_rollback_plan(plan, "/elsewhere/rides"), state)
    assert rollback_pending(table.context) == [table.bad]
    assert table.is_clean()
    done = [each for each in table.context.store.load().instants if each.action is Action.ROLLBACK]
    assert [each.requested for each in done] == [rollback.requested]


@pytest.mark.parametrize("content", [b"", b"Obj\x01 torn"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_without_a_readable_plan_is_planned_anew(version: int, content: bytes) -> None:
    table = Failed(version)
    started_elsewhere(table, content, State.REQUESTED)
    assert rollback_pending(table.context) == [table.bad]
    assert table.is_clean()


def test_a_plan_that_names_files_of_another_write_is_refused() -> None:
    table = Failed(9)
    committed = f"lima/f1-0_0-1-0_{table.good}.parquet"
    request = RollbackRequest("lima", files_to_delete=(committed,))
    started_elsewhere(table, encode_rollback_plan(RollbackPlan(table.bad, "deltacommit", (request,)), "/x"))
    with pytest.raises(CorruptTableError, match="another write"):
        rollback_pending(table.context)
    assert table.storage.exists(committed)


def test_a_completed_write_that_another_engine_takes_back_is_left_to_it() -> None:
    table = Failed(9)
    started_elsewhere(table, encode_rollback_plan(RollbackPlan(table.good, "deltacommit", ()), "/x"))
    with pytest.raises(UnsupportedError, match=table.good):
        rollback_pending(table.context)


def test_an_unfinished_restore_is_left_to_its_engine() -> None:
    table = Failed(9)
    begin(table.context.store, Action.RESTORE)
    with pytest.raises(UnsupportedError, match="restor"):
        rollback_pending(table.context)
    assert all(table.storage.exists(path) for path in table.left)


@pytest.mark.parametrize(("age_ms", "is_alive"), [(0, True), (60_000, True), (600_000, False)])
def test_a_write_with_a_fresh_heartbeat_is_alive(age_ms: int, is_alive: bool) -> None:
    table = Failed(9)
    now_ms = 1_800_000_000_000
    beating = MemoryStorage(table.storage.spec.uri, SteppingClock(now_ms - age_ms))
    beating.put(f".hoodie/.heartbeat/{table.bad}", b"")
    if is_alive:
        with pytest.raises(ConflictError, match="writing"):
            rollback_pending(table.context)
        assert all(table.storage.exists(path) for path in table.left)
    else:
        rollback_pending(table.context)
        assert table.is_clean()
        assert paths(table.storage, ".hoodie/.heartbeat") == []


def test_a_damaged_log_file_does_not_stop_a_rollback() -> None:
    table = Failed(6)
    damaged = f"rome/.f9-0_{table.good}.log.1_0-1-0"
    block = bytearray(data_block(table.good))
    block[18:22] = (77).to_bytes(4, "big")
    table.storage.put(damaged, bytes(block))
    rollback_pending(table.context)
    assert table.storage.exists(f"rome/.f9-0_{table.good}.log.2_0-1-0")
    assert table.context.store.load().pending() == ()


@pytest.mark.parametrize("name", ["f_0-1-0_{t}.parquet", ".f_{t}.log.1_0-1-0", ".f_{t}.log.1_0-1-0.cdc"])
def test_files_of_the_failed_instant_are_deleted_wherever_they_were_noted(name: str) -> None:
    path = f"lima/{name.format(t=FAILED)}"
    requests = (RollbackRequest("lima", files_to_delete=(path,)),)
    for listed, marked in (((status(path),), ()), ((), (path,)), ((status(path),), (path,))):
        facts = RollbackFacts(FAILED, Action.COMMIT, listed, marked)
        assert plan_rollback(facts) == RollbackPlan(FAILED, "commit", requests)


@pytest.mark.parametrize(
    "path",
    [f"lima/f_0-1-0_{OLD}.parquet", f"lima/.f_{OLD}.log.1_0-1-0", "lima/.hoodie_partition_metadata",
     "notes.txt", f"{FAILED}.parquet", f"lima/{FAILED}/f_0-1-0_{OLD}.parquet"],
)  # fmt: skip
def test_other_files_are_never_deleted(path: str) -> None:
    facts = RollbackFacts(FAILED, Action.COMMIT, (status(path),), (path,))
    assert plan_rollback(facts).requests == ()


def test_log_files_of_one_slice_share_a_command() -> None:
    def log(name: str) -> LogFile:
        parsed = LogFile.parse(status(name, 9))
        assert parsed
        return parsed

    names = [f"lima/.f_{OLD}.log.1_0-1-0", f"lima/.f_{OLD}.log.2_0-1-0", f"lima/.g_{OLD}.log.1_0-1-0"]
    facts = RollbackFacts(FAILED, Action.DELTA_COMMIT, (), (), tuple(map(log, names)))
    assert plan_rollback(facts).requests == (
        RollbackRequest("lima", "f", OLD, (), {names[0]: 9, names[1]: 9}),
        RollbackRequest("lima", "g", OLD, (), {names[2]: 9}),
    )
