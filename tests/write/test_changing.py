"""Rows are updated and deleted where they are, by a condition."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.engine.local import LocalEngine
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, A, B, C, create, filled, new_address

RINGS = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


@pytest.mark.parametrize(
    ("table_type", "index"), [(COW, {}), (MOR, {}), (COW, BUCKETS), (MOR, BUCKETS), (MOR, RINGS)]
)
def test_an_update_changes_the_rows_that_fulfil_the_condition(table_type: str, index: dict[str, str]) -> None:
    table = filled(table_type=table_type, properties=index)
    result = table.update("fare >= 2 and city = 'rome'", {"fare": "fare * 10 + ts", "ts": "ts + 1"})
    assert held(table) == [A, ("b", "rome", 2, 21.0), C]
    assert (result.operation, result.updates, result.inserts, result.deletes) == ("update", 1, 0, 0)
    result = table.delete(where=pc.field("fare") == 3.0)
    assert held(table) == [A, ("b", "rome", 2, 21.0)]
    assert (result.operation, result.deletes) == ("delete", 1)
    new = rides(("a", "rome", 2, 5.0), ("n", "oslo", 1, 1.0))
    result = table.merge(new).when_matched_delete().when_not_matched_insert_all().execute()
    assert held(table) == [("b", "rome", 2, 21.0), ("n", "oslo", 1, 1.0)]


def test_only_file_groups_with_such_rows_are_written() -> None:
    table = filled()
    assert table.update("city = 'pisa'", {"fare": 0.5}).files == 1
    assert table.update("fare > 100", {"fare": 0.5}).files == 0
    assert table.update(None, {"fare": None}).files == 2
    assert {row[3] for row in held(table)} == {None}


def test_an_update_to_an_earlier_time_loses_as_a_late_row_does() -> None:
    table = filled()
    table.update("id = 'a'", {"fare": "99.0", "ts": "ts - 1"})
    assert held(table) == [A, B, C]
    unordered = filled(ordering=())
    unordered.update("id = 'a'", {"fare": "99.0", "ts": "ts - 1"})
    assert held(unordered)[0] == ("a", "rome", 0, 99.0)


@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["simple", "bucket"])
@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6), (MOR, 9)])
def test_an_update_counts_and_logs_the_rows_that_it_changed(
    table_type: str, version: int, properties: dict[str, str]
) -> None:
    table = filled(table_type=table_type, version=version, properties=properties)
    table.upsert(rides(("d", "rome", 9, 4.0), ("e", "pisa", 9, 5.0)))
    result = table.update("fare >= 2", {"fare": "fare + 10", "ts": "5"})
    after = [A, ("b", "rome", 5, 12.0), ("c", "pisa", 5, 13.0), ("d", "rome", 9, 4.0), ("e", "pisa", 9, 5.0)]
    assert held(table) == after
    assert result.updates == 2
    result = table.update("ts = 9", {"fare": "0", "ts": "5"})
    assert held(table) == after
    assert (result.updates, result.files) == (0, 0)


def test_rows_that_delete_whatever_their_time_are_no_late_ones() -> None:
    columns = pa.schema([("id", pa.string()), ("ts", pa.int32()), ("_hoodie_is_deleted", pa.bool_())])
    table = drawstring.create(new_address(), columns, record_key="id", ordering="ts", table_type=MOR)
    table.upsert(pa.table([["a", "b", "c"], [5, 5, 5], [False] * 3], schema=columns))
    table.update("id = 'a'", {"_hoodie_is_deleted": True, "ts": "0"})
    table.update("id = 'b'", {"_hoodie_is_deleted": True, "ts": "1"})
    assert table.scan(["id"]).to_arrow().to_pylist() == [{"id": "b"}, {"id": "c"}]


def test_copies_of_a_key_are_told_apart_by_the_condition() -> None:
    table = create()
    table.insert(rides(A))
    table.insert(rides(("a", "rome", 5, 7.0)), options={"hoodie.parquet.small.file.limit": "0"})
    table.update("fare = 7", {"fare": "8"})
    assert held(table) == [A, ("a", "rome", 5, 8.0)]
    table.delete(where="fare = 8")
    assert held(table) == [A]


VALUES = [
    ("text", "upper(text) || '!'", "ABC!"),
    ("text", "case when number > 4 then 'big' else text end", "big"),
    ("text", "if(number > 9, 'big', coalesce(none, text))", "abc"),
    ("text", "'2013-01-01'", "2013-01-01"),
    ("number", "-number * 2 + length(trim(text))", -7),
    ("number", 2.0, 2),
    ("number", pc.field("number") + 1, 6),
    ("number", "cast(text as int)", None),
    ("day", "'2013-01-02'", dt.date(2013, 1, 2)),
    ("day", dt.date(2013, 1, 3), dt.date(2013, 1, 3)),
    ("price", "price * 2 + 0.5", pytest.approx(3.0)),
    ("tags", pc.field("tags"), ["x"]),
    ("none", None, None),
]


def wide() -> Table:
    row = {"id": "a", "text": "abc", "number": 5, "day": dt.date(2012, 1, 1), "tags": ["x"], "none": None}
    rows = pa.Table.from_pylist([row]).cast(
        pa.schema(
            [
                ("id", pa.string()),
                ("text", pa.string()),
                ("number", pa.int32()),
                ("day", pa.date32()),
                ("tags", pa.list_(pa.string())),
                ("none", pa.string()),
            ]
        )
    )
    rows = rows.append_column("price", pa.array([1.25]).cast(pa.decimal128(10, 2)))
    table = drawstring.create(new_address(), rows.schema, record_key="id")
    table.upsert(rows)
    return table


@pytest.mark.parametrize(("column", "value", "expected"), VALUES)
def test_values_are_sql_arrow_expressions_or_plain(column: str, value: Any, expected: Any) -> None:
    table = wide()
    if expected is None and value is not None:
        with pytest.raises(InvalidError, match=r"fails on a row.*abc"):
            table.update(None, {column: value})
        return
    table.update(None, {column: value})
    found = table.scan([column]).to_arrow().column(0)[0].as_py()
    assert (float(found) if column == "price" else found) == expected


@pytest.mark.parametrize(
    ("where", "changes", "text"),
    [
        ("number > 1", {"nmber": "1"}, "no column nmber. Did you mean number"),
        ("nmber > 1", {"number": "1"}, "no column nmber. Did you mean number"),
        ("number >", {"number": "1"}, "not a SQL condition"),
        (None, {"number": "text"}, "number is int32 and cannot be set to text, which is string"),
        (None, {"number": "'x'"}, "'x' does not fit a column of type int32"),
        (None, {"text": "number"}, "text is string and cannot be set to number, which is int32"),
        (None, {"number": "sum(number)"}, "The SQL contains .SUM.*not supported"),
        (None, {"day": pc.field("dey")}, "no column dey"),
        (None, {"id": "'b'"}, "id is part of the record key"),
        (None, {"_hoodie_commit_time": "'b'"}, "no column _hoodie_commit_time"),
        (None, {}, "The update sets no columns"),
        (None, {"number": "1", "NUMBER": "2"}, "set twice"),
    ],
)
def test_wrong_calls_are_refused_and_leave_no_trace(where: Any, changes: Any, text: str) -> None:
    table = wide()
    with pytest.raises(InvalidError, match=text):
        table.update(where, changes)
    assert len(table.timeline.instants) == 1


def test_partition_columns_and_half_a_delete_are_refused() -> None:
    table = filled()
    with pytest.raises(InvalidError, match="city is part of the partition path"):
        table.update(None, {"city": "'oslo'"})
    for call in ({}, {"data": rides(A), "where": "id = 'a'"}):
        with pytest.raises(InvalidError, match="rows or a condition"):
            table.delete(options=call)
    assert len(table.timeline.instants) == 1


def test_a_value_that_fails_on_a_row_leaves_the_table_as_it_was() -> None:
    table = wide()
    for value in ("number * 1000000000", "cast(number as bigint) * 3000000000", 2.5):
        with pytest.raises(InvalidError, match="number"):
            table.update(None, {"number": value})
    assert table.scan(["number"]).to_arrow().to_pylist() == [{"number": 5}]
    assert table.update("number = 5", {"number": "6"}).updates == 1


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_rows_of_a_table_without_key_columns_are_changed_where_they_are(table_type: str) -> None:
    table = create(table_type=table_type, record_key=())
    table.insert(rides(A, B, C))
    table.update("fare >= 2", {"fare": "fare * 10"})
    table.delete(where="fare = 20")
    table.merge(rides(A), ["city", "ts"]).when_matched_update({"fare": "target.fare + 0.5"}).execute()
    assert held(table) == [("a", "rome", 1, 1.5), ("c", "pisa", 1, 30.0)]
    with pytest.raises(UnsupportedError, match="without key columns"):
        table.merge(rides(A), "city").when_not_matched_insert_all().execute()


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_changes_and_new_rows_of_a_merge_share_a_small_file(table_type: str) -> None:
    table = create(table_type=table_type)
    table.insert(rides(A, B))
    source = rides(("a", "rome", 2, 5.0), ("b", "rome", 2, 5.0), ("n", "rome", 1, 1.0))
    merge = table.merge(source).when_matched_delete("source.id = 'b'").when_matched_update_all()
    result = merge.when_not_matched_insert_all().execute()
    assert held(table) == [("a", "rome", 2, 5.0), ("n", "rome", 1, 1.0)]
    assert (result.inserts, result.updates, result.deletes, len(table.inspect.files())) == (1, 1, 1, 1)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_global_index_merges_on_the_key_alone(table_type: str) -> None:
    table = create(table_type=table_type, properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.upsert(rides(A, B, C))
    source = rides(("a", "oslo", 2, 5.0), ("n", "oslo", 1, 1.0))
    with pytest.raises(UnsupportedError, match="Match on id"):
        table.merge(source, ["id", "city"]).when_not_matched_insert_all().execute()
    merge = table.merge(source).when_matched_update({"fare": "source.fare"})
    merge.when_not_matched_insert_all().execute()
    table.update("id = 'b'", {"fare": "9.0"})
    table.delete(where="id = 'c'")
    assert held(table) == [("a", "rome", 1, 5.0), ("b", "rome", 1, 9.0), ("n", "oslo", 1, 1.0)]
    table.insert(rides(("a", "pisa", 1, 0.0)), options={"hoodie.datasource.insert.dup.policy": "drop"})
    assert len(held(table)) == 3


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.populate.meta.fields": "false"},
        {"hoodie.table.cdc.enabled": "true"},
    ],
    ids=["no-meta", "cdc"],
)
def test_tables_of_other_shapes_are_changed_where_they_are(properties: dict[str, str]) -> None:
    table = filled(properties=properties)
    table.update("fare >= 2 and city = 'rome'", {"fare": "fare * 10"})
    table.delete(where="city = 'pisa'")
    merge = table.merge(rides(("b", "rome", 2, 1.0), ("n", "oslo", 1, 1.0)))
    merge.when_matched_update({"fare": "source.fare + target.fare"}).when_not_matched_insert_all().execute()
    assert held(table) == [A, ("b", "rome", 1, 21.0), ("n", "oslo", 1, 1.0)]
    table.upsert(
        pa.table({"id": ["a"], "city": ["rome"], "ts": [9], "fare": [7.0]}),
        options={"drawstring.write.partial_update": "true"},
    )
    assert held(table)[0] == ("a", "rome", 9, 7.0)


def test_a_table_without_partition_columns_in_its_files_is_refused() -> None:
    table = filled(properties={"hoodie.datasource.write.drop.partition.columns": "true"})
    with pytest.raises(UnsupportedError, match="lack the partition columns"):
        table.update("fare >= 2", {"fare": "1.0"})
    assert len(table.timeline.instants) == 1


def test_what_reads_rows_to_change_them_goes_to_other_processes() -> None:
    table = filled()
    sent = []

    class Sending(LocalEngine):
        def read(self, sources: Any, read: Any, schema: pa.Schema) -> Any:
            sent.append(pickle.loads(pickle.dumps(read)))
            return super().read(sources, sent[-1], schema)

    Table(replace(context_of(table), engine=Sending())).update("id = 'a'", {"fare": 5.0})
    assert len(sent) == 1
    assert held(table)[0] == ("a", "rome", 1, 5.0)
