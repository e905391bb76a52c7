"""What merges, updates and deletes by condition read: others may change all else meanwhile."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import LostRaceError
from drawstring.model.files import bucket_of
from drawstring.table import Table
from tests.support.interleavings import OPTIMISTIC, Act, interleave
from tests.support.interrupted import Interrupted, on
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, NEW_FILE_GROUPS, create

ONCE = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"}
OLD = rides(*((key, city, 1, 1.0) for city in ("oslo", "rome") for key in "abc"))
CHANGES = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("change", pa.float64())]
)
KINDS = [(COW, 9, {}), (MOR, 9, {}), (MOR, 6, {}), (MOR, 9, BUCKETS), (COW, 6, BUCKETS)]
kinds = pytest.mark.parametrize(
    ("table_type", "version", "how"), KINDS, ids=["cow9", "mor9", "mor6", "mor9-buckets", "cow6-buckets"]
)


def prepared(
    table_type: str = COW, version: int = 9, how: dict[str, str] | None = None, **more: Any
) -> Table:
    table = create(table_type=table_type, version=version, properties=how or {}, **more)
    table.upsert(OLD)
    return table


def update(where: str) -> Act:
    return lambda table, options: table.update(where, {"fare": "fare + 10.0"}, options=options)


def delete(where: str) -> Act:
    return lambda table, options: table.delete(where=where, options=options)


def upsert(*rows: tuple[Any, ...]) -> Act:
    return lambda table, options: table.upsert(rides(*rows), options={**options, **NEW_FILE_GROUPS})


def changes(*keys: tuple[str, str]) -> pa.Table:
    rows = [{"id": key, "city": city, "ts": 1, "change": 10.0} for key, city in keys]
    return pa.Table.from_pylist(rows, CHANGES)


INSERTED = {"id": "source.id", "city": "source.city", "ts": "source.ts", "fare": "source.change"}


def add(*keys: tuple[str, str]) -> Act:
    """Add to the fares of rows, or insert them."""
    return lambda table, options: (
        table.merge(changes(*keys), options=options)
        .when_matched_update({"fare": "target.fare + source.change"})
        .when_not_matched_insert(INSERTED)
        .execute()
    )


def add_to_known(*keys: tuple[str, str], more: str | None = None) -> Act:
    """Add to the fares of rows that are there, and meet a condition."""
    return lambda table, options: (
        table.merge(changes(*keys), options=options)
        .when_matched_update({"fare": "target.fare + source.change"}, more)
        .execute()
    )


def move_new(*keys: tuple[str, str]) -> Act:
    """Insert what is not there into Rome."""
    return lambda table, options: (
        table.merge(changes(*keys), options=options)
        .when_not_matched_insert({**INSERTED, "city": "'rome'"})
        .execute()
    )


def forget_others(*keys: tuple[str, str]) -> Act:
    """Delete the rows that are not among some."""
    return lambda table, options: (
        table.merge(changes(*keys), options=options).when_not_matched_by_source_delete().execute()
    )


ELSEWHERE = upsert(("a", "oslo", 3, 3.0), ("z", "bern", 3, 3.0))
NEW_IN_ROME = upsert(("z", "rome", 3, 3.0))
APART = {
    "update": (update("city = 'rome' and fare < 5"), ELSEWHERE),
    "delete": (delete("city = 'rome' and fare < 5"), ELSEWHERE),
    "merge": (add(("a", "rome"), ("z", "rome")), ELSEWHERE),
    "merge of new rows": (add(("a", "rome"), ("y", "lima")), NEW_IN_ROME),
    "merge of known rows": (add_to_known(("a", "rome")), ELSEWHERE),
    "drop": (update("city = 'rome'"), lambda table, options: table.delete_partition("oslo", options=options)),
}
TOGETHER = {
    "update": (update("city = 'rome' and fare < 5"), NEW_IN_ROME),
    "delete": (delete("city = 'rome' and fare < 5"), NEW_IN_ROME),
    "new partition": (update("city <> 'oslo'"), upsert(("z", "bern", 3, 3.0))),
    "any partition": (update("fare < 5"), upsert(("z", "bern", 3, 3.0))),
    "merge of a known row": (add(("a", "rome")), upsert(("a", "rome", 3, 3.0))),
    "merge of a row that was not known": (add_to_known(("z", "rome"), ("b", "rome")), NEW_IN_ROME),
    "merge of a row that did not count": (
        add_to_known(("a", "oslo"), ("b", "rome"), more="target.fare > 2 or target.city = 'rome'"),
        upsert(("a", "oslo", 3, 3.0)),
    ),
    "merge into another partition": (move_new(("a", "oslo"), ("z", "lima")), NEW_IN_ROME),
    "merge of what is not there": (forget_others(("a", "rome")), upsert(("z", "bern", 3, 3.0))),
    "drop": (
        update("city = 'rome'"),
        lambda table, options: table.delete_partition("rome", options=options),
    ),
}


def bucket_of_key(table: Table, key: str) -> int | None:
    (row,) = table.scan(["_hoodie_file_name"], where=f"id = '{key}' and city = 'rome'").to_arrow().to_pylist()
    return bucket_of(row["_hoodie_file_name"])


def behind(table: Table, act: Act) -> Table:
    """Return the table with a storage on which another writer comes in when the first file is written."""
    return on(Interrupted(table, lambda other: act(other, ONCE)))


@kinds
@pytest.mark.parametrize("case", APART)
def test_a_change_of_what_was_not_read_is_no_conflict(
    table_type: str, version: int, how: dict[str, str], case: str
) -> None:
    first, second = APART[case]
    table, other = prepared(table_type, version, how), prepared(table_type, version, how)
    second(other, OPTIMISTIC)
    first(other, OPTIMISTIC)
    first(behind(table, second), ONCE)
    assert held(table) == held(other)
    assert table.services.validate().findings == ()


@kinds
@pytest.mark.parametrize("case", TOGETHER)
def test_a_change_of_what_was_read_is_a_conflict(
    table_type: str, version: int, how: dict[str, str], case: str
) -> None:
    first, second = TOGETHER[case]
    table, other = prepared(table_type, version, how), prepared(table_type, version, how)
    with pytest.raises(LostRaceError):
        first(behind(table, second), ONCE)
    second(other, OPTIMISTIC)
    assert held(table) == held(other)
    first(table, OPTIMISTIC)
    first(other, OPTIMISTIC)
    assert held(table) == held(other)


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("case", ["update", "new partition", "merge of a row that was not known"])
@pytest.mark.parametrize(("table_type", "how"), [(COW, {}), (MOR, BUCKETS)], ids=["cow", "mor-buckets"])
def test_what_two_writers_leave_is_what_one_after_the_other_leaves(
    table_type: str, how: dict[str, str], case: str, is_first: bool
) -> None:
    acts = TOGETHER[case] if is_first else TOGETHER[case][::-1]
    assert interleave(prepared(table_type, 9, how), *acts, every=17, offset=len(case) % 17)


def rewrite_and_clean(city: str) -> Act:
    """Write a file group again, and delete its former files."""

    def act(table: Table, options: dict[str, str]) -> None:
        table.upsert(rides(("b", city, 5, 5.0)), options=options)
        table.services.clean(retain_versions=1, options=options)

    return act


@pytest.mark.parametrize("change", [update("city = 'rome' and id <> 'b'"), add(("a", "rome"))])
def test_files_that_were_cleaned_matter_where_rows_were_looked_for(change: Act) -> None:
    table = prepared()
    change(behind(table, rewrite_and_clean("oslo")), ONCE)
    assert {("a", "rome", 1, 11.0), ("b", "oslo", 5, 5.0)} <= set(held(table))
    with pytest.raises(LostRaceError):
        change(behind(table, rewrite_and_clean("rome")), ONCE)


@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
def test_a_condition_on_the_key_reads_only_the_bucket_of_the_key(table_type: str, version: int) -> None:
    table = prepared(table_type, version, BUCKETS)
    groups = {key: bucket_of_key(table, key) for key in "abc"}
    apart = next(key for key in "bc" if groups[key] != groups["a"])
    update("id = 'a'")(behind(table, upsert((apart, "rome", 2, 2.0))), ONCE)
    assert ("a", "rome", 1, 11.0) in held(table) and (apart, "rome", 2, 2.0) in held(table)
    with pytest.raises(LostRaceError):
        update("id = 'a'")(behind(table, upsert(("a", "lima", 2, 2.0))), ONCE)
