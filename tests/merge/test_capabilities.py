"""What mergers claim about themselves holds: one suite over all of them."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring import merge
from drawstring.merge.record_merger import CustomMerger, FieldMerger, WholeMerger
from drawstring.merge.record_version import Merger, Versions, number_keys, winning_rows
from tests.support.merge_histories import MARKER, Rules, Version, histories, left, versions_of

MERGERS: dict[str, Merger] = {
    "whole records": WholeMerger(),
    "partial blocks": FieldMerger(),
    "ignore defaults": FieldMerger(ignores_nulls=True),
    "a default of its own": FieldMerger(ignores_nulls=True, defaults={"count": 0}),
    "late versions stamp": FieldMerger(ignores_nulls=True, late_stamps=True),
    "unavailable value": FieldMerger(unavailable=MARKER),
    "unavailable value, late versions idle": FieldMerger(unavailable=MARKER, late_fills=False),
    "first of ties": FieldMerger(ties_to_first=True),
    "a function": CustomMerger(lambda older, newer: older, "a function"),
}
CHOOSING = {name: each for name, each in MERGERS.items() if each.chooses_whole_records}
OTHERS = {name: each for name, each in MERGERS.items() if not each.chooses_whole_records}
LOG_MERGING = {name: each for name, each in MERGERS.items() if each.can_merge_logs_alone}

NUMBER = "number"


def merged(merger: Merger, versions: Versions) -> Versions:
    return merger.merge(versions, *number_keys(versions.keys))


def chosen(versions: Versions) -> Versions:
    """Return the versions that callers choose who do not ask the merger."""
    codes, distinct = number_keys(versions.keys)
    return versions.take(
        winning_rows(codes, distinct, versions.ordering, versions.is_commit_time_ordering_delete)
    )


def test_every_class_of_merger_is_here() -> None:
    names = [f"{merge.__name__}.{each.name}" for each in pkgutil.iter_modules(merge.__path__)]
    classes = {
        each
        for module in map(importlib.import_module, names)
        for name, each in vars(module).items()
        if isinstance(each, type) and name.endswith("Merger") and each is not Merger
    }
    assert {type(each) for each in MERGERS.values()} == classes


@pytest.mark.parametrize("merger", CHOOSING.values(), ids=CHOOSING)
@given(history=histories(), ordered=st.booleans())
def test_who_chooses_whole_records_keeps_the_winning_rows(
    merger: Merger, history: list[Version], ordered: bool
) -> None:
    versions = versions_of(history, Rules(ordered=ordered))
    assert left(merged(merger, versions)) == left(chosen(versions))


@pytest.mark.parametrize("merger", CHOOSING.values(), ids=CHOOSING)
@given(history=histories(), ordered=st.booleans())
def test_who_chooses_whole_records_does_so_without_their_columns(
    merger: Merger, history: list[Version], ordered: bool
) -> None:
    versions = versions_of(history, Rules(ordered=ordered))
    rows = versions.rows.append_column(NUMBER, pa.array(np.arange(len(history))))
    whole, narrow = replace(versions, rows=rows), replace(versions, rows=rows.select([NUMBER]))
    numbers = [merged(merger, each).rows.column(NUMBER).to_pylist() for each in (whole, narrow)]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("merger", OTHERS.values(), ids=OTHERS)
def test_who_does_not_claim_it_would_be_wronged(merger: Merger) -> None:
    """The newer version says null, has a placeholder and lacks a column; the older one has the same time."""
    row = {
        "_hoodie_commit_time": "1",
        "key": "a",
        "ts": 1,
        "name": "old",
        "count": 7,
        "tags": ["x"],
        "raw": b"old",
    }
    says_less = row | {"_hoodie_commit_time": "2", "name": None, "count": None, "raw": MARKER.encode()}
    versions = versions_of([Version("a", row), Version("a", says_less, unset=frozenset({"count"}))], Rules())
    assert left(merged(merger, versions)) != left(chosen(versions))


@pytest.mark.parametrize("merger", LOG_MERGING.values(), ids=LOG_MERGING)
@given(history=histories(), ordered=st.booleans(), data=st.data())
def test_who_can_merge_logs_alone_goes_on_with_the_result(
    merger: Merger, history: list[Version], ordered: bool, data: st.DataObject
) -> None:
    rules = Rules(ordered=ordered)
    cut = data.draw(st.integers(0, len(history)))
    stored = merged(merger, versions_of(history[:cut], rules))
    found = merged(merger, stored.followed_by(versions_of(history[cut:], rules)))
    assert left(found) == left(merged(merger, versions_of(history, rules)))


@pytest.mark.parametrize("merger", MERGERS.values(), ids=MERGERS)
def test_changes_are_logged_of_whole_records_only(merger: Merger) -> None:
    """The row after a change is then the row that was written."""
    assert merger.chooses_whole_records or not merger.supports_cdc
