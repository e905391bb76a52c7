"""Who completes an instant when processes die, stand still or get no answer while they complete it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, DecidedError, TakenOverError, UnavailableError
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.local import LocalStorage
from drawstring.storage.protocol import Storage
from drawstring.timeline.claims import Claim, ClaimState, Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from tests.support.faulty_storage import FaultyStorage
from tests.support.timelines import begin, new_store, new_table

VERSIONS = [6, 8, 9]


class Fails(FaultyStorage):
    """Fails once at each change of some files, before or after it is carried out."""

    def __init__(self, inner: Storage, *ends: str, carried_out: bool = False, times: int = 1) -> None:
        super().__init__(inner, 1 << 60)
        self._ends, self._carried_out, self._times = ends, carried_out, times

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return bool(self._failing(path, lambda: super(Fails, self).put_if_absent(path, data)))

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        return bool(self._failing(path, lambda: super(Fails, self).put_if_match(path, data, version)))

    def _failing(self, path: str, put: object) -> object:
        assert callable(put)
        if not path.endswith(self._ends) or self._times == 0:
            return put()
        self._times -= 1
        if self._carried_out:
            put()
        raise UnavailableError("no answer", path=path)


class Behind(FaultyStorage):
    """Of a writer whose clock is behind: another write completes later than it claims."""

    def __init__(self, inner: Storage, other: Instant) -> None:
        super().__init__(inner, 1 << 60)
        self._other = other

    def put_if_absent(self, path: str, data: bytes) -> bool:
        is_ours = super().put_if_absent(path, data)
        if path.endswith(".claim"):
            through(self._inner).complete(self._other, b"y")
        return is_ours


def through(storage: Storage) -> TimelineStore:
    return TimelineStore(storage, load_config(storage), SteppingClock(1_800_000_000_000))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", ["fence", "prevent_completion"])
def test_an_instant_that_completed_just_before_it_was_to_be_rolled_back_stays_completed(
    version: int, way: str
) -> None:
    storage, store = new_store(version)
    inflight = begin(store)  # what a writer knows that is about to roll it back
    completed = store.complete(inflight, b"x")
    assert getattr(through(storage), way)(inflight) == completed
    assert storage.list_files(".hoodie/.locks") == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", ["fence", "prevent_completion"])
def test_a_writer_that_stalls_after_it_announced_a_commit_cannot_complete_once_it_is_rolled_back(
    version: int, way: str
) -> None:
    storage, store = new_store(version)
    inflight = begin(store)
    announced = store.announce(inflight)
    assert not isinstance(getattr(through(storage), way)(inflight), Instant)
    assert not store.has_fence(inflight, announced)
    with pytest.raises(ConflictError):
        store.complete(inflight, b"x", announced)
    assert through(storage).prevent_completion(inflight) is None
    assert store.load().pending() == (inflight,)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_decision_whose_answer_got_lost_is_taken_back_by_who_made_it(version: int) -> None:
    storage, store = new_store(version)
    inflight = begin(store)
    own = through(Fails(storage, ".claim", carried_out=True))
    with pytest.raises(UnavailableError):
        own.complete(inflight, b"x")
    assert own.prevent_completion(inflight) is None
    assert store.load().pending() == (inflight,)
    with pytest.raises(ConflictError):
        through(storage).complete(inflight, b"x")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_completed_file_that_cannot_be_put_leaves_the_instant_pending(version: int) -> None:
    storage, store = new_store(version)
    inflight = begin(store)
    with pytest.raises(UnavailableError):
        through(Fails(storage, ".deltacommit")).complete(inflight, b"x")
    assert store.load().pending() == (inflight,)
    assert store.prevent_completion(inflight) is None, (
        "nobody completes it for a writer that was told that it failed"
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_completed_file_that_was_put_without_an_answer_is_a_success(version: int) -> None:
    storage, store = new_store(version)
    completed = through(Fails(storage, ".deltacommit", carried_out=True)).complete(begin(store), b"x")
    assert store.load().instants == (completed,)


def test_a_full_disk_has_room_for_taking_a_decision_back(tmp_path: Path) -> None:
    storage, config = new_table(9, LocalStorage(str(tmp_path)))
    store = TimelineStore(storage, config, SteppingClock())
    inflight = begin(store)

    class Full(Fails):
        def put_if_match(self, path: str, data: bytes, version: str) -> bool:
            raise UnavailableError("The disk is full.", path=path)

    with pytest.raises(UnavailableError):
        through(Full(storage, ".deltacommit")).complete(inflight, b"x")
    assert store.prevent_completion(inflight) is None
    assert store.load().pending() == (inflight,)


@pytest.mark.parametrize("version", VERSIONS)
def test_whoever_finds_a_decision_carries_it_out(version: int) -> None:
    storage, store = new_store(version)
    inflight = begin(store)
    dead = FaultyStorage(storage, 1)
    with pytest.raises(UnavailableError):
        through(dead).complete(inflight, b"words of the dead")
    assert store.load().pending() == (inflight,)
    completed = through(storage).fence(inflight)
    assert isinstance(completed, Instant) and completed.is_completed
    assert store.read(completed) == b"words of the dead"


class LosesLock:
    """Finds, before the completed file is put, that others have the table lock.

    Args:
        act: what they do meanwhile.
    """

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self._act = act

    def requesting(self, instant: Instant) -> None:
        pass

    def removing(self, instant: Instant) -> None:
        pass

    @contextmanager
    def completing(self, instant: Instant, content: bytes) -> Iterator[None]:
        with suppress(UnavailableError):
            self._act()
        raise ConflictError("the lock is lost")
        yield


@pytest.mark.parametrize("version", VERSIONS)
def test_a_decision_that_others_are_about_to_carry_out_is_told_from_one_that_was_taken_back(
    version: int,
) -> None:
    storage, store = new_store(version)
    config, clock = load_config(storage), SteppingClock(1_800_000_000_000)
    inflight = begin(store)

    def adopt_and_die() -> None:
        through(Fails(storage, ".deltacommit")).fence(inflight)

    with pytest.raises(TakenOverError):
        TimelineStore(storage, config, clock, None, LosesLock(adopt_and_die)).complete(inflight, b"x")
    completed = through(storage).fence(inflight)
    assert isinstance(completed, Instant) and store.read(completed) == b"x"
    again = begin(store)
    with pytest.raises(ConflictError, match="the lock is lost") as caught:
        TimelineStore(storage, config, clock, None, LosesLock()).complete(again, b"x")
    assert not isinstance(caught.value, DecidedError)
    assert through(storage).prevent_completion(again) is None


def test_a_claim_that_was_cut_short_lets_nobody_complete() -> None:
    whole = Claim(ClaimState.COMMITTING, "me", "1_2.commit", b"content").encode()
    assert Claim.decode(whole).content == b"content"
    for end in range(len(whole)):
        assert Claim.decode(whole[:end]).state is ClaimState.TAKEN


def test_a_time_that_was_rolled_back_can_be_used_again_once_that_is_forgotten() -> None:
    _, store = new_store(9)
    inflight = begin(store)
    assert store.prevent_completion(inflight) is None
    store.note_rolled_back(inflight)
    store.remove_pending(inflight)
    assert store.load().rolled_back == {inflight.requested}
    store.forget_rolled_back(inflight.requested)
    assert store.load().rolled_back == frozenset()
    again = store.start(store.request(Action.DELTA_COMMIT, inflight.requested))
    assert store.complete(again, b"x").state is State.COMPLETED
    assert isinstance(store.fence(begin(store)), Fence)


def test_an_instant_that_others_completed_for_a_writer_that_went_on_is_a_success_for_it() -> None:
    storage, store = new_store(9)
    inflight, other = begin(store), begin(store)

    class Helped(Behind):
        """Others then carry the claim out."""

        def put_if_match(self, path: str, data: bytes, version: str) -> bool:
            claim = Claim.decode(storage.read(path))
            is_ours = super().put_if_match(path, data, version)
            if Claim.decode(data).state is ClaimState.TAKEN:
                storage.put_if_absent(f".hoodie/timeline/{claim.file_name}", claim.content)
                storage.delete([path])
            return is_ours

    config = load_config(storage)
    own = TimelineStore(Helped(storage, other), config, SteppingClock(1_750_000_000_000))
    completed = own.complete(inflight, b"x")
    assert completed in store.load().instants
    assert store.read(completed) == b"x"
    with pytest.raises(ConflictError):
        own.complete(other, b"x")


@pytest.mark.parametrize("way", ["fence", "prevent_completion"])
def test_an_instant_whose_decision_others_carry_out_keeps_its_completion_time(way: str) -> None:
    storage, store = new_store(9)
    inflight, other = begin(store), begin(store)
    late: list[tuple[str, bytes]] = []

    class Slow(FaultyStorage):
        """Of a process that stands still before it puts the completed file."""

        def put_if_absent(self, path: str, data: bytes) -> bool:
            if path.endswith(".deltacommit"):
                late.append((path, data))
                raise UnavailableError("stands still", path=path)
            return super().put_if_absent(path, data)

    class Overtaken(Behind):
        """The slow process takes the decision up before this one revokes it."""

        def put_if_match(self, path: str, data: bytes, version: str) -> bool:
            if not late:
                with pytest.raises(UnavailableError):
                    getattr(through(Slow(storage, 1 << 60)), way)(inflight)
            return super().put_if_match(path, data, version)

    config = load_config(storage)
    own = TimelineStore(Overtaken(storage, other), config, SteppingClock(1_750_000_000_000))
    completed = own.complete(inflight, b"x")
    ((path, data),) = late
    assert not storage.put_if_absent(path, data), "the slow process goes on, and finds the file"
    assert [each for each in store.load().instants if each.requested == inflight.requested] == [completed]


def test_an_instant_of_a_dead_process_completes_after_what_it_had_loaded() -> None:
    """Others complete it at the time that it claimed: a clock that is behind must not choose that alone."""
    storage, store = new_store(9)
    storage.put(".hoodie/timeline/20990101000000000_20990101000000005.commit", b"")
    inflight = begin(store)
    storage.put(".hoodie/timeline/20990101000000008_20990101000000009.commit", b"")

    class Dies(FaultyStorage):
        """Of a process that dies as soon as it has claimed the completion."""

        is_dead = False

        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.is_dead = self.is_dead or not super().put_if_absent(path, data) or path.endswith(".claim")
            return True

        def list_names(self, folder: str) -> list[str]:
            if self.is_dead:
                raise UnavailableError("died", path=folder)
            return super().list_names(folder)

    own = TimelineStore(Dies(storage, 1 << 60), load_config(storage), SteppingClock(1_750_000_000_000))
    own.load()
    with pytest.raises(UnavailableError, match="died"):
        own.complete(inflight, b"x")
    completed = store.fence(inflight)
    assert isinstance(completed, Instant)
    assert completed.completed == "20990101000000010"
