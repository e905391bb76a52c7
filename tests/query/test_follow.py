"""Following a table: whoever applies batch after batch holds what the table holds, wherever it stopped."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.filegroups.cdc_reader import COMPACT, json_images
from drawstring.model.instant import time_of
from drawstring.query.stream import Batch, stored_position
from drawstring.timeline import store
from tests.support.golden import golden_table
from tests.support.histories import CASES, Case, History, create, plain, row, table_of
from tests.support.seeds import scaled_steps
from tests.support.tables import WITHOUT_SERVICES, listing

Image = dict[str, Any]
State = dict[str, Image]
VERBS = ("upsert", "upsert", "upsert", "delete", "insert_overwrite", "compact")
KEYS = 30


def images(table: drawstring.Table) -> State:
    """Return what a table holds, as change images, by key."""
    texts = json_images(table.scan().to_arrow(), COMPACT).to_pylist()
    return {image["id"]: image for image in map(image_of, texts)}


def image_of(text: str | None) -> Image:
    """Return the columns of an image whose values do not depend on how files were rewritten."""
    content = json.loads(text or "{}")
    return {name: value for name, value in content.items() if not name.startswith("_hoodie_")}


def apply(state: State, changes: list[dict[str, Any]]) -> None:
    """Apply changes, each of which has to fit what is there."""
    for change in sorted(changes, key=lambda each: (each["ts_ms"], each["op"] != "d")):
        before, after = image_of(change["before"]), image_of(change["after"])
        key = (after or before)["id"]
        assert state.get(key) == (before or None)
        assert (change["op"] == "i") == (not before)
        assert (change["op"] == "d") == (not after)
        state.pop(key, None)
        if after:
            state[key] = after


def take_step(history: History, chance: random.Random, ts: int) -> None:
    numbers = sorted(chance.sample(range(KEYS), chance.randint(1, 6)))
    rows = [row(number, ts - chance.choice((0, 0, 90))) for number in numbers]
    verb = chance.choice(VERBS)
    if verb == "compact":
        if history.case.is_mor:
            history.table.services.compact()
        return
    getattr(history.table, verb)(table_of(rows), options=history.case.write_options)


def times(table: drawstring.Table) -> list[str]:
    return [time_of(each) for each in table.timeline.writes()]


@pytest.mark.scaled
@pytest.mark.parametrize("case", CASES, ids=str)
def test_changes_applied_one_after_another_make_the_table_of_every_moment(case: Case, tmp_path: Path) -> None:
    for seed in range(scaled_steps(2)):
        chance = random.Random(seed)
        history = create(str(tmp_path / str(seed)), case)
        moments: dict[str, State] = {}
        state: State = {}
        position = None
        for step in range(8):
            take_step(history, chance, 100 * (step + 1))
            now = images(history.table)
            moments = dict.fromkeys(times(history.table), now) | moments
            if chance.random() < 0.5:
                continue
            limit = chance.choice((None, 1, 2))
            for batch in history.table.follow(position, changes=True, poll_seconds=None, max_commits=limit):
                apply(state, batch.rows.to_arrow().to_pylist())
                position = batch.position
                assert state == moments[stored_position(position).time]
                if chance.random() < 0.3:
                    break


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_upserted_batch_by_batch_make_the_table(case: Case, tmp_path: Path) -> None:
    chance = random.Random(7)
    history = create(str(tmp_path / "t"), case)
    copy: dict[str, Any] = {}
    position = None
    for step in range(6):
        rows = [row(number, 100 * step) for number in chance.sample(range(KEYS), 5)]
        history.upsert(rows)
        if step == 3 and case.is_mor:
            history.table.services.compact()
        if step % 2:
            for batch in history.table.follow(position, poll_seconds=None, max_commits=1):
                copy |= {each["id"]: each for each in plain(batch.rows.to_arrow())}
                position = batch.position
    assert [copy[key] for key in sorted(copy)] == history.model.sorted()


@pytest.fixture
def table(tmp_path: Path) -> drawstring.Table:
    history = create(str(tmp_path / "t"), Case(9, "COPY_ON_WRITE"))
    for step in range(4):
        history.upsert([row(number, step) for number in range(step + 3)])
    return listing(history.table)  # files are deleted under it


def ids(batch: Batch) -> list[str]:
    return sorted(batch.rows.to_arrow().column("id").to_pylist())


def test_a_stored_position_goes_on_after_the_batch(table: drawstring.Table) -> None:
    batches = table.follow(poll_seconds=None, max_commits=1)
    first = next(batches)
    assert ids(first) == ["r000", "r001", "r002"]
    again = next(table.follow(first.position, poll_seconds=None, max_commits=1))
    second = next(batches)
    assert ids(again) == ids(second) == ["r000", "r001", "r002", "r003"]
    assert again.position == second.position
    assert json.loads(first.position)["version"] == 1


def test_bytes_bound_a_batch_but_one_commit_always_fits(table: drawstring.Table) -> None:
    assert len(list(table.follow(poll_seconds=None, max_bytes=1))) == 4
    assert len(list(table.follow(poll_seconds=None, max_bytes=1 << 40))) == 1


def test_latest_leaves_out_what_is_there_and_waits_for_more(table: drawstring.Table) -> None:
    class WritingClock(SteppingClock):
        slept = 0

        def sleep(self, seconds: float) -> None:
            self.slept += 1
            if self.slept == 2:
                table.upsert(table_of([row(20, 9)]))

    clock = WritingClock()
    batches: Iterator[Batch] = table.follow("latest", poll_seconds=5, clock=clock)
    assert ids(next(batches)) == ["r020"]
    assert clock.slept == 2


def remove_files_of(table: drawstring.Table, number: int) -> None:
    """Do what cleaning does to the files of one write."""
    time = table.timeline.writes()[number].requested
    for path in Path(table.uri).rglob(f"*_{time}.parquet"):
        path.unlink()


def test_cleaned_commits_end_in_an_error_that_says_where_to_go_on(table: drawstring.Table) -> None:
    start = next(table.follow(poll_seconds=None, max_commits=1)).position
    for number in (1, 2):
        remove_files_of(table, number)
    with pytest.raises(InvalidError, match="cleaned away") as caught:
        list(table.follow(start, poll_seconds=None, changes=True))
    # The last commit is there, but not what was before it.
    assert f"Follow from {table.timeline.writes()[-1].completed}," in str(caught.value)
    snapshot = list(table.follow(start, poll_seconds=None, changes=True, on_cleaned="snapshot"))
    assert len(snapshot) == 1
    changes = snapshot[0].rows.to_arrow().to_pylist()
    assert {change["op"] for change in changes} == {"i"}
    assert sorted(image_of(change["after"])["id"] for change in changes) == [f"r{n:03}" for n in range(6)]


def test_earliest_leaves_out_what_is_gone(table: drawstring.Table) -> None:
    start = next(table.follow(poll_seconds=None, max_commits=1)).position
    table.upsert(table_of([row(20, 9)]))
    for number in (1, 2):
        remove_files_of(table, number)
    batches = list(table.follow(start, poll_seconds=None, changes=True, on_cleaned="earliest"))
    changes = [change for batch in batches for change in batch.rows.to_arrow().to_pylist()]
    assert "r020" in {image_of(change["after"])["id"] for change in changes}
    assert {change["ts_ms"] for change in changes} <= {w.requested for w in table.timeline.writes()[3:]}


def test_what_a_batch_costs_does_not_grow_with_the_timeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = create(str(tmp_path / "t"), Case(9, "MERGE_ON_READ"))
    for step in range(40):
        history.table.upsert(table_of([row(step % 3, step)]), options=WITHOUT_SERVICES)
    decoded: list[int] = []
    decode = store.decode_head
    monkeypatch.setattr(store, "decode_head", lambda data, **how: decoded.append(1) or decode(data, **how))
    for changes in (False, True):
        decoded.clear()
        batches = list(history.table.follow(poll_seconds=None, max_commits=1, changes=changes))
        assert len(batches) == 40
        assert len(decoded) < 4 * 40


@pytest.mark.parametrize("name", ["v6_cow_savepoint_clean", "v9_cow_savepoint_clean"])
def test_a_new_follower_with_a_limit_gets_past_what_was_cleaned(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    state: set[str] = set()
    for batch in table.follow(changes=True, max_commits=1, poll_seconds=None):
        for change in batch.rows.to_arrow().to_pylist():
            state.add(str(image_of(change["after"])["id"]))
    assert state >= {str(each["id"]) for each in table.scan().to_arrow().to_pylist()}


def test_files_that_gave_way_to_later_ones_widen_the_batch_of_rows(table: drawstring.Table) -> None:
    """Rows show once a batch anyway, as the last of its commits left them."""
    start = next(table.follow(poll_seconds=None, max_commits=1)).position
    for number in (1, 2):
        remove_files_of(table, number)
    batches = list(table.follow(start, poll_seconds=None, max_commits=1))
    assert [ids(batch) for batch in batches] == [[f"r{n:03}" for n in range(6)]]


@pytest.mark.parametrize("start", ['{"time": 1}', "{", '{"version": 2, "time": "20240101000000000"}', "x"])
def test_a_bad_position_is_refused(table: drawstring.Table, start: str) -> None:
    with pytest.raises(InvalidError):
        next(table.follow(start))


def test_a_hole_in_version_6_fails_blocks_or_is_passed_by_transition_times(tmp_path: Path) -> None:
    history = create(str(tmp_path / "t"), Case(6, "COPY_ON_WRITE"))
    for step in range(3):
        history.upsert([row(step, step)])
    table, folder = history.table, tmp_path / "t" / ".hoodie"
    hole = table.timeline.writes()[1].requested
    completed = folder / f"{hole}.commit"
    aside = completed.read_bytes()
    completed.unlink()
    with pytest.raises(UnavailableError, match="pending") as caught:
        table.incremental("earliest")
    assert caught.value.instant == hole
    nothing_since = table.timeline.writes()[-1].requested
    assert plain(table.incremental(nothing_since).to_arrow()) == [], "as real Hudi says"
    assert len(plain(table.incremental("earliest", holes="BLOCK").to_arrow())) == 1
    position = [batch.position for batch in table.follow(poll_seconds=None)][-1]
    before = table.timeline.writes()[-1].requested
    completed.write_bytes(aside)
    assert len(plain(table.incremental(before).to_arrow())) == 0
    assert [ids(batch) for batch in table.follow(position, poll_seconds=None)] == [["r001", "r002"]]
    late = plain(table.incremental("2030-01-01", holes="use_transition_time").to_arrow())
    assert late == []
    assert len(plain(table.incremental("earliest", holes="USE_TRANSITION_TIME").to_arrow())) == 3
