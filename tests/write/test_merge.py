"""A source is merged into a table: what is updated, deleted and inserted, against a plain model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.testing import context_of
from drawstring.write.merge import MergeBuilder
from tests.support.combinations import pairwise
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, A, B, C, create, filled

Row = dict[str, Any]
State = dict[str, Row]
NAMES = ("id", "city", "ts", "fare")
EXAMPLES = max(3, settings.get_profile(settings.get_current_profile_name()).max_examples // 20)


@dataclass(frozen=True)
class Case:
    """A clause: how the builder is told, for which rows it is, when it holds, and what it makes of them."""

    tell: Callable[[MergeBuilder], MergeBuilder]
    when: str
    holds: Callable[[Row, Row], bool]
    makes: Callable[[Row, Row], Row | None]


def always(s: Row, t: Row) -> bool:
    return True


CASES = (
    Case(
        lambda b: b.when_matched_delete("source.fare < 0"),
        "both",
        lambda s, t: s["fare"] < 0,
        lambda s, t: None,
    ),
    Case(
        lambda b: b.when_matched_update({"fare": "source.fare + target.fare"}, "source.ts > target.ts"),
        "both",
        lambda s, t: s["ts"] > t["ts"],
        lambda s, t: {**t, "fare": s["fare"] + t["fare"]},
    ),
    Case(
        lambda b: b.when_matched_update({"ts": "source.ts", "fare": "case when fare2 > 5 then 0 else 1 end"}),
        "both",
        always,
        lambda s, t: {**t, "ts": s["ts"], "fare": 0.0 if s["fare2"] > 5 else 1.0},
    ),
    Case(lambda b: b.when_matched_update_all(), "both", always, lambda s, t: {n: s[n] for n in NAMES}),
    Case(lambda b: b.when_matched_delete(), "both", always, lambda s, t: None),
    Case(
        lambda b: b.when_not_matched_insert(
            {"id": "id", "city": "city", "ts": 7, "fare": "fare * 2"}, pc.field("source.ts") > 2
        ),
        "source",
        lambda s, t: s["ts"] > 2,
        lambda s, t: {**s, "ts": 7, "fare": s["fare"] * 2},
    ),
    Case(lambda b: b.when_not_matched_insert_all(), "source", always, lambda s, t: dict(s)),
    Case(
        lambda b: b.when_not_matched_by_source_update({"fare": "fare + 100"}, "city = 'rome'"),
        "target",
        lambda s, t: t["city"] == "rome",
        lambda s, t: {**t, "fare": t["fare"] + 100},
    ),
    Case(
        lambda b: b.when_not_matched_by_source_delete("ts > 3"),
        "target",
        lambda s, t: t["ts"] > 3,
        lambda s, t: None,
    ),
)
KINDS = pairwise(list(itertools.product((COW, MOR), (6, 8, 9), ("SIMPLE", "BUCKET"), (True, False))))


def city_of(number: int) -> str:
    return ("rome", "pisa", "oslo")[number % 3]


def row(number: int, ts: int, fare: int) -> Row:
    return {"id": f"k{number}", "city": city_of(number), "ts": ts, "fare": float(fare)}


rows_drawn = st.dictionaries(st.integers(0, 8), st.tuples(st.integers(0, 5), st.integers(-3, 9)), max_size=7)
merges = st.lists(
    st.tuples(rows_drawn, st.lists(st.sampled_from(CASES), min_size=1, max_size=4, unique=True)),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("on", [None, "target.id = source.id AND source.city = target.city"])
@pytest.mark.parametrize(("table_type", "version", "index", "ordered"), KINDS)
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(first=rows_drawn, history=merges)
def test_a_merge_does_what_its_clauses_say(
    table_type: str, version: int, index: str, ordered: bool, on: str | None, first: Any, history: Any
) -> None:
    table = create(
        table_type=table_type,
        version=version,
        properties=BUCKETS if index == "BUCKET" else {},
        ordering="ts" if ordered else (),
    )
    state = {each["id"]: each for each in (row(n, *values) for n, values in first.items())}
    table.upsert(rides(*(tuple(each.values()) for each in state.values())))
    for drawn, cases in history:
        source = [{**row(n, *values), "fare2": float(values[1])} for n, values in drawn.items()]
        cases = _reachable(cases)
        builder = table.merge(source_of(source), on)
        for case in cases:
            builder = case.tell(builder)
        result = builder.execute()
        counts = merge(state, source, cases, ordered)
        assert held(table) == sorted(tuple(each[name] for name in NAMES) for each in state.values())
        assert (result.inserts, result.deletes) == (counts["inserts"], counts["deletes"])


def _reachable(cases: list[Case]) -> list[Case]:
    """Put clauses without a condition last, one of each kind."""
    bare = {case.when: case for case in cases if case.holds is always}
    return [case for case in cases if case.holds is not always] + list(bare.values())


def source_of(rows: list[Row]) -> pa.Table:
    kinds = {
        "id": pa.string(),
        "city": pa.string(),
        "ts": pa.int64(),
        "fare": pa.float64(),
        "fare2": pa.float64(),
    }
    return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))


def merge(state: State, source: list[Row], cases: list[Case], ordered: bool) -> dict[str, int]:
    """Merge into the model; an update to an earlier time loses where rows are ordered by it."""
    by_id = {each["id"]: each for each in source}
    counts = {"inserts": 0, "deletes": 0}
    for key in sorted(state.keys() | by_id.keys()):
        s, t = by_id.get(key), state.get(key)
        when = "both" if s and t else "source" if s else "target"
        case = next((c for c in cases if c.when == when and c.holds(s or {}, t or {})), None)
        if case is None:
            continue
        made = case.makes(s or {}, t or {})
        if made is None:
            del state[key]
            counts["deletes"] += 1
        elif t is None:
            state[key] = {name: made[name] for name in NAMES}
            counts["inserts"] += 1
        elif not ordered or made["ts"] >= t["ts"]:
            state[key] = made
    return counts


def test_columns_match_by_names_of_their_own_under_aliases() -> None:
    table = filled()
    source = pa.table({"ride": ["a", "x", None], "tip": [0.5, 9.0, 9.0]})
    result = (
        table.merge(source, {"id": "ride"}, source_alias="s", target_alias="t")
        .when_matched_update({"fare": "t.fare + s.tip"})
        .execute()
    )
    assert held(table) == [("a", "rome", 1, 1.5), B, C]
    assert (result.operation, result.updates, result.inserts, result.deletes) == ("merge", 1, 0, 0)
    assert (result.records_written, result.copied) == (2, 1)
    by_text = table.merge(source, "t.id = s.ride", source_alias="s", target_alias="t")
    by_text.when_matched_delete().execute()
    assert held(table) == [B, C]


def test_a_source_row_changes_all_that_it_matches() -> None:
    table = filled()
    source = pa.table({"city": ["rome", "oslo"], "rate": [10.0, 5.0]})
    table.merge(source, "city").when_matched_update({"fare": "fare * rate"}).execute()
    assert held(table) == [("a", "rome", 1, 10.0), ("b", "rome", 1, 20.0), C]


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
def test_two_source_rows_for_one_row_are_ambiguous_unless_both_delete(
    table_type: str, index: dict[str, str]
) -> None:
    table = filled(table_type=table_type, properties=index)
    twice = rides(("a", "rome", 2, 5.0), ("a", "rome", 2, 6.0), ("n", "rome", 1, 1.0))
    with pytest.raises(InvalidError, match="Several rows change the record with key 'a'"):
        table.merge(twice).when_matched_update_all().when_not_matched_insert_all().execute()
    assert held(table) == [A, B, C]
    table.merge(twice).when_matched_update_all("source.fare > 5").execute()
    assert held(table) == [("a", "rome", 2, 6.0), B, C]
    table.merge(twice).when_matched_delete().execute()
    assert held(table) == [B, C]
    twice_new = rides(("n", "rome", 2, 5.0), ("n", "rome", 1, 6.0))
    table.merge(twice_new).when_not_matched_insert_all().execute()
    assert held(table) == [B, C, ("n", "rome", 2, 5.0)]


def test_inserts_meet_keys_that_other_columns_kept_from_matching() -> None:
    table = filled()
    source = rides(("a", "rome", 9, 5.0))
    table.merge(source, ["id", "ts"]).when_not_matched_insert_all().execute()
    assert held(table) == [("a", "rome", 9, 5.0), B, C]


def test_an_update_does_not_move_a_row_to_another_partition() -> None:
    table = filled()
    moved = rides(("a", "oslo", 2, 5.0))
    with pytest.raises(InvalidError, match="another city than the table"):
        table.merge(moved, "id").when_matched_update_all().execute()
    table.merge(moved, "id").when_matched_update({"fare": "source.fare"}).execute()
    assert held(table) == [("a", "rome", 1, 5.0), B, C]


def test_only_partitions_that_can_match_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled()
    storage = context_of(table).storage
    opened: list[str] = []
    plain = type(storage).open
    monkeypatch.setattr(type(storage), "open", lambda s, path: opened.append(path) or plain(s, path))
    table.merge(rides(("c", "pisa", 2, 5.0)), ["id", "city"]).when_matched_update_all().execute()
    assert [path for path in opened if path.startswith("rome") and path.endswith("parquet")] == []
    assert held(table) == [A, B, ("c", "pisa", 2, 5.0)]


SOURCE = rides(("a", "rome", 2, 5.0))
WRONG: list[tuple[Any, Callable[[MergeBuilder], MergeBuilder], str]] = [
    (None, lambda b: b, "The merge has no clauses"),
    (None, lambda b: b.when_matched_update({"fare": "tip"}), "no column tip here"),
    (None, lambda b: b.when_matched_update({"fare": "fare"}), "Write source.fare or target.fare"),
    (None, lambda b: b.when_matched_update({"fere": "1"}), "no column fere. Did you mean fare"),
    (None, lambda b: b.when_matched_update({"id": "source.id"}), "id is part of the record key"),
    (None, lambda b: b.when_matched_update({"fare": "source.city"}), "fare is double.*which is string"),
    (None, lambda b: b.when_matched_delete("source.fare + 1"), "not a condition"),
    (None, lambda b: b.when_matched_delete().when_matched_update_all(), "put it last"),
    (None, lambda b: b.when_not_matched_insert({"id": "id"}), "lack city, ts"),
    (None, lambda b: b.when_not_matched_insert_all("target.ts > 1"), "no column target.ts"),
    ("id = 3", lambda b: b.when_matched_delete(), "is not an equality of columns"),
    (
        "target.id>source.id",
        lambda b: b.when_matched_delete(),
        "is not an equality of columns.*joined by and",
    ),
    ("id and city", lambda b: b.when_matched_delete(), "'id' is not an equality of columns"),
    ("ride", lambda b: b.when_matched_delete(), "no column ride"),
    ({"id": "ride"}, lambda b: b.when_matched_delete(), "source has no column ride"),
    ({"ts": "city"}, lambda b: b.when_matched_delete(), "ts, which is matched on, is int64.*string"),
]


@pytest.mark.parametrize(("on", "tell", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_wrong_merges_are_refused_and_leave_no_trace(
    on: Any, tell: Callable[[MergeBuilder], MergeBuilder], text: str
) -> None:
    table = filled()
    with pytest.raises(InvalidError, match=text):
        tell(table.merge(SOURCE, on)).execute()
    assert len(table.timeline.instants) == 1


def test_floats_are_not_matched_on_and_sources_need_what_all_takes() -> None:
    table = filled()
    with pytest.raises(UnsupportedError, match="fare is double"):
        table.merge(SOURCE, "fare").when_matched_delete().execute()
    with pytest.raises(InvalidError, match="source lacks fare"):
        table.merge(SOURCE.drop_columns(["fare"])).when_matched_update_all().execute()


def test_new_rows_without_a_key_leave_the_table_as_it_was() -> None:
    table = filled()
    no_key = pa.table({"id": pa.array([None], pa.string()), "city": ["rome"], "ts": [1], "fare": [1.0]})
    with pytest.raises(InvalidError, match="record key column id is null"):
        table.merge(no_key).when_not_matched_insert_all().execute()
    assert held(table) == [A, B, C]


IN_TWO_CITIES = rides(("a", "lima", 1, 1.0), ("a", "oslo", 1, 2.0))
GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE"}


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_merge_without_columns_matches_rows_of_the_same_partition(table_type: str) -> None:
    table = create(table_type=table_type)
    table.upsert(IN_TWO_CITIES)
    source = rides(("a", "lima", 2, 9.0), ("a", "rome", 2, 3.0))
    merge = table.merge(source).when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute()
    assert (result.updates, result.inserts) == (1, 1)
    assert held(table) == [("a", "lima", 2, 9.0), ("a", "oslo", 1, 2.0), ("a", "rome", 2, 3.0)]


def test_rows_of_the_default_partition_match_too() -> None:
    table = create()
    table.upsert(rides(("a", None, 1, 1.0)))
    table.merge(rides(("a", None, 2, 5.0))).when_matched_update_all().execute()
    assert held(table) == [("a", None, 2, 5.0)]


def test_a_merge_whose_call_names_a_global_index_matches_by_the_key_alone() -> None:
    table = create()
    table.upsert(rides(("a", "lima", 1, 1.0)))
    source = rides(("a", "oslo", 2, 9.0))
    merge = table.merge(source, options=GLOBAL).when_matched_update({"fare": "source.fare"})
    assert merge.execute().updates == 1
    assert held(table) == [("a", "lima", 1, 9.0)]


def test_a_source_without_partition_columns_has_to_say_what_it_matches_on() -> None:
    table = filled()
    fares = SOURCE.select(["id", "fare"])
    with pytest.raises(InvalidError, match=r"source lacks city.*id, city.*give on="):
        table.merge(fares).when_matched_update({"fare": "source.fare"}).execute()
    table.merge(fares, "id").when_matched_update({"fare": "source.fare"}).execute()
    assert held(table)[0] == ("a", "rome", 1, 5.0)
