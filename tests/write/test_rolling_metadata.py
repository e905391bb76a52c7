"""Entries of commits that later commits take over."""

from __future__ import annotations

import pytest

from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import COW, MOR, WITHOUT_COMPACTION, create, store_of

KEYS = {"hoodie.write.rolling.metadata.keys": "_job, _offset"}
LOOKBACK = "hoodie.write.rolling.metadata.timeline.lookback.commits"


def entries(table: Table) -> list[dict[str, str]]:
    """Return the entries of each commit that begin with an underscore."""
    store = store_of(table)
    found = (store.commit_metadata(write).extra for write in table.timeline.writes())
    return [{key: value for key, value in extra.items() if key.startswith("_")} for extra in found]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_commits_of_writes_and_services_take_entries_over(table_type: str) -> None:
    table = create(table_type=table_type)
    table.upsert(rides(("a", "rome", 1, 1.0)), options={"_job": "7", "_offset": "10"})
    table.upsert(rides(("a", "rome", 2, 2.0)), options=KEYS)
    table.upsert(rides(("a", "rome", 3, 3.0)), options=KEYS | {"_offset": "20"})
    table.delete_partition("rome", options=KEYS)
    table.upsert(rides(("b", "oslo", 1, 1.0), ("c", "oslo", 1, 1.0)), options=KEYS)
    table.upsert(rides(("b", "oslo", 2, 1.0)), options=KEYS | WITHOUT_COMPACTION)
    table.services.cluster(options=KEYS) if table_type == COW else table.services.compact(options=KEYS)
    table.upsert(rides(("b", "oslo", 3, 1.0)), options=WITHOUT_COMPACTION)
    first, *others = entries(table)
    assert first == {"_job": "7", "_offset": "10"}
    assert others[0] == first
    assert all(each == {"_job": "7", "_offset": "20"} for each in others[1:-1])
    assert others[-1] == {}


def test_entries_are_looked_for_in_as_many_commits_as_the_option_says() -> None:
    table = create(table_type=COW)
    table.upsert(rides(("a", "rome", 1, 1.0)), options={"_job": "7"})
    table.upsert(rides(("a", "rome", 2, 2.0)))
    table.upsert(rides(("a", "rome", 3, 3.0)), options=KEYS | {LOOKBACK: "1"})
    table.upsert(rides(("a", "rome", 4, 4.0)), options=KEYS | {LOOKBACK: "0"})
    assert entries(table)[1:] == [{}, {}, {}]
    table.upsert(rides(("a", "rome", 5, 5.0)), options=KEYS | {LOOKBACK: "4"})
    assert entries(table)[-1] == {"_job": "7"}
