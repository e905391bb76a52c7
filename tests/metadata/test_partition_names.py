"""Record indexes of partitions, whose file groups have the paths of these in their names."""

from __future__ import annotations

import pytest

from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import NEW_FILE_GROUPS, create

names = pytest.mark.parametrize(
    "name", ["2024-01-01", "a_b", "a b", "ö", "v1.2", ".x", "a.b_c", "x/y", "100%", "a b-0", "record-index-a"]
)
hive = pytest.mark.parametrize("is_hive", [False, True])
HIVE = "hoodie.datasource.write.hive_style_partitioning"


def made(is_hive: bool) -> Table:
    return create(index="RECORD_LEVEL_INDEX", properties={HIVE: str(is_hive).lower()})


def is_right(table: Table, name: str) -> bool:
    """Update a row, delete another one, and look for what is left."""
    updated = table.upsert(rides(("a", name, 2, 2.0)), options=NEW_FILE_GROUPS)
    deleted = table.delete(where="id = 'b'")
    left = table.scan(["id"], where="id IN ('a', 'b', 'c')").to_arrow().column("id").to_pylist()
    return (updated.inserts, updated.updates, deleted.deletes, sorted(left)) == (0, 1, 1, ["a", "c"])


@names
@hive
def test_keys_are_found_in_log_files_of_the_index(name: str, is_hive: bool) -> None:
    table = made(is_hive)
    table.upsert(rides(*((key, name, 1, 1.0) for key in "abc")))
    assert is_right(table, name)
    assert not table.services.validate().findings


@names
@hive
def test_keys_are_found_in_base_files_of_the_index(name: str, is_hive: bool) -> None:
    table = made(is_hive)
    table.upsert(rides(*((key, name, 1, 1.0) for key in "abc")))
    table.indexes.drop("record_index")
    table.indexes.create("record_index", partitioned=True)
    assert is_right(table, name)
    assert not table.services.validate().findings


def test_keys_are_found_after_compactions_of_the_index() -> None:
    table, options = made(True), {"hoodie.metadata.compact.max.delta.commits": "2"}
    for number in range(8):
        table.upsert(rides((str(number), "2024-01-01", 1, 1.0)), options=options)
    again = table.upsert(rides(*((str(number), "2024-01-01", 2, 1.0) for number in range(8))))
    assert (again.inserts, again.updates) == (0, 8)
