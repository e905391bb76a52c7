"""A plan whose completed file was lost is not run again once a clean took what it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from drawstring.base.clock import SystemClock
from drawstring.base.errors import CorruptTableError
from drawstring.model.instant import Action, Instant
from drawstring.services.clustering import run_clustering
from drawstring.services.table_services import service_options
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import lose_completion, orphans
from tests.support.rows import held, rides
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create, store_of
from tests.support.validation import errors

versions = pytest.mark.parametrize("version", (6, 9))
OSLO = ("x", "oslo", 1, 1.0)
CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
MERGED_SOON = {"drawstring.append.merge.min.files": 3}
INLINE = {**WITHOUT_SERVICES, "hoodie.compact.inline": "true"}


def made(service: str, version: int) -> tuple[Table, Instant]:
    """A table with a compaction, a clustering or merged appends, and that instant."""
    table = create(table_type=MOR if service == "compact" else COW, version=version)
    if service == "compact":
        table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
        table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
        result = table.services.compact()
        assert result
    elif service == "cluster":
        for number in range(3):
            table.insert(
                rides((f"a{number}", "rome", 1, 1.0)), options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS}
            )
        result = table.services.cluster()
        assert result
    else:
        for number in range(3):
            table.append(rides((f"a{number}", "rome", 1, 1.0)), options={**WITHOUT_SERVICES, **MERGED_SOON})
    completed = Action.COMMIT if service == "compact" else Action.REPLACE_COMMIT
    (instant,) = (each for each in table.timeline.writes() if each.action is completed)
    return table, instant


def services(table: Table) -> None:
    failed = [done.error for done in table.services.run() if done.error is not None]
    if failed:
        raise failed[0]


ASKS: list[tuple[str, Callable[[Table], Any]]] = [
    ("compact", lambda table: table.services.compact()),
    ("compact", services),
    ("cluster", lambda table: table.services.cluster()),
    ("cluster", services),
    ("append", lambda table: table.services.cluster()),
]


@versions
@pytest.mark.parametrize(("service", "ask"), ASKS)
def test_a_plan_whose_inputs_are_gone_is_not_run_again(
    version: int, service: str, ask: Callable[[Table], Any]
) -> None:
    table, instant = made(service, version)
    table.services.clean(options=CLEAN)
    before, files = held(table), data_files(context_of(table).storage)
    lost = lose_completion(table, instant)
    with pytest.raises(CorruptTableError, match="Put what is missing back from a backup") as refused:
        ask(table)
    assert refused.value.instant == instant.requested
    assert data_files(context_of(table).storage) == files
    (finding,) = (each for each in errors(table) if each.check == "timeline")
    assert finding.instant == instant.requested and "only copy" in finding.what
    table.services.repair(apply=True)
    for path, data in lost.items():
        context_of(table).storage.put(path, data)
    assert (held(table), table.services.validate().findings) == (before, ())


@versions
@pytest.mark.parametrize(("service", "then"), [("compact", "upsert"), ("append", "append")])
def test_a_write_stands_and_what_follows_it_deletes_nothing(version: int, service: str, then: str) -> None:
    table, instant = made(service, version)
    table.services.clean(options=CLEAN)
    before, files = held(table), data_files(context_of(table).storage)
    lost = lose_completion(table, instant)
    getattr(table, then)(rides(OSLO), options=INLINE if service == "compact" else WITHOUT_SERVICES)
    assert files <= data_files(context_of(table).storage)
    for path, data in lost.items():
        context_of(table).storage.put(path, data)
    assert held(table) == sorted([*before, OSLO])


@versions
@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_while_its_inputs_are_there_a_plan_is_run_again(version: int, service: str) -> None:
    table, instant = made(service, version)
    before = held(table)
    lose_completion(table, instant)
    assert errors(table) == []
    result = table.services.compact() if service == "compact" else table.services.cluster()
    assert result and result.instant == instant.requested
    assert (held(table), table.services.validate().findings, orphans(table)) == (before, (), [])


@versions
def test_inputs_that_were_rewritten_since_may_be_gone(version: int) -> None:
    table = create(table_type=COW, version=version)
    for number in range(2):
        table.insert(rides((f"a{number}", "rome", 1, 1.0)), options={**WITHOUT_SERVICES, **NEW_FILE_GROUPS})
    old = data_files(context_of(table).storage)
    instant = table.services.schedule_clustering()
    assert instant is not None
    store = store_of(table, SystemClock())
    store.start(store.load().pending_of(Action.CLUSTERING)[0])
    half = f"rome/f9-0_0-1-0_{instant}.parquet"
    context_of(table).storage.put(half, b"half")
    newer = [("a0", "rome", 2, 2.0), ("a1", "rome", 2, 2.0)]
    allows_updates = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    table.upsert(rides(*newer), options={**WITHOUT_SERVICES, **allows_updates})
    context_of(table).storage.delete([path for path in old if path.startswith("rome/")])
    assert run_clustering(context_of(table), instant, service_options(table.config, {})) is None
    assert (held(table), table.timeline.pending(), orphans(table)) == (newer, (), [])
