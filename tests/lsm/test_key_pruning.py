"""Conditions on the record key leave out row groups of sorted base and log files, and no row that counts."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.expressions.parser import after_prefix
from drawstring.expressions.predicate import parse_where
from drawstring.formats.parquet import ParquetSink, RowGroups, reader
from drawstring.query.partition_pruning import key_range
from drawstring.schema.fields import with_meta
from drawstring.table import Table
from tests.support.rows import SCHEMA, held, rides
from tests.support.sorted_tables import sorted_table
from tests.support.tables import MOR, WITHOUT_SERVICES, create

KEYS = [f"{number:04}" for number in range(400)]
SMALL_GROUPS = 50


@pytest.fixture(scope="module")
def table() -> Table:
    """A slice with a base file and two log files of eight row groups each, and deletes."""
    table = sorted_table(properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    with small_row_groups():
        for ts in (1, 2, 3):
            rows = [(key, "rome", ts, float(ts)) for key in KEYS if ts == 1 or int(key) % ts == 0]
            table.upsert(rides(*rows), options=WITHOUT_SERVICES)
        table.delete(rides(*((key, "rome", 0, 0.0) for key in KEYS[::10])), options=WITHOUT_SERVICES)
    return table


def small_row_groups() -> Any:
    defaults = ParquetSink.__init__.__kwdefaults__ | {"row_groups": RowGroups(SMALL_GROUPS)}

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **{**kwargs, "row_groups": defaults["row_groups"]})

    original = ParquetSink.__init__
    return patch.object(ParquetSink, "__init__", init)


def read_groups(table: Table, where: str) -> tuple[list[str], int]:
    """Return the keys that a query finds, and how many row groups it reads."""
    original = reader.spans
    with patch.object(reader, "spans", side_effect=lambda *given: original(*given)) as seen:
        found = table.scan(columns=["id", "fare"], where=where).to_arrow().column("id").to_pylist()
    return sorted(found), sum(len(call.args[1]) for call in seen.call_args_list)


ALIVE = [key for key in KEYS if int(key) % 10]


@pytest.mark.parametrize(
    ("where", "expected", "groups_max"),
    [
        ("id = '0123'", ["0123"], 4),
        ("id IN ('0001', '0399')", ["0001", "0399"], 7),
        ("id BETWEEN '0101' AND '0119'", [key for key in ALIVE if "0101" <= key <= "0119"], 6),
        ("id LIKE '012%'", [key for key in ALIVE if key.startswith("012")], 6),
        ("id < '0030'", [key for key in ALIVE if key < "0030"], 5),
        (
            "id > '0370' AND fare > 1",
            [k for k in ALIVE if k > "0370" and (int(k) % 2 == 0 or int(k) % 3 == 0)],
            5,
        ),
        ("_hoodie_record_key >= '0390'", [key for key in ALIVE if key >= "0390"], 5),
    ],
)
def test_row_groups_without_the_keys_are_not_read(
    table: Table, where: str, expected: list[str], groups_max: int
) -> None:
    everything = read_groups(table, "fare < 100")[1]
    found, groups = read_groups(table, where)
    assert found == expected
    assert groups <= groups_max < everything


@given(low=st.sampled_from(KEYS), high=st.sampled_from(KEYS), other=st.sampled_from(["AND", "OR"]))
def test_ranges_find_what_a_filter_finds(table: Table, low: str, high: str, other: str) -> None:
    rows = held(table)
    where = f"(id >= '{low}' AND id <= '{high}') {other} fare = 2"
    within = [(low <= row[0] <= high, row[3] == 2) for row in rows]
    expected = [
        row for row, (a, b) in zip(rows, within, strict=True) if (a and b if other == "AND" else a or b)
    ]
    assert held(table, where=where) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id > 'b' AND id < 'd'", '((id >= "b") and (id <= "d"))'),
        ("id > 'b' OR id = 'a'", '(id >= "a")'),
        ("id > 'b' OR fare > 1", None),
        ("fare > 1", None),
        ("NOT id > 'b'", '(id <= "b")'),
        ("id IS NOT NULL", None),
    ],
)
def test_the_range_of_a_condition(table: Table, where: str, expected: str | None) -> None:
    schema = with_meta(SCHEMA)
    found = key_range(parse_where(where, schema), table.config, schema)
    assert (None if found is None else str(found.condition)) == expected


def test_a_condition_on_another_column_leaves_out_base_rows_that_cannot_win() -> None:
    table = sorted_table(properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    with small_row_groups():
        for ts, keys in ((1, KEYS), (2, KEYS[::20])):
            table.upsert(rides(*((key, "rome", ts, float(ts)) for key in keys)), options=WITHOUT_SERVICES)
    assert read_groups(table, "ts > 1") == (KEYS[::20], 1)
    assert read_groups(table, "ts < 3")[0] == KEYS


def test_other_tables_have_no_ranges() -> None:
    config = create(table_type=MOR, version=10).config
    assert key_range(parse_where("id > 'b'", SCHEMA), config, SCHEMA) is None


def test_integer_keys_are_in_the_order_of_their_texts() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("ts", pa.int64())])
    table = sorted_table(schema, partition_by=())
    rows = [{"id": number, "ts": 1} for number in range(-5, 120)]
    table.upsert(pa.Table.from_pylist(rows, schema), options=WITHOUT_SERVICES)
    table.upsert(
        pa.Table.from_pylist([{"id": 9, "ts": 2}, {"id": -1, "ts": 2}], schema), options=WITHOUT_SERVICES
    )
    found = table.scan(where="id >= 8 AND id < 12", columns=["id", "ts"]).to_arrow()
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == [(8, 1), (9, 2), (10, 1), (11, 1)]


@given(st.text(max_size=3), st.text(max_size=3))
def test_every_text_with_a_prefix_is_within_its_bounds(prefix: str, rest: str) -> None:
    after = after_prefix(prefix)
    text = (prefix + rest).encode()
    assert prefix.encode() <= text
    assert after is None or text < after.encode()


@pytest.mark.parametrize(
    ("prefix", "after"), [("a\U0010ffff", "b"), ("\ud7ff", "\ue000"), ("\U0010ffff", None)]
)
def test_the_end_of_a_prefix(prefix: str, after: str | None) -> None:
    assert after_prefix(prefix) == after
