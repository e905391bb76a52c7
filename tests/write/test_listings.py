"""What a write looks at: a growing table must not make it list more."""

from __future__ import annotations

from collections import Counter

import pytest

from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import MOR, create, listing, table_types

INDEXES = ("BUCKET", "SIMPLE", "BLOOM")


def with_partitions(table_type: str, index: str) -> Table:
    table = create(table_type=table_type, properties={"hoodie.index.type": index})
    table.upsert(rides(*((key, city, 1, 1.0) for city in ("bern", "oslo", "rome") for key in "ab")))
    return table


def partitions_of(listed: Counter[str]) -> dict[str, int]:
    return {folder: times for folder, times in listed.items() if not folder.startswith(".hoodie")}


@pytest.mark.parametrize("index", INDEXES)
@table_types
def test_an_upsert_lists_the_timeline_as_it_begins_and_completes(
    table_type: str, index: str, listed: Counter[str]
) -> None:
    table = with_partitions(table_type, index)
    listed.clear()
    table.upsert(rides(("a", "oslo", 2, 2.0)))
    assert listed[".hoodie/timeline"] == 3, "as it begins, to look for conflicts, and once it is decided"


@pytest.mark.parametrize("index", INDEXES)
@table_types
def test_an_upsert_lists_the_partitions_that_it_touches_once(
    table_type: str, index: str, listed: Counter[str]
) -> None:
    table = listing(with_partitions(table_type, index))
    listed.clear()
    table.upsert(rides(("a", "oslo", 2, 2.0), ("new", "bern", 2, 2.0)))
    assert partitions_of(listed) == {"bern": 1, "oslo": 1}


@pytest.mark.parametrize("index", INDEXES)
@table_types
def test_an_upsert_lists_no_partition_of_a_table_with_a_metadata_table(
    table_type: str, index: str, listed: Counter[str]
) -> None:
    table = with_partitions(table_type, index)
    listed.clear()
    table.upsert(rides(("a", "oslo", 2, 2.0), ("new", "bern", 2, 2.0)))
    assert partitions_of(listed) == {}


def test_writes_of_base_files_alone_do_not_look_for_log_files_to_compact(listed: Counter[str]) -> None:
    table = with_partitions(MOR, "SIMPLE")
    for number in range(6):
        listed.clear()
        # The merge of small files looks once more, now and then: a file's name draws the lot.
        table.append(rides((f"new{number}", "bern", 1, 1.0)), options={"drawstring.append.merge": "false"})
    assert listed[".hoodie/timeline"] == 3
