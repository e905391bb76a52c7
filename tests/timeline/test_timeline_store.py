from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, CorruptTableError
from drawstring.formats.metadata.commit import encode_commit
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.local import LocalStorage
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.golden import golden_storage
from tests.support.storages import paths
from tests.support.timelines import begin, new_store, new_table

VERSIONS = (6, 8, 9)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_goes_through_its_states(version: int) -> None:
    _, store = new_store(version)
    requested = store.request(Action.DELTA_COMMIT, store.new_time(store.load()))
    assert store.load().pending() == (requested,)
    inflight = store.start(requested, b"profile")
    assert store.load().pending_writes() == (inflight,)
    completed = store.complete(inflight, b"done")
    timeline = store.load()
    assert timeline.writes() == (completed,)
    assert timeline.pending() == ()
    assert store.read(completed) == b"done"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_timeline_is_made_once_for_the_same_files_and_follows_every_change(version: int) -> None:
    storage, store = new_store(version)
    inflight = begin(store)
    first = store.load()
    assert store.load() is first
    other = TimelineStore(storage, load_config(storage), SteppingClock(1_800_000_000_000))
    started = begin(other)
    assert store.load().pending() == (inflight, started)
    other.note_rolled_back(started)
    assert started.requested in store.load().rolled_back
    other.remove_pending(started)
    assert store.load().pending() == (inflight,)
    other.forget_rolled_back(started.requested)
    assert store.load() == first


@pytest.mark.parametrize("version", VERSIONS)
def test_the_timeline_after_a_completion_is_known_without_listing_it(version: int) -> None:
    _, store = new_store(version)
    before = store.load()
    first = store.complete(begin(store), b"x")
    assert before.with_completed(first) == store.load()
    undone = begin(store)
    store.note_rolled_back(undone)
    store.remove_pending(undone)
    others = begin(store)
    own = begin(store, Action.COMPACTION)
    begun = store.load()
    completed = store.complete(own, b"x")
    assert begun.with_completed(completed) == store.load()
    assert store.load().start == first.requested
    completed = store.complete(others, b"x")
    assert begun.with_completed(completed).pending() == (own,)


def test_names_in_version_6() -> None:
    storage, store = new_store(6)
    store.complete(begin(store, Action.COMMIT), b"x")
    time = store.load().instants[0].requested
    names = {path.rpartition("/")[2] for path in paths(storage, ".hoodie")}
    assert {f"{time}.commit", f"{time}.inflight", f"{time}.commit.requested"} <= names


def test_a_completion_time_is_after_every_time_known() -> None:
    storage, store = new_store(9)
    completed = store.complete(begin(store), b"x")
    assert completed.completed is not None
    assert completed.completed > completed.requested
    assert f".hoodie/timeline/{completed.requested}_{completed.completed}.deltacommit" in paths(storage)


def test_times_never_repeat_when_the_clock_stands_still() -> None:
    storage, config = new_table(9)
    store = TimelineStore(storage, config, SteppingClock(step_ms=0))
    timeline = store.load()
    times = [store.new_time(timeline) for _ in range(3)]
    assert times == sorted(set(times))


def test_times_go_on_after_those_of_a_writer_whose_clock_is_ahead() -> None:
    storage, store = new_store(9)
    storage.put(".hoodie/timeline/20990101000000000_20990101000000005.commit", b"")
    assert store.new_time(store.load()) == "20990101000000006"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_completes_as_a_commit(version: int) -> None:
    _, store = new_store(version)
    requested = store.request(Action.COMPACTION, store.new_time(store.load()), b"plan")
    completed = store.complete(store.start(requested), b"x")
    assert completed.action is Action.COMMIT
    assert store.load().instants == (completed,)
    assert store.read_requested(completed) == b"plan"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_taken_step_conflicts(version: int) -> None:
    _, store = new_store(version)
    inflight = begin(store)
    with pytest.raises(ConflictError, match=inflight.requested):
        store.request(inflight.action, inflight.requested)
    with pytest.raises(ConflictError):
        store.start(inflight)
    store.complete(inflight, b"x")
    with pytest.raises(ConflictError, match="another process completed it"):
        store.complete(inflight, b"y")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_rolled_back_cannot_be_completed(version: int) -> None:
    _, store = new_store(version)
    inflight = begin(store)
    store.remove_pending(inflight)
    with pytest.raises(ConflictError, match="rolled back"):
        store.complete(inflight, b"x")
    assert store.load().instants == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_attempt_that_was_taken_away_cannot_complete(version: int) -> None:
    _, store = new_store(version)
    inflight = begin(store, Action.COMPACTION)
    store.revert_to_requested(inflight)
    with pytest.raises(ConflictError, match="inflight file was removed"):
        store.complete(inflight, b"x")
    assert store.load().pending() == (Instant(inflight.requested, Action.COMPACTION, State.REQUESTED),)


@pytest.mark.parametrize("version", VERSIONS)
def test_only_who_took_an_instant_over_last_can_complete_it(version: int) -> None:
    storage, store = new_store(version)
    inflight = begin(store)
    first, second = store.fence(inflight), store.fence(inflight)
    assert isinstance(first, Fence) and isinstance(second, Fence)
    for fence in (None, first):
        with pytest.raises(ConflictError, match=r"took it over, .* Nothing was committed here\. Try again\."):
            store.complete(inflight, b"x", fence)
    assert store.complete(inflight, b"y", second).is_completed
    with pytest.raises(ConflictError, match=r"another process completed it, .* that one committed counts\."):
        store.complete(inflight, b"x", first)
    assert paths(storage, ".hoodie/.locks") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_writer_that_dies_while_completing_leaves_it_done_or_pending(version: int) -> None:
    outcomes = []
    for fail_after in range(10):
        storage, store = new_store(version)
        inflight = begin(store)
        faulty = FaultyStorage(storage, fail_after)
        dying = TimelineStore(faulty, load_config(storage), SteppingClock(1_800_000_000_000))
        with suppress(InjectedFault):
            dying.complete(inflight, b"x")
        (instant,) = store.load().instants
        outcomes.append(instant.state)
        if instant.is_completed:
            assert store.read(instant) == b"x"
        else:
            store.remove_pending(inflight)
            assert store.load().instants == ()
        if faulty.changes < fail_after:
            break
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {State.INFLIGHT, State.COMPLETED}


RACER = """
import sys
from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError
from drawstring.storage.local import LocalStorage
from drawstring.timeline.properties import load_config
from drawstring.timeline.claims import Fence
from drawstring.timeline.store import TimelineStore

storage = LocalStorage(sys.argv[1])
store = TimelineStore(storage, load_config(storage), SystemClock())
pending = store.load().pending_writes()
print("ready", flush=True)
sys.stdin.readline()
won = 0
for instant in pending:
    try:
        store.complete(instant, sys.argv[2].encode())
        won += 1
    except ConflictError:
        pass
print(won)
"""


@pytest.mark.parametrize("version", [6, 9])
def test_of_two_processes_one_completes_an_instant(version: int, tmp_path: Path) -> None:
    storage, config = new_table(version, LocalStorage(str(tmp_path)))
    store = TimelineStore(storage, config, SteppingClock())
    pending = [begin(store) for _ in range(20)]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for racer in racers:
        assert racer.stdout and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    wins = [int(racer.communicate(timeout=60)[0]) for racer in racers]
    completed = [path for path in paths(storage, config.timeline_folder) if path.endswith(".deltacommit")]
    assert sum(wins) == len(completed) == len(pending)
    assert len(store.load().writes()) == len(pending)
    assert paths(storage, ".hoodie/.locks") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_foreign_files_in_the_folder_are_passed_over(version: int) -> None:
    storage, store = new_store(version)
    completed = store.complete(begin(store), b"x")
    for name in (".DS_Store", "notes.txt", "20240131100000000.schemacommit", "1.commit.crc"):
        storage.put(f"{load_config(storage).timeline_folder}/{name}", b"")
    storage.put(".hoodie/.aux/20240131100000000.compaction.requested", b"")
    storage.put(".hoodie/archived/20240131100000000.commit", b"")
    assert store.load().instants == (completed,)


def test_loading_is_one_listing() -> None:
    storage, config = new_table(9)
    listed: list[str] = []

    class Counting(FaultyStorage):
        def list_names(self, folder: str) -> list[str]:
            listed.append(folder)
            return super().list_names(folder)

    TimelineStore(Counting(storage, 0), config, SteppingClock()).load()
    assert listed == [".hoodie/timeline"]


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_metadata_is_read_once(version: int) -> None:
    storage, store = new_store(version)
    layout = load_config(storage).layout
    meta = CommitMetadata((WriteStat("p", "f", "p/f_0-1-0_1.parquet"),), "UPSERT", {"schema": "{}"})
    completed = store.complete(begin(store), encode_commit(meta, layout, replace=False))
    assert store.commit_metadata(completed).stats[0].path == "p/f_0-1-0_1.parquet"
    storage.delete([store.path(completed)])
    assert store.commit_metadata(completed).operation == "UPSERT"


def test_an_empty_completed_file_is_damage() -> None:
    _, store = new_store(6)
    with pytest.raises(CorruptTableError, match=r"empty.*deltacommit"):
        store.commit_metadata(store.complete(begin(store), b""))


def test_a_damaged_or_missing_file_is_named() -> None:
    storage, store = new_store(9)
    completed = store.complete(begin(store), b"Obj\x01 cut off")
    with pytest.raises(CorruptTableError, match=rf"{completed.requested}_{completed.completed}.deltacommit"):
        store.commit_metadata(completed)
    storage.delete([store.path(completed)])
    with pytest.raises(CorruptTableError, match="is missing"):
        store.read(completed)
    storage.delete([f".hoodie/timeline/{completed.requested}.deltacommit.requested"])
    with pytest.raises(CorruptTableError, match="is missing"):
        store.read_requested(completed)


def test_version_6_tells_a_pending_clustering_from_an_overwrite(tmp_path: Path) -> None:
    storage, config = golden_storage("v6_cow_clustering_pending", tmp_path)
    store = TimelineStore(storage, config, SteppingClock())
    (clustering,) = store.load().pending()
    assert clustering.action is Action.CLUSTERING
    assert store.read_requested(clustering).startswith(b"Obj\x01")
    overwrite = store.request(Action.REPLACE_COMMIT, store.new_time(store.load()))
    assert store.load().pending_writes() == (overwrite,)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_tables_load(version: int, tmp_path: Path) -> None:
    storage, config = golden_storage(f"v{version}_mor_inflight", tmp_path)
    store = TimelineStore(storage, config, SteppingClock())
    timeline = store.load()
    assert [instant.action for instant in timeline.writes()] == [Action.COMMIT, Action.DELTA_COMMIT]
    assert [instant.state for instant in timeline.pending_writes()] == [State.INFLIGHT]
    assert all(store.commit_metadata(instant).stats for instant in timeline.writes())
    assert all((instant.completed is None) == (version == 6) for instant in timeline.writes())
