"""Writes to buckets while a resizing of them is pending: nobody waits, no record is lost or comes twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from drawstring.base.errors import DrawstringError
from drawstring.model.instant import Action, Instant, time_of
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.consistent_buckets import (
    ALLOW,
    FEWER,
    MORE,
    ROWS,
    Rows,
    check_places,
    dual_write_logs,
    resizable_table,
    ring_of,
    row,
    rows_of,
    written_during_resizing,
)
from tests.support.contract.witness import data_blocks
from tests.support.faults import HOUR_MS, START_MS, Prepared, is_decided, leftovers, opened, orphans
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import held, rides
from tests.support.tables import versions
from tests.support.validation import problems


def changed_keys(table: Table, since: str) -> list[tuple[str, str]]:
    """The changes since a time, as time of the commit and key."""
    found = table.changes(since).to_arrow().to_pylist()
    return sorted((each["ts_ms"], json.loads(each["after"] or each["before"])["id"]) for each in found)


def end_of(write: Instant) -> str:
    return time_of(write)


@versions
@pytest.mark.parametrize("kind", ["split", "merge"])
def test_a_write_while_buckets_are_resized_goes_to_old_and_new_ones(version: int, kind: str) -> None:
    table = resizable_table(version)
    if kind == "merge":
        table.services.cluster(options=MORE)
    resizing = table.services.schedule_clustering(options=MORE if kind == "split" else FEWER)
    assert resizing is not None
    before = table.timeline.writes()[-1]
    groups = [each.file_id for each in table.inspect.files()]
    result = table.upsert(rides(row(3, 500), row(7, 500), row(90, 500), row(91, 500)))
    assert (result.records_written, result.updates) == (4, 4)
    table.delete(rides(row(4, 501)))
    table.update("id = 'k005'", {"fare": 7.5})
    expected = {each[0]: each for each in (*ROWS, row(3, 500), row(7, 500), row(90, 500), row(91, 500))}
    del expected["k004"]
    expected["k005"] = ("k005", "rome", 5, 7.5)
    assert rows_of(table) == expected
    assert [each.file_id for each in table.inspect.files()] == groups
    assert {log.file_id for log in dual_write_logs(table, resizing)}.isdisjoint(groups) and dual_write_logs(
        table, resizing
    )
    assert problems(table) == []
    since, until = end_of(before), end_of(table.timeline.writes()[-1])
    pending = changed_keys(table, since)
    assert len(pending) == 6 and table.incremental(since).to_arrow().num_rows == 5
    assert table.services.cluster(instant=resizing)
    assert rows_of(table) == expected
    check_places(table)
    assert (problems(table), orphans(table)) == ([], [])
    assert changed_keys(table, since) == pending
    for end in (until, None):
        assert table.incremental(since, end).to_arrow().num_rows == 5
    as_of = {write.requested: held(table, as_of=write.requested) for write in table.timeline.writes()[-3:]}
    assert list(as_of.values())[-1] == held(table)
    table.services.compact()
    assert rows_of(table) == expected
    check_places(table)


@versions
def test_other_buckets_are_compacted_while_some_are_resized(version: int) -> None:
    table = resizable_table(version)
    resizing = table.services.schedule_clustering(options={**MORE, "hoodie.bucket.index.max.num.buckets": 3})
    assert resizing is not None
    table.upsert(rides(*(row(number, 500) for number in range(40, 60))))
    expected = rows_of(table)
    result = table.services.compact()
    assert result and (result.files, rows_of(table)) == (1, expected)
    assert sorted(bool(each.logs) for each in table.inspect.files()) == [False, True]
    assert table.services.cluster(instant=resizing)
    assert (len(expected), rows_of(table), problems(table)) == (60, expected, [])
    check_places(table)
    assert table.services.compact() and not table.services.compact()
    assert rows_of(table) == expected


@pytest.mark.parametrize("version", [6, 9])
def test_the_later_of_writes_in_one_new_bucket_wins_whatever_the_verb(version: int) -> None:
    table = resizable_table(version, ordering=())
    resizing = table.services.schedule_clustering(options=MORE)
    table.upsert(rides(row(3, 500), row(5, 500), row(3, 490)))
    table.upsert(rides(row(3, 400), row(4, 400)))
    table.delete(where="id in ('k004', 'k006')")
    table.insert(rides(row(4, 300), row(90, 300)))
    source = rides(row(5, 200), row(7, 200), row(91, 200))
    merge = table.merge(source, ["id", "city"]).when_matched_update({"fare": "source.fare"})
    merge.when_not_matched_insert_all().execute()
    some = rides(row(8, 100)).select(["id", "city", "ts"])
    table.upsert(some, options={"drawstring.write.partial_update": "true"})
    expected = {**{each[0]: each for each in (*ROWS, row(3, 400), row(4, 300), row(90, 300), row(91, 200))}}
    del expected["k006"]
    expected["k005"] = ("k005", "rome", 500, 200.0)
    expected["k007"] = ("k007", "rome", 7, 200.0)
    expected["k008"] = ("k008", "rome", 100, 2.0)
    assert rows_of(table) == expected
    assert table.services.cluster(instant=resizing)
    assert rows_of(table) == expected
    check_places(table)
    table.services.compact()
    assert rows_of(table) == expected


@pytest.mark.parametrize("version", [8, 9])
def test_blocks_with_some_of_the_columns_go_to_old_and_new_buckets(version: int) -> None:
    table = resizable_table(version)
    resizing = table.services.schedule_clustering(options=MORE)
    for rows in ((row(8, 500), row(9, 500)), (row(8, 600), row(10, 500))):
        some = rides(*rows).select(["id", "city", "ts"])
        result = table.upsert(some, options={"drawstring.write.partial_update": "true"})
        blocks = [block.is_partial for block in data_blocks(table, result.instant)]
        assert len(blocks) >= 2 and all(blocks)
    expected = rows_of(table)
    assert expected["k008"] == ("k008", "rome", 600, 2.0)
    assert expected["k009"] == ("k009", "rome", 500, 2.25)
    assert table.services.cluster(instant=resizing)
    assert rows_of(table) == expected
    check_places(table)
    table.services.compact()
    assert rows_of(table) == expected


class Life:
    """A table beside a dictionary, through writes before, while and after its buckets are resized."""

    def __init__(self, version: int, seed: int) -> None:
        self.table = resizable_table(version)
        self.random = Random(seed)
        self.rows: Rows = rows_of(self.table)
        self.ts = 1000
        self.written: dict[str, str] = {}
        self.then: dict[str, Rows] = {}
        self.resizing: str | None = None
        self.done = 0
        self.note()

    def note(self) -> None:
        write = max(self.table.timeline.writes(), key=time_of)
        if write.action is not Action.REPLACE_COMMIT:
            self.then[write.requested] = dict(self.rows)

    def keys(self) -> list[int]:
        self.ts += 1
        return self.random.sample(range(60), 8)

    def write(self, **options: Any) -> None:
        keys = self.keys()
        if self.random.random() < 0.3:
            result = self.table.delete(rides(*(row(key, self.ts) for key in keys)), options=options)
            for key in keys:
                self.rows.pop(f"k{key:03}", None)
        else:
            result = self.table.upsert(rides(*(row(key, self.ts) for key in keys)), options=options)
            for key in keys:
                self.rows[f"k{key:03}"] = row(key, self.ts)
                self.written[f"k{key:03}"] = result.instant
        if not self.table.timeline.pending_of(Action.CLUSTERING):
            self.resizing = None
        self.note()

    def give_up(self) -> None:
        self.write(**ALLOW)

    def die(self) -> None:
        storage = context_of(self.table).storage
        faulty = FaultyStorage(storage, self.random.randrange(2, 9))
        with suppress(DrawstringError):
            opened(faulty, START_MS).upsert(rides(*(row(key, self.ts) for key in self.keys())))
        self.table = opened(storage, START_MS + HOUR_MS)
        self.write()

    def compact(self) -> None:
        self.table.services.compact()

    def schedule(self) -> None:
        self.table.services.compact()
        asked = self.random.choice((MORE, FEWER))
        self.resizing = self.table.services.schedule_clustering(options=asked) or self.resizing

    def run(self) -> None:
        if self.resizing is None:
            self.schedule()
        if self.resizing is not None:
            ring = ring_of(self.table)
            result = self.table.services.cluster(
                progress=lambda done, total: self.write(), instant=self.resizing
            )
            assert result and ring_of(self.table).sequence == ring.sequence + 1
            self.done += 1
            self.resizing = None

    def check(self, step: str) -> None:
        assert rows_of(self.table) == self.rows, step
        check_places(self.table)
        assert [each for each in problems(self.table) if each.check != "pending"] == [], step
        assert orphans(self.table) == [], step
        for requested, rows in list(self.then.items())[-2:]:
            assert held(self.table, as_of=requested) == sorted(rows.values()), (step, requested)
            write = self.table.timeline.write_at(requested)
            assert write is not None
            since = {
                key
                for key, time in self.written.items()
                if time in self.table.timeline._writes and time > requested and key in self.rows
            }
            found = self.table.incremental(end_of(write), columns=["id"]).to_arrow().column(0).to_pylist()
            assert sorted(found) == sorted(since), (step, requested)


STEPS = ("write", "write", "write", "schedule", "schedule", "run", "compact", "die", "give_up")


@pytest.mark.parametrize(("version", "seed"), [(6, 0), (8, 1), (9, 2)])
def test_histories_with_resizings_end_as_a_dictionary_does(version: int, seed: int) -> None:
    life = Life(version, seed)
    for number, step in enumerate(life.random.choices(STEPS, k=12)):
        getattr(life, step)()
        life.check(f"{number} {step}")
    life.run()
    life.check("end")
    assert life.done


DYING: dict[str, Callable[[Table], Any]] = {
    "write": lambda table: table.upsert(rides(row(3, 600), row(4, 600), row(91, 600))),
    "run": lambda table: table.services.cluster(),
    "write that gives it up": lambda table: table.upsert(rides(row(3, 600)), options=ALLOW),
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("action", DYING)
@pytest.mark.scaled
def test_whatever_dies_at_any_step_readers_see_before_or_after_and_the_next_goes_on(
    version: int, action: str
) -> None:
    table, _, before = written_during_resizing(version)
    start = Prepared.of(table)
    undisturbed = opened(start.copy(), START_MS)
    DYING[action](undisturbed)
    after = rows_of(undisturbed)
    # The steps of a resizing are those of test_resizing.py as well.
    every = 3 if version == 6 else 2 if action == "run" else 1
    for storage, step in start.deaths(DYING[action], every=every):
        table = opened(storage, START_MS + HOUR_MS)
        seen = rows_of(table)
        assert seen in (before, after), step
        seen = after if is_decided(storage) else seen
        table.upsert(rides(row(5, 700), row(92, 700)))
        expected = {**seen, "k005": row(5, 700), "k092": row(92, 700)}
        assert rows_of(table) == expected, step
        table.services.cluster(options=MORE)
        assert rows_of(table) == expected, step
        check_places(table)
        assert (problems(table), orphans(table), leftovers(table)) == ([], [], []), step
