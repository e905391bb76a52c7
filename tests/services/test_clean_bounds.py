"""Partitions that a clean leaves out, and how many commits it covers."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.cleaning import KEEP_2, NEVER, VERSIONS, cleans
from tests.support.rows import held, rides
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, WITHOUT_COMPACTION, create

PATTERN, SELECTED = "hoodie.clean.partition.filter.regex", "hoodie.clean.partition.filter.selected"
CAP = "hoodie.clean.max.commits.to.clean"


def written(table: Table, rounds: range = range(6)) -> None:
    """Upsert a key in each of three partitions again and again."""
    for number in rounds:
        rows = [(city, city, number, float(number)) for city in ("rome", "oslo", "lima")]
        table.upsert(rides(*rows), options=NEVER)
        if table.config.is_merge_on_read:
            table.services.compact(options=NEVER)


def counts(table: Table) -> dict[str, int]:
    """Return the number of data files by partition."""
    found: dict[str, int] = {}
    for path in data_files(context_of(table).storage):
        city = path.partition("/")[0]
        found[city] = found.get(city, 0) + 1
    return found


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("policy", [KEEP_2, VERSIONS])
@pytest.mark.parametrize(
    "chosen",
    [
        {PATTERN: "ro.*|li"},
        {SELECTED: "rome"},
        {"hoodie.cleaner.partition.filter.selected": "rome", PATTERN: ".*"},
        {PATTERN: "rome", "hoodie.clean.incremental.enabled": "false"},
    ],
)
def test_partitions_that_do_not_match_keep_their_files(
    table_type: str, policy: dict[str, Any], chosen: dict[str, str]
) -> None:
    table = create(table_type=table_type)
    written(table)
    before, rows = counts(table), held(table)
    assert table.services.clean(options=policy | chosen)
    after = counts(table)
    assert after["rome"] < before["rome"]
    assert {city: after[city] for city in ("oslo", "lima")} == {c: before[c] for c in ("oslo", "lima")}
    assert held(table) == rows
    assert table.services.validate().findings == ()


def test_a_write_cleans_the_partitions_that_match() -> None:
    table = create(table_type=COW)
    written(table)
    before = counts(table)
    table.upsert(rides(("rome", "rome", 9, 9.0)), options=KEEP_2 | {PATTERN: "rome"})
    after = counts(table)
    assert after["rome"] < before["rome"]
    assert (after["oslo"], after["lima"]) == (before["oslo"], before["lima"])


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("policy", [KEEP_2, VERSIONS])
def test_partitions_that_a_filter_left_out_are_cleaned_once_it_is_gone(
    table_type: str, policy: dict[str, Any]
) -> None:
    table = create(table_type=table_type)
    written(table)
    assert table.services.clean(options=policy | {PATTERN: "rome"})
    assert cleans(table)[-1].is_filtered
    table.upsert(rides(("rome", "rome", 9, 9.0)), options=NEVER)
    assert table.services.clean(options=policy | {SELECTED: "rome,lima"})
    table.upsert(rides(("rome", "rome", 10, 9.0)), options=NEVER)
    assert table.services.clean(options=policy)
    assert not cleans(table)[-1].is_filtered
    after = counts(table)
    assert after["oslo"] == after["lima"] <= 2 + (table_type == MOR)
    assert table.services.validate().findings == ()


def test_what_a_filtered_clean_left_does_not_count_again_when_its_write_is_archived() -> None:
    table = create(table_type=COW)
    table.upsert(rides(("o", "oslo", 1, 1.0), ("r", "rome", 1, 1.0)), options=NEVER)
    table.insert_overwrite(rides(("o2", "oslo", 2, 2.0)), options=NEVER)
    few = KEEP_2 | {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"}
    for number in range(12):
        table.upsert(rides(("r", "rome", number, 1.0)), options=few | {PATTERN: "rome"})
    assert [row[0] for row in held(table)] == ["o2", "r"]
    replacing = table.timeline.completed_of(Action.REPLACE_COMMIT)
    assert len(replacing) == 1, "it stays as long as the files that it replaced"
    for number in range(12, 24):
        table.upsert(rides(("r", "rome", number, 1.0)), options=few)
    assert not table.timeline.completed_of(Action.REPLACE_COMMIT)
    assert [row[0] for row in held(table)] == ["o2", "r"]
    assert table.services.validate().findings == ()


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_clean_covers_no_more_commits_than_it_may_and_the_next_one_goes_on(table_type: str) -> None:
    table = create(table_type=table_type)
    written(table, range(4))
    assert table.services.clean(options=KEEP_2)
    written(table, range(4, 12))
    writes = [each.requested for each in table.timeline.writes()]
    first = cleans(table)[-1].earliest
    for _ in range(2):
        result = table.services.clean(options=KEEP_2 | WITHOUT_COMPACTION | {CAP: "2"})
        assert result
        assert writes.index(result.earliest_retained) == writes.index(first) + 2
        first = result.earliest_retained
    result = table.services.clean(options=KEEP_2)
    assert result and result.earliest_retained == writes[-2]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_no_service_follows_writes_that_ask_for_none(table_type: str) -> None:
    table = create(table_type=table_type)
    eager = KEEP_2 | {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5"}
    eager |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    for number in range(8):
        options = eager | {"hoodie.table.services.enabled": "false"}
        table.upsert(rides(("r", "rome", number, 1.0)), options=options)
    written = Action.DELTA_COMMIT if table_type == MOR else Action.COMMIT
    assert [each.action for each in table.timeline.instants] == [written] * 8
    table.upsert(rides(("r", "rome", 8, 1.0)), options=eager)
    assert [each.action for each in table.timeline.instants] != [written] * 9


def test_a_filter_that_is_no_regular_expression_is_refused() -> None:
    table = create(table_type=COW)
    with pytest.raises(InvalidError, match="no regular expression"):
        table.services.clean(options={PATTERN: "rome("})
