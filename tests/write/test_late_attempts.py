"""Attempts of a task that go on after their write was committed: none of their rows is ever counted twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drawstring.filegroups.write.markers import Markers
from drawstring.model.files import BaseFile
from drawstring.model.instant import Instant
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from tests.support.late_files import DetachedEngine
from tests.support.rows import held, rides
from tests.support.tables import create

FIRST = rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0))


def late_file(table: Table, instant: str) -> str:
    """Do what an attempt does that was outrun: note a file of its own, and make it."""
    storage = context_of(table).storage
    [of_winner] = [each.path for each in storage.list_files("rome") if each.name.endswith(".parquet")]
    path = f"rome/{BaseFile.name_of('late-0', '0-0-9', instant)}"
    Markers(storage, instant).create(path, "CREATE")
    storage.put(path, storage.read(of_winner))
    return path


def test_a_file_begun_while_the_commit_is_made_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(replace(context_of(create()), engine=DetachedEngine()))
    complete, late = TimelineStore.complete, []

    def outrun(store: TimelineStore, instant: Instant, *rest: object, **others: object) -> Instant:
        if not late:  # the metadata table has a timeline of its own
            late.append(late_file(table, instant.requested))
        return complete(store, instant, *rest, **others)

    monkeypatch.setattr(TimelineStore, "complete", outrun)
    table.insert(FIRST)
    assert late
    assert not context_of(table).storage.exists(late[0])
    assert held(table) == [("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)]


def test_a_file_begun_after_the_commit_goes_with_the_next_write() -> None:
    table = create()
    table.insert(FIRST)
    late = late_file(table, table.timeline.writes()[0].requested)
    table.upsert(rides(("a", "rome", 2, 2.0)))
    assert not context_of(table).storage.exists(late)
    assert not context_of(table).storage.list_tree(".hoodie/.temp")
    assert held(table) == [("a", "rome", 2, 2.0), ("b", "rome", 1, 1.0)]
