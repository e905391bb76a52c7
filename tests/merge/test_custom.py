"""A user's own merger is asked for every pair that Hudi would ask for, and for no other."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given

from drawstring.merge.record_merger import CustomMerger
from drawstring.merge.record_version import number_keys
from tests.support.merge_histories import Rules, Version, histories, left, versions_of

TRAIL = "_hoodie_commit_time"


def trails(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Write down which versions came together, and in which order."""
    trail = pc.binary_join_element_wise(older[TRAIL], newer[TRAIL], "+")
    return newer.set_column(newer.schema.get_field_index(TRAIL), TRAIL, trail)


@given(history=histories())
def test_versions_come_together_oldest_first_and_begin_anew_after_a_delete(history: list[Version]) -> None:
    versions = versions_of(history, Rules(ordered=False))
    found = CustomMerger(trails, "trails").merge(versions, *number_keys(versions.keys))
    expected: dict[str, str | None] = {}
    for version in history:
        there, number = expected.get(version.key), version.row[TRAIL]
        trail = number if there is None else f"{there}+{number}"
        expected[version.key] = None if version.is_delete else trail
    assert {key: row and row[TRAIL] for key, row in left(found).items()} == expected
