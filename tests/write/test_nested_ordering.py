"""Ordering fields inside struct columns, as `m.seq`."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import InvalidError
from drawstring.table import Table
from tests.support.merge_tables import set_properties
from tests.support.sorted_tables import LSM, check_sorted
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create

STRUCT = pa.struct([("who", pa.string()), ("seq", pa.int64()), ("at", pa.struct([("day", pa.date32())]))])
SCHEMA = pa.schema(
    [("id", pa.string()), ("m", STRUCT), ("value", pa.int64()), ("_hoodie_is_deleted", pa.bool_())]
)
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
KINDS: dict[str, dict[str, Any]] = {
    "sorted": {"table_type": MOR, "version": 10, "properties": LSM},
    "sorted buckets": {"table_type": MOR, "version": 10, "properties": {**LSM, **BUCKET}},
    "native": {"table_type": MOR, "version": 10},
    "ORC": {"table_type": MOR, "version": 10, "properties": {"hoodie.table.base.file.format": "orc"}},
    "inline": {"table_type": MOR, "version": 9},
    "inline buckets": {"table_type": MOR, "version": 9, "properties": BUCKET},
    "inline of version 6": {"table_type": MOR, "version": 6},
    "global": {"table_type": MOR, "version": 9, "index": "GLOBAL_BLOOM"},
    "copied": {"table_type": COW, "version": 9},
    "by columns": {"table_type": MOR, "version": 10},
}
BY_COLUMNS = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
Row = tuple[str, int | None, int | None, bool]


def rows(*given: Row) -> pa.Table:
    listed = [
        {"id": key, "m": None if seq is None else {"who": "x", "seq": seq}, "value": value,
         "_hoodie_is_deleted": is_deleted}
        for key, seq, value, is_deleted in given
    ]  # fmt: skip
    return pa.Table.from_pylist(listed, SCHEMA)


def table_of(kind: str, **how: Any) -> Table:
    return create(SCHEMA, **{"partition_by": (), "ordering": "m.seq", **KINDS[kind], **how})


def held(table: Table, **how: Any) -> list[tuple[Any, ...]]:
    found = table.scan(["id", "m", "value"], **how).to_arrow().to_pylist()
    return sorted((row["id"], row["m"] and row["m"]["seq"], row["value"]) for row in found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_greater_value_wins_in_every_way_to_merge(kind: str, tmp_path: Any) -> None:
    table = table_of(kind, path=tmp_path / "t")
    if kind == "by columns":
        table = set_properties(tmp_path / "t", BY_COLUMNS)
    draw, numbers = random.Random(kind), itertools.count(1)
    state: dict[str, tuple[int, int]] = {}
    highest = dict.fromkeys("abcdef", 100)
    for step in range(9):
        written: list[tuple[str, int, int, bool]] = []
        for key in draw.sample([*highest], 4):
            seq = highest[key] + (draw.choice((-3, 0, 2)) if key in state else 2)
            written.append((key, seq, next(numbers), key in state and draw.random() < 0.2))
            is_late = seq < highest[key]
            highest[key] = max(seq, highest[key])
            if written[-1][3] and not is_late:
                del state[key]
            elif not is_late:
                state[key] = (seq, written[-1][2])
        table.upsert(rows(*written), options=WITHOUT_SERVICES)
        if step in (4, 6) and kind not in ("copied", "by columns"):
            table.services.log_compact(min_blocks=2) if step == 4 else table.services.compact()
        expected = sorted((key, *each) for key, each in state.items())
        assert held(table) == expected
        assert held(table, where="value > 3") == [row for row in expected if row[2] > 3]
    assert table.services.validate().findings == ()
    if kind.startswith("sorted"):
        check_sorted(table)


@pytest.mark.parametrize("kind", ["sorted", "native", "inline", "copied"])
def test_changes_by_condition_and_of_some_columns_keep_the_order(kind: str) -> None:
    table = table_of(kind)
    table.insert(rows(("a", 5, 1, False), ("b", None, 1, False)), options=WITHOUT_SERVICES)
    table.update("id = 'a'", {"value": "2"}, options=WITHOUT_SERVICES)
    some = pa.Table.from_pylist(
        [{"id": "a", "m": {"seq": 4}, "value": 9}, {"id": "b", "m": {"seq": 1}, "value": 3}],
        pa.schema([SCHEMA.field("id"), ("m", STRUCT), SCHEMA.field("value")]),
    )
    table.upsert(some, partial_update=True, options=WITHOUT_SERVICES)
    assert held(table) == [("a", 5, 2), ("b", 1, 3)]
    table.delete(where="value = 3", options=WITHOUT_SERVICES)
    assert held(table) == [("a", 5, 2)]


def test_native_deletes_have_the_values_in_a_column_of_their_own(tmp_path: Any) -> None:
    table = table_of("native", path=tmp_path / "t", ordering=("m.seq", "value", "m.at.day"))
    table.insert(rows(("a", 5, 1, False), ("b", 5, 1, False)), options=WITHOUT_SERVICES)
    table.upsert(rows(("a", 5, 1, True), ("b", 5, 0, True)), options=WITHOUT_SERVICES)
    (path,) = (tmp_path / "t").glob("*.deletes.parquet")
    deletes = pq.read_table(path)
    assert deletes.to_pylist() == [
        {"_hoodie_record_key": "a", "_hoodie_ordering_0": 5, "value": 1, "_hoodie_ordering_2": None},
        {"_hoodie_record_key": "b", "_hoodie_ordering_0": 5, "value": 0, "_hoodie_ordering_2": None},
    ]
    assert deletes.schema.field("_hoodie_ordering_2").type == pa.date32()
    assert held(table) == [("b", 5, 1)]


def test_rows_without_the_field_are_refused() -> None:
    table = table_of("sorted")
    lacking = pa.Table.from_pylist(
        [{"id": "a", "m": {"who": "x"}, "value": 1}],
        pa.schema([("id", pa.string()), ("m", pa.struct([("who", pa.string())])), ("value", pa.int64())]),
    )
    with pytest.raises(InvalidError, match=r"The rows lack m\.seq; they have id, m, value"):
        table.insert(lacking)


def test_fields_that_have_no_order_or_are_not_there_are_refused() -> None:
    for wrong, text in (("m.nope", "names a column m.nope that the schema lacks"), ("m.at", "has no order")):
        with pytest.raises(InvalidError, match=text):
            table_of("sorted", ordering=wrong)


def test_the_column_around_the_field_is_not_altered() -> None:
    table = table_of("native")
    table.insert(rows(("a", 5, 1, False)))
    for name in ("m", "m.seq"):
        with pytest.raises(InvalidError, match="m is a column of the ordering"):
            table.columns.rename(name, "other")
    assert table.columns.rename("m.who", "whom")
