"""Metadata tables that drawstring keeps: real Hudi plans its reads by them, and goes on with them."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import DrawstringError
from drawstring.model.files import parse_data_file
from drawstring.storage.local import LocalStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.histories import Case, History, Model, Row, create, plain, row, table_of
from tests.support.interop import hudi_writes
from tests.support.referee import Referee

KEPT = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}
FIRST = int(os.environ.get("FIRST_HISTORY", "1"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("HISTORIES", "2")))
STEPS = 9
WITHOUT = {"hoodie.metadata.enable": "false"}
EAGER = {"hoodie.clean.failed.writes.policy": "EAGER", "hoodie.compact.inline": "false"}
DEFAULT = {"hoodie.metadata.enable": "true"}
CASES = [
    Case(9, "COPY_ON_WRITE"),
    Case(9, "MERGE_ON_READ"),
    Case(6, "MERGE_ON_READ"),
    pytest.param(Case(6, "COPY_ON_WRITE"), marks=pytest.mark.long),
    pytest.param(Case(8, "COPY_ON_WRITE"), marks=pytest.mark.long),
    pytest.param(Case(8, "MERGE_ON_READ", "avro"), marks=pytest.mark.long),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_hudi_reads_and_goes_on_with_a_metadata_table(referee: Referee, tmp_path: Path, case: Case) -> None:
    history = begun(str(tmp_path / "rides"), case)
    for number in range(7):
        history.upsert([row(key, 100 + number) for key in range(number, 40 + 3 * number)])
    history.delete([row(number, 300) for number in (1, 2, 20, 21)])
    assert_listed(referee, history)

    serviced(history)
    assert_listed(referee, history)

    hudi_writes(referee, history, "upsert", [row(number, 600) for number in range(30, 80)], **KEPT)
    assert metadata_partitions(history) == {"files"}
    assert_listed(referee, history)

    history.table = drawstring.open(history.path, options=DEFAULT)
    for number in range(6):
        history.upsert([row(key, 700 + number) for key in (0, 31, 59, 90 + number)])
    assert_listed(referee, history)


def test_a_metadata_table_with_statistics_of_hudi_is_kept_as_it_is(referee: Referee, tmp_path: Path) -> None:
    history = begun(str(tmp_path / "rides"), Case(9, "MERGE_ON_READ"))
    history.upsert([row(key, 100) for key in range(40)])
    hudi_writes(referee, history, "upsert", [row(key, 600) for key in range(30, 80)], **DEFAULT)
    kept = metadata_partitions(history)
    assert kept > {"files", "column_stats"}

    history.table = drawstring.open(history.path)
    history.upsert([row(key, 700) for key in (0, 31, 59, 90)])
    assert metadata_partitions(history) == kept
    assert_listed(referee, history)

    hudi_writes(referee, history, "upsert", [row(key, 800) for key in range(20)], **DEFAULT)
    assert metadata_partitions(history) == kept
    assert_listed(referee, history)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_read_by_the_metadata_table_whatever_happens(
    referee: Referee, tmp_path: Path, seed: int
) -> None:
    """Writes and services of both in turns, and deaths between the metadata table and the table."""
    rng = random.Random(seed)
    kind = rng.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
    history = begun(str(tmp_path / "rides"), Case(rng.choice((6, 6, 8, 9)), kind, "avro"))
    history.upsert([row(key, 1) for key in range(40)])
    states, story = [history.model], [str(history.case)]
    for step in range(2, 2 + STEPS):
        rows = [row(key, step) for key in rng.sample(range(60), 8)]
        name = rng.choice(("upsert", "delete", "die", "die", "hudi", "services"))
        story.append(name)
        print(*story)
        history.model = deepcopy(states[0])
        if name == "die":
            die(history, rows, rng.randrange(4, 60))
            states += [changed(each, "upsert", rows) for each in states]
        elif name == "hudi":
            options = {**DEFAULT, "hoodie.metadata.index.column.stats.enable": rng.choice(("true", "false"))}
            hudi_writes(referee, history, "upsert", rows, **options)
            states = [changed(each, "upsert", rows) for each in states]
        elif name == "services":
            serve(history)
        else:
            getattr(history.table, name)(table_of(rows), options={**history.case.write_options, **EAGER})
            states = [changed(each, name, rows) for each in states]
        found = plain(drawstring.open(history.path, options=WITHOUT).scan().to_arrow())
        reached = [each for each in states if each.sorted() == found]
        assert reached, "no history of acknowledged writes, and of others that died, has these rows"
        # A write that died may be completed by the next one; whoever writes decides.
        states = [*reached, *(each for each in states if name == "die" and each not in reached)]
        history.model = reached[0]
        assert_read(referee, history)
    history.table.services.clean(options=EAGER)
    history.table.upsert(table_of([row(1, 99)]), options={**history.case.write_options, **EAGER})
    history.model = next(
        each
        for each in (changed(each, "upsert", [row(1, 99)]) for each in states)
        if each.sorted() == plain(drawstring.open(history.path, options=WITHOUT).scan().to_arrow())
    )
    assert_read(referee, history)
    assert [each for each in history.table.services.validate().findings if each.check == "metadata"] == []


def changed(model: Model, operation: str, rows: list[Row]) -> Model:
    """Return what a table holds after another write."""
    after = deepcopy(model)
    getattr(after, operation)(rows)
    return after


def die(history: History, rows: list[Row], changes: int) -> None:
    """Begin an upsert whose process dies after some changes of the storage; it may have committed."""
    faulty = FaultyStorage(context_of(history.table).storage, changes)
    with suppress(InjectedFault, DrawstringError):
        Table(replace(context_of(history.table), storage=faulty)).upsert(
            table_of(rows), options={**history.case.write_options, **EAGER}
        )


def serve(history: History) -> None:
    """Run each table service that there is something to do for."""
    if history.case.is_mor:
        history.table.services.compact(options=EAGER)
    history.table.services.clean(options={**EAGER, "hoodie.clean.commits.retained": "2"})
    history.table.services.cluster(options=EAGER)


def begun(path: str, case: Case) -> History:
    """Create a table whose first write builds a metadata table."""
    history = create(path, case)
    history.table = drawstring.open(path, options=DEFAULT)
    return history


def serviced(history: History) -> None:
    """Run each table service."""
    if history.case.is_mor:
        assert history.table.services.compact()
    assert history.table.services.cluster()
    history.upsert([row(number, 400) for number in range(8, 16)])
    assert history.table.services.clean(options={"hoodie.clean.commits.retained": "1"})


def metadata_partitions(history: History) -> set[str]:
    return set(drawstring.open(history.path).inspect.metadata().column("partition").to_pylist())


def assert_listed(referee: Referee, history: History) -> None:
    """Check that Hudi's listing by the metadata table is that of the storage, and that both read the rows."""
    storage = LocalStorage(history.path)
    stored = {
        folder: {
            status.name: status.size_bytes for status in storage.list_files(folder) if parse_data_file(status)
        }
        for folder in storage.list_folders("")
        if folder != ".hoodie"
    }
    assert referee.files(history.path) == stored
    assert_read(referee, history)
    assert not drawstring.open(history.path).services.validate().findings


def assert_read(referee: Referee, history: History) -> None:
    """Check that both read the rows, by the metadata table and without it."""
    expected = history.model.sorted()
    for options in (DEFAULT, {"hoodie.metadata.enable": "false"}):
        assert plain(drawstring.open(history.path, options=options).scan().to_arrow()) == expected
        assert plain(referee.read(history.path, options)) == expected
