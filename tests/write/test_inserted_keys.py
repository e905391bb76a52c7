"""Writers that insert into one partition at the same time: only the same key is a conflict."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import LostRaceError
from drawstring.base.limits import Limits
from drawstring.table import Table
from drawstring.testing import context_of, with_limits
from tests.support.interleavings import OPTIMISTIC, Act, interleave
from tests.support.interrupted import Interrupted, Standing, on
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_COMPACTION, create, store_of

APART = {**OPTIMISTIC, **NEW_FILE_GROUPS}
"""New rows go to new file groups, so that writers do not meet in small ones."""

ONCE = {**APART, "hoodie.write.num.retries.on.conflict.failures": "0"}
GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE"}
kinds = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])


def prepared(table_type: str = COW, version: int = 9, **how: Any) -> Table:
    table = create(table_type=table_type, version=version, **how)
    table.upsert(rides(*((key, "rome", 1, 1.0) for key in "abc")))
    return table


def upserting(*keys: str, city: str = "rome", value: int = 2) -> Act:
    rows = rides(*((key, city, value, float(value)) for key in keys))
    return lambda table, options: table.upsert(rows, options={**options, **NEW_FILE_GROUPS})


def behind(table: Table, act: Act) -> Table:
    """Return the table with a storage on which another writer comes in when the first file is written."""
    return on(Interrupted(table, lambda other: act(other, ONCE)))


@kinds
def test_different_new_keys_are_no_conflict(table_type: str, version: int) -> None:
    table = prepared(table_type, version)
    upserting("m", "o")(behind(table, upserting("l", "n", "p")), ONCE)
    assert [row[0] for row in held(table)] == [*"abclmnop"]
    assert table.services.validate().findings == ()


@kinds
def test_one_new_key_among_many_is_a_conflict(table_type: str, version: int) -> None:
    table = prepared(table_type, version)
    many = [f"k{number}" for number in range(500)]
    with pytest.raises(LostRaceError):
        upserting("k250x", "k77", "k3x")(behind(table, upserting(*many)), ONCE)
    upserting("k250x", "k77", "k3x", value=3)(table, APART)
    rows = held(table)
    assert len(rows) == 505
    assert ("k77", "rome", 3, 3.0) in rows


@pytest.mark.parametrize("key", ["new", "another"])
@pytest.mark.parametrize("fills_first", [True, False])
def test_keys_that_were_added_to_a_file_are_compared(fills_first: bool, key: str) -> None:
    """One of the two adds to the only file group, which also has keys that neither inserted."""
    table = prepared()
    fill: Act = lambda table, options: table.upsert(  # noqa: E731
        rides(("a", "rome", 4, 4.0), ("new", "rome", 4, 4.0)), options=options
    )
    first, second = (fill, upserting(key)) if fills_first else (upserting(key), fill)
    filling = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"}
    table_behind = on(Interrupted(table, lambda other: second(other, filling)))
    if key == "new":
        with pytest.raises(LostRaceError):
            first(table_behind, filling)
        return
    first(table_behind, filling)
    assert [row[0] for row in held(table)] == ["a", "another", "b", "c", "new"]


@pytest.mark.parametrize("city", ["rome", "oslo"])
def test_a_key_in_another_partition_is_another_key_unless_the_index_is_global(city: str) -> None:
    is_same = city == "rome"
    table = prepared()
    first = behind(table, upserting("x", city=city))
    if is_same:
        with pytest.raises(LostRaceError):
            upserting("x")(first, ONCE)
    else:
        upserting("x")(first, ONCE)
    table = prepared(properties=GLOBAL)
    with pytest.raises(LostRaceError):
        upserting("x")(behind(table, upserting("x", city=city)), ONCE)
    upserting("y")(behind(table, upserting("z", city=city)), ONCE)
    assert [row[0] for row in held(table)] == [*"abcxyz"]


def test_a_file_without_footer_entries_is_read() -> None:
    def insert_plainly(other: Table, options: dict[str, str]) -> None:
        upserting("l", "n", "x")(other, options)
        storage = context_of(other).storage
        (stat,) = store_of(other).commit_metadata(other.timeline.writes()[-1]).stats
        with storage.open(stat.path) as file:
            rows = pq.read_table(file)
        with storage.create(stat.path) as sink:
            pq.write_table(rows.replace_schema_metadata(None), sink)

    upserting("m")(behind(prepared(), insert_plainly), ONCE)
    with pytest.raises(LostRaceError):
        upserting("x")(behind(prepared(), insert_plainly), ONCE)


@pytest.mark.parametrize("without", ["keys", "memory"])
def test_keys_that_are_not_compared_conflict_by_partition(without: str) -> None:
    table = prepared(properties={"hoodie.populate.meta.fields": str(without != "keys").lower()})
    with with_limits(compared_keys_max=0 if without == "memory" else Limits().compared_keys_max):
        with pytest.raises(LostRaceError):
            upserting("m")(behind(table, upserting("l")), ONCE)
        upserting("m")(behind(table, upserting("l", city="oslo")), ONCE)


LOG_INDEX = {"hoodie.index.type": "BLOOM", "hoodie.index.log.enable": "true"}


@pytest.mark.parametrize("logs_first", [True, False])
def test_a_key_that_one_of_two_writers_inserts_into_a_log_file_is_there_once(logs_first: bool) -> None:
    table = prepared(MOR, properties=LOG_INDEX)
    filling = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"}
    fill: Act = lambda table, options: table.upsert(rides(("x", "rome", 3, 3.0)), options=filling)  # noqa: E731
    first, second = (fill, upserting("x")) if logs_first else (upserting("x"), fill)
    with pytest.raises(LostRaceError):
        first(behind(table, second), ONCE)
    assert [row[0] for row in held(table)] == [*"abcx"]
    (stat,) = store_of(table).commit_metadata(table.timeline.writes()[-1]).stats
    assert stat.is_log is not logs_first


@pytest.mark.parametrize("version", [6, 9])
def test_a_record_that_an_update_brings_back_is_there_once(version: int) -> None:
    """One writer finds the deletion in a log file, the other one begins after a compaction dropped it."""
    table = prepared(MOR, version)
    table.delete(rides(("a", "rome", 1, 0.0)), options=WITHOUT_COMPACTION)
    planned = table.services.schedule_compaction()
    late: list[Exception] = []

    def come_back(other: Table) -> None:
        """Compact the table, and let a second writer insert the key before the first one commits."""
        other.services.compact(planned, options=OPTIMISTIC)
        second = on(Interrupted(other, lambda _: writer.finish()))
        try:
            upserting("a", "x", value=3)(second, ONCE)
        except LostRaceError as error:
            late.append(error)

    writer = Standing(table, lambda other: upserting("a", value=2)(other, {**ONCE, **WITHOUT_COMPACTION}))
    writer.start()
    come_back(table)
    assert (writer.error is None) == bool(late)
    assert [row[0] for row in held(table)].count("a") == 1


def delete_and_clean(table: Table, options: dict[str, str]) -> None:
    """Insert a key, and delete its file again."""
    upserting("l")(table, options)
    upserting("l", value=5)(table, options)
    table.services.clean(retain_versions=1, options=options)


def test_a_file_that_was_cleaned_since_is_a_conflict() -> None:
    table = prepared()
    with pytest.raises(LostRaceError):
        upserting("m")(behind(table, delete_and_clean), ONCE)


@pytest.mark.parametrize("keys", [("new", "new"), ("new", "other")], ids=["same", "different"])
@kinds
def test_what_two_inserters_leave_is_what_one_after_the_other_leaves(
    table_type: str, version: int, keys: tuple[str, str]
) -> None:
    first, second = upserting(keys[0]), upserting(keys[1], value=3)
    assert interleave(prepared(table_type, version), first, second, every=13, offset=version)
