"""Real Apache Hudi reads what drawstring wrote: the same rows, for every kind of query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.model.instant import time_of
from tests.support.histories import META, Case, History, plain, write
from tests.support.interop import all_cases, merge_on_read_cases
from tests.support.referee import Referee

INCREMENTAL = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Case], History]]:
    """Tables by case, each written once."""
    made: dict[Case, History] = {}

    def get(case: Case) -> History:
        if case not in made:
            made[case] = write(str(tmp_path_factory.mktemp(str(case)) / "rides"), case)
        return made[case]

    yield get


@all_cases
def test_snapshot(referee: Referee, written: Callable[[Case], History], case: Case) -> None:
    history = written(case)
    assert plain(referee.read(history.path)) == history.after[-1]


@all_cases
def test_meta_columns_are_those_that_drawstring_reads(
    referee: Referee, written: Callable[[Case], History], case: Case
) -> None:
    history = written(case)
    theirs = referee.read(history.path, columns=META)
    ours = history.table.scan(columns=list(META)).to_arrow()
    order = [("_hoodie_record_key", "ascending")]
    assert ours.sort_by(order).to_pylist() == theirs.sort_by(order).to_pylist()


@all_cases
def test_read_optimized(referee: Referee, written: Callable[[Case], History], case: Case) -> None:
    history = written(case)
    theirs = referee.read(history.path, {INCREMENTAL: "read_optimized"})
    assert plain(theirs) == plain(history.table.scan(read_optimized=True).to_arrow())


@all_cases
def test_a_partition_folder(referee: Referee, written: Callable[[Case], History], case: Case) -> None:
    history = written(case)
    for partition in {each.partition for each in history.table.inspect.files()}:
        ours = drawstring.open(f"{history.path}/{partition}").scan().to_arrow()
        assert ours.num_rows
        assert plain(referee.read(f"{history.path}/{partition}")) == plain(ours)


@all_cases
def test_time_travel_to_each_commit(referee: Referee, written: Callable[[Case], History], case: Case) -> None:
    history = written(case)
    for write_, expected in zip(history.table.timeline.writes(), history.after, strict=True):
        assert plain(referee.read(history.path, {"as.of.instant": write_.requested})) == expected


@all_cases
def test_incremental_from_each_commit(
    referee: Referee, written: Callable[[Case], History], case: Case
) -> None:
    history = written(case)
    for write_ in history.table.timeline.writes():
        start = time_of(write_)
        theirs = referee.read(history.path, {INCREMENTAL: "incremental", BEGIN: start})
        assert plain(theirs) == plain(history.table.incremental(start).to_arrow())


@all_cases
def test_timeline(referee: Referee, written: Callable[[Case], History], case: Case) -> None:
    history = written(case)
    ours = [(at.requested, str(at.action), at.state.name) for at in history.table.timeline.instants]
    theirs = [(requested, action, state) for requested, _, action, state in referee.timeline(history.path)]
    assert ours == theirs


@merge_on_read_cases
def test_snapshot_after_compaction_by_drawstring(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = write(str(tmp_path / "rides"), case)
    assert history.table.services.compact()
    assert plain(referee.read(history.path)) == history.after[-1]
    assert plain(referee.read(history.path, {INCREMENTAL: "read_optimized"})) == history.after[-1]


def test_a_commit_of_many_files(referee: Referee, tmp_path: Path) -> None:
    """Its metadata has the size of the statistics of its files, by which drawstring passes over them."""
    path = str(tmp_path / "many")
    numbers = range(300)
    rows = pa.table({"id": [f"k{each}" for each in numbers], "city": [f"c{each % 150}" for each in numbers]})
    drawstring.create(path, rows.schema, name="many", record_key="id", partition_by="city")
    drawstring.open(path).insert(rows)
    for options in ({}, {INCREMENTAL: "incremental", BEGIN: "000"}):
        assert keys_and_cities(referee.read(path, options)) == keys_and_cities(rows)


def keys_and_cities(rows: pa.Table) -> list[tuple[str, ...]]:
    return sorted(zip(*(rows.column(name).to_pylist() for name in ("id", "city")), strict=True))
