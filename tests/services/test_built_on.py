"""A write whose completed file was lost is no dead write: what was built on its files keeps them."""

from __future__ import annotations

import pytest

from drawstring.base.clock import SystemClock
from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.metadata.rollback import encode_rollback_plan
from drawstring.model.files import BaseFile
from drawstring.model.instant import Action
from drawstring.model.plans import RollbackPlan, RollbackRequest
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import NO_ROLLBACK, lose_completion, states
from tests.support.rows import held, rides
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, create, store_of
from tests.support.validation import errors

A1, A2, B1 = ("a", "rome", 1, 1.0), ("a", "rome", 2, 2.0), ("b", "oslo", 1, 1.0)
ONE_VERSION = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": 1,
}
table_types = pytest.mark.parametrize("table_type", [COW, MOR])
versions = pytest.mark.parametrize("version", [6, 9])


def written(table_type: str, version: int) -> Table:
    table = create(table_type=table_type, version=version)
    table.upsert(rides(("z", "bern", 1, 1.0)))
    table.upsert(rides(A1, B1))
    table.upsert(rides(A2))
    return table


@table_types
@versions
def test_a_write_whose_completion_was_lost_is_told_and_keeps_its_files(table_type: str, version: int) -> None:
    table = written(table_type, version)
    before, files = held(table), data_files(context_of(table).storage)
    _, second, third = table.timeline.writes()
    lost = lose_completion(table, second)
    (finding,) = errors(table)
    assert (finding.check, finding.instant) == ("timeline", second.requested)
    assert f"the completed {third.requested} builds on its files" in finding.what
    assert table.services.repair(apply=True) == ()
    with pytest.raises(CorruptTableError, match="Put it back from a backup"):
        table.upsert(rides(("new", "rome", 1, 1.0)))
    assert data_files(context_of(table).storage) == files
    for path, data in lost.items():
        context_of(table).storage.put(path, data)
    assert (held(table), table.services.validate().findings) == (before, ())
    table.upsert(rides(("new", "rome", 1, 1.0)))
    assert len(held(table)) == len(before) + 1


@table_types
@versions
def test_where_no_backup_has_it_the_table_goes_back_to_a_write_before(table_type: str, version: int) -> None:
    table = written(table_type, version)
    first, second, _ = table.timeline.writes()
    lose_completion(table, second)
    assert table.savepoints.restore(first.requested, options=NO_ROLLBACK)
    assert (held(table), table.services.validate().findings) == ([("z", "bern", 1, 1.0)], ())


@versions
@pytest.mark.parametrize("what", ["write", "clustering"])
def test_a_rollback_that_was_begun_is_not_gone_on_with_once_its_files_are_needed(
    version: int, what: str
) -> None:
    table = create(table_type=COW, version=version)
    table.insert(rides(A1, B1))
    if what == "clustering":
        assert table.services.cluster()
        table.services.clean(options=ONE_VERSION)
    else:
        table.upsert(rides(A2))
        table.upsert(rides(("a", "rome", 3, 3.0)))
    target = table.timeline.writes()[1]
    storage, store = context_of(table).storage, store_of(table, SystemClock())
    made = [path for path in data_files(storage) if f"_{target.requested}." in path]
    requests = [RollbackRequest(path.partition("/")[0], files_to_delete=(path,)) for path in made]
    plan = encode_rollback_plan(RollbackPlan(target.requested, target.action, tuple(requests)), "/rides")
    rollback = store.start(store.request(Action.ROLLBACK, store.new_time(store.load()), plan))
    before, files, lost = held(table), data_files(storage), lose_completion(table, target)
    with pytest.raises(CorruptTableError, match="had been completed"):
        table.upsert(rides(("new", "rome", 1, 1.0)))
    assert made and data_files(storage) == files
    for path, data in lost.items():
        storage.put(path, data)
    with pytest.raises(UnsupportedError, match="delete this rollback's files"):
        table.upsert(rides(("new", "rome", 1, 1.0)))
    storage.delete(list(states(table, rollback)))
    table.upsert(rides(("new", "bern", 1, 1.0)))
    assert held(table) == sorted([*before, ("new", "bern", 1, 1.0)])


@versions
def test_a_clustering_whose_completion_was_lost_keeps_its_files(version: int) -> None:
    table = create(table_type=MOR, version=version)
    table.insert(rides(A1, ("c", "rome", 1, 1.0)))
    assert table.services.cluster()
    table.upsert(rides(A2))
    files = data_files(context_of(table).storage)
    clustering = next(
        each for each in table.timeline.writes() if each.action.completed_action is Action.REPLACE_COMMIT
    )
    lose_completion(table, clustering)
    assert [each.instant for each in errors(table)] == [clustering.requested]
    with pytest.raises(CorruptTableError, match="Put it back from a backup"):
        table.services.cluster()
    assert data_files(context_of(table).storage) == files


@versions
@pytest.mark.parametrize("deleted", [True, False])
def test_a_base_file_that_log_files_need_is_missed_and_is_no_orphan(version: int, deleted: bool) -> None:
    table = written(MOR, version)
    storage = context_of(table).storage
    _, second, third = table.timeline.writes()
    lose_completion(table, second, all_states=True)
    base = next(each for each in storage.list_files("rome") if BaseFile.parse(each))
    if deleted:
        storage.delete([base.path])
    (finding,) = errors(table)
    assert (finding.check, finding.path, finding.instant) == ("missing", base.path, third.requested)
    table.services.repair(apply=True)
    assert storage.exists(base.path) is not deleted
