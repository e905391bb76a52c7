from __future__ import annotations

import pickle

from drawstring.model.instant import Action, Instant, State
from drawstring.timeline.timeline import Timeline


def at(hour: int) -> str:
    return f"202401311{hour}0000000"


def done(hour: int, action: Action = Action.DELTA_COMMIT, completed: int | None = None) -> Instant:
    return Instant(at(hour), action, State.COMPLETED, at(hour if completed is None else completed))


def pending(hour: int, action: Action, state: State = State.INFLIGHT) -> Instant:
    return Instant(at(hour), action, state)


def test_an_instant_stands_once_at_its_furthest_state() -> None:
    files = [
        pending(1, Action.DELTA_COMMIT, State.REQUESTED), done(1), pending(1, Action.DELTA_COMMIT),
        pending(2, Action.COMMIT), pending(2, Action.COMMIT, State.REQUESTED),
    ]  # fmt: skip
    assert Timeline.of(files).instants == (done(1), pending(2, Action.COMMIT))


def test_a_completed_compaction_hides_its_plan() -> None:
    files = [
        pending(1, Action.COMPACTION, State.REQUESTED),
        done(1, Action.COMMIT),
        pending(1, Action.COMPACTION),
    ]
    assert Timeline.of(files).instants == (done(1, Action.COMMIT),)
    assert Timeline.of(files).pending() == ()


def test_a_savepoint_stands_beside_the_commit_of_the_same_time() -> None:
    timeline = Timeline.of([done(1, Action.COMMIT), done(1, Action.SAVEPOINT)])
    assert len(timeline.instants) == 2
    assert timeline.find(at(1)) == done(1, Action.COMMIT)


def test_of_two_completions_every_reader_sees_the_earlier() -> None:
    for files in ([done(1, completed=3), done(1, completed=2)], [done(1, completed=2), done(1, completed=3)]):
        assert Timeline.of(files).completion_of(at(1)) == at(2)


def test_pending_writes_leave_table_services_out() -> None:
    writes = [pending(hour, action) for hour, action in enumerate((Action.COMMIT, Action.REPLACE_COMMIT))]
    services = [pending(5, Action.COMPACTION), pending(6, Action.CLUSTERING), pending(7, Action.ROLLBACK)]
    timeline = Timeline.of(writes + services)
    assert list(timeline.pending_writes()) == writes
    assert list(timeline.pending()) == writes + services
    assert list(timeline.pending_of(Action.ROLLBACK)) == [services[-1]]


def test_completed_instants_of_actions_leave_pending_ones_out() -> None:
    clean, savepoint = done(2, Action.CLEAN), done(1, Action.SAVEPOINT)
    timeline = Timeline.of([done(1), clean, savepoint, pending(3, Action.CLEAN)])
    assert timeline.completed_of(Action.CLEAN) == (clean,)
    assert timeline.completed_of(Action.CLEAN, Action.SAVEPOINT) == (savepoint, clean)


def test_only_completed_and_archived_writes_are_committed() -> None:
    timeline = Timeline.of([done(2), pending(3, Action.COMMIT), done(4, Action.CLEAN)])
    assert timeline.start == at(2)
    completions = [timeline.completion_of(at(hour)) for hour in (1, 3, 4, 5)]
    assert completions == [at(1), None, None, None]
    assert timeline.completion_of(at(2)) is not None


def test_nothing_is_committed_in_a_table_without_writes() -> None:
    timeline = Timeline.of([done(4, Action.CLEAN)])
    assert timeline.start is None
    assert timeline.completion_of(at(1)) is None
    assert timeline.latest_write() is None


def test_savepointed_commits_that_archiving_passed_do_not_start_the_timeline() -> None:
    timeline = Timeline.of([done(1), done(1, Action.SAVEPOINT), done(3)])
    assert timeline.start == at(3)
    assert timeline.completion_of(at(2)) == at(2)


def test_completion_in_version_6_is_the_requested_time() -> None:
    timeline = Timeline.of([Instant(at(1), Action.COMMIT, State.COMPLETED)])
    assert timeline.completion_of(at(1)) == at(1)


def test_until_keeps_the_start() -> None:
    timeline = Timeline.of([done(1), done(2), done(3)])
    assert timeline.until(at(2)).writes() == (done(1), done(2))
    assert timeline.until(at(0)).start == at(1)
    assert timeline.until(at(2)).latest_write() == done(2)


def test_the_latest_time_counts_completions() -> None:
    assert Timeline.of([done(1, completed=5), done(3)]).latest_time() == at(5)
    assert Timeline().latest_time() is None


def test_a_timeline_can_be_sent_to_a_worker() -> None:
    timeline = Timeline.of([done(1), pending(2, Action.COMMIT)])
    copy = pickle.loads(pickle.dumps(timeline))
    assert copy == timeline
    assert copy.completion_of(at(1)) == timeline.completion_of(at(1)) is not None


def test_a_state_is_shown_by_its_name() -> None:
    assert [str(state) for state in State] == ["requested", "inflight", "completed"]
