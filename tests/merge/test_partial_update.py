"""Merging column by column comes to what Hudi's fold, one version after the other, comes to."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.merge.record_merger import FieldMerger
from drawstring.merge.record_version import Versions, number_keys
from tests.support.merge_histories import MARKER, Rules, Version, expected, histories, left, versions_of

EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples // 2
KINDS = {
    "ignore defaults, by event time": Rules(ignores_nulls=True),
    "ignore defaults, by commit time": Rules(ordered=False, ignores_nulls=True),
    "a default of its own": Rules(ignores_nulls=True, defaults={"count": 0, "name": None}),
    "the late one stamps": Rules(ignores_nulls=True, late_stamps=True),
    "unavailable value": Rules(unavailable=MARKER),
    "unavailable value, late ones idle": Rules(unavailable=MARKER, late_fills=False),
    "first of ties": Rules(ties_to_first=True),
    "keep values": Rules(),
    "keep values, by commit time": Rules(ordered=False),
}


def merger_of(rules: Rules) -> FieldMerger:
    fields: dict[str, Any] = asdict(rules)
    del fields["ordered"]
    return FieldMerger(**fields)


def merged(rules: Rules, history: list[Version]) -> Versions:
    versions = versions_of(history, rules)
    return merger_of(rules).merge(versions, *number_keys(versions.keys))


@pytest.mark.parametrize("rules", KINDS.values(), ids=KINDS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_history_is_folded_as_one_by_one(rules: Rules, data: st.DataObject) -> None:
    history = data.draw(histories(partial=not rules.ignores_nulls and rules.unavailable is None))
    assert left(merged(rules, history)) == expected(rules.fold(history))


@pytest.mark.parametrize("rules", KINDS.values(), ids=KINDS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_the_merged_log_goes_on_merging_with_a_base_record(rules: Rules, data: st.DataObject) -> None:
    """The log records are merged first, what comes out of them then with the base file's record."""
    partial = not rules.ignores_nulls and rules.unavailable is None
    log = [v for v in data.draw(histories(partial=partial)) if v.key == "a"]
    base = [v for v in data.draw(histories(deletes=False)) if v.key == "a"][:1]
    if not log or not base:
        return
    newer, older = merged(rules, log), versions_of(base, rules)
    found = merger_of(rules).merge(older.followed_by(newer), np.array([0, 0]), 1)
    model = rules.step(base[0], rules.fold(log)["a"])
    assert left(found) == expected({"a": model})


def test_nothing_merges_to_nothing() -> None:
    assert left(merged(Rules(), [])) == {}


def test_a_late_value_stays_until_one_in_time_takes_its_place() -> None:
    rows = [(5, None), (3, "late"), (4, "also late"), (6, None), (7, "in time")]
    history = [
        Version("a", {"_hoodie_commit_time": str(at), "key": "a", "ts": ts, "name": name}
                | dict.fromkeys(("count", "tags", "raw")))
        for at, (ts, name) in enumerate(rows)
    ]  # fmt: skip
    rules = Rules(ignores_nulls=True)
    names = [left(merged(rules, history[:count]))["a"]["name"] for count in range(1, 6)]  # type: ignore[index]
    assert names == [None, "late", "late", "late", "in time"]
