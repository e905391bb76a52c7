"""`kept_files` names each bound of a clean that retains a file."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.cleaning import KEEP_2, NEVER, VERSIONS, written
from tests.support.rows import rides
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, create

ALLOW = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
Row = tuple[str, str | None, str | None]


def reasons(table: Table, partition: str = "rome", **options: Any) -> list[set[Row]]:
    """Return why each base file of a partition stays, oldest file first."""
    found: dict[str, set[Row]] = {}
    for row in table.services.kept_files(options=options).to_pylist():
        if row["partition"] == partition:
            found.setdefault(row["file"], set()).add((row["reason"], row["instant"], row["name"]))
    return [found[name] for name in sorted(found, key=lambda name: name.split("_")[-1])]


def times(table: Table) -> list[str]:
    return [write.requested for write in table.timeline.writes()]


LATEST: set[Row] = {("latest version", None, None)}


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("options", [KEEP_2, VERSIONS, {"hoodie.clean.commits.retained": "99"}])
def test_each_file_goes_or_has_a_reason(table_type: str, options: dict[str, str]) -> None:
    table = create(table_type=table_type)
    written(table, **NEVER)
    kept = table.services.kept_files(options=options)
    names = {f"{row['partition']}/{row['file']}": row["size_bytes"] for row in kept.to_pylist()}
    plan = table.services.plan_clean(options=options)
    deleted = {path for paths in plan.files.values() for path in paths} if plan else set[str]()
    assert set(names) | deleted == data_files(context_of(table).storage)
    assert not set(names) & deleted
    assert all(names.values())
    before = data_files(context_of(table).storage)
    table.services.clean(options=options)
    assert before - data_files(context_of(table).storage) == deleted


def test_the_policy_names_the_earliest_instant_retained() -> None:
    table = create(table_type=COW)
    written(table, 4, **NEVER)
    policy: set[Row] = {("policy", times(table)[-2], "KEEP_LATEST_COMMITS")}
    assert reasons(table, **KEEP_2) == [policy, policy, LATEST]
    none_yet: set[Row] = {("policy", None, "KEEP_LATEST_COMMITS")}
    assert reasons(table) == [none_yet] * 3 + [LATEST]
    by_hours = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "5"}
    first: set[Row] = {("policy", times(table)[0], "KEEP_LATEST_BY_HOURS")}
    assert reasons(table, **by_hours) == [first] * 3 + [LATEST]


def test_the_policy_by_versions_retains_the_newest_ones() -> None:
    table = create(table_type=COW)
    written(table, 4, **NEVER)
    two = VERSIONS | {"hoodie.clean.fileversions.retained": "2"}
    assert reasons(table, **two) == [{("policy", None, "KEEP_LATEST_FILE_VERSIONS")}, LATEST]


@pytest.mark.parametrize("options", [KEEP_2, VERSIONS])
def test_a_savepoint_is_named(options: dict[str, str]) -> None:
    table = create(table_type=COW)
    written(table, 2, **NEVER)
    saved = table.savepoints.create()
    written(table, 4, **NEVER)
    assert reasons(table, **options)[0] == {("savepoint", saved, None)}


@pytest.mark.parametrize("options", [KEEP_2, VERSIONS])
def test_the_holds_of_readers_are_named(options: dict[str, str]) -> None:
    table = create(table_type=COW)
    written(table, 3, **NEVER)
    position = table.timeline.writes()[0].completed
    table.holds.add("export", position)
    table.holds.add("copy", position)
    table.upsert(rides(("a", "rome", 7, 7.0)), options=NEVER)
    table.upsert(rides(("a", "rome", 8, 8.0)), options=NEVER)
    second = times(table)[1]
    assert reasons(table, **options)[0] == {("hold", second, "export"), ("hold", second, "copy")}
    table.holds.release("copy")
    assert reasons(table, **options)[0] == {("hold", second, "export")}


@pytest.mark.parametrize("version", [6, 9])
def test_a_pending_compaction_is_named(version: int) -> None:
    table = create(table_type=MOR, version=version)
    written(table, 3, **NEVER)
    table.upsert(rides(("a", "rome", 7, 7.0)), options=NEVER)
    planned = table.services.schedule_compaction(options=NEVER)
    assert planned is not None
    by_versions = reasons(table, **VERSIONS)
    assert ("pending instant", planned, "compaction") in by_versions[0]


@pytest.mark.parametrize("options", [KEEP_2, VERSIONS])
def test_a_pending_clustering_is_named(options: dict[str, str]) -> None:
    table = create(table_type=COW)
    written(table, 3, **NEVER)
    planned = table.services.schedule_clustering(options=NEVER)
    for number in range(7, 10):
        changed = rides(("far", "oslo", number, 7.0))
        table.upsert(changed, options=NEVER | {"hoodie.clustering.updates.strategy": ALLOW})
    assert ("pending instant", planned, "clustering") in reasons(table, "oslo", **options)[0]


def test_a_limit_of_commits_and_a_filter_of_partitions_are_named() -> None:
    table = create(table_type=COW)
    written(table, 4, **NEVER)
    assert table.services.clean(options=KEEP_2)
    for number in range(10, 16):
        table.upsert(rides(("a", "rome", number, 1.0)), options=NEVER)
    limited = KEEP_2 | {"hoodie.clean.max.commits.to.clean": "1"}
    found = reasons(table, **limited)
    assert any(row[0] == "commit limit" and row[2] == "hoodie.clean.max.commits.to.clean" for row in found[1])
    filtered = KEEP_2 | {"hoodie.clean.partition.filter.regex": "oslo"}
    assert ("partition filter", None, None) in reasons(table, **filtered)[0]
