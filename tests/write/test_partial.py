"""Upserts of a few columns leave the others as they are."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.formats.log_inline import scan_blocks
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.combinations import pairwise
from tests.support.partial_rows import PARTIAL, SCHEMA, filled, rows_with
from tests.support.rows import scanned
from tests.support.tables import BUCKETS, COW, MOR, create, new_address

KINDS = pairwise(
    list(itertools.product((COW, MOR), (6, 8, 9), ("SIMPLE", "BUCKET"), (True, False), ("parquet", "avro")))
)


def held(table: Table) -> list[tuple[Any, ...]]:
    return scanned(table, SCHEMA.names)


@pytest.mark.parametrize(("table_type", "version", "index", "ordered", "log_format"), KINDS)
def test_columns_that_rows_lack_stay_as_they_are(
    table_type: str, version: int, index: str, ordered: bool, log_format: str
) -> None:
    table = filled(table_type, version, index, ordered)
    options = {**PARTIAL, "hoodie.logfile.data.block.format": log_format}
    table.upsert(
        rows_with("id city ts fare", ("a", "rome", 6, 10.0), ("c", "pisa", 6, None)), options=options
    )
    assert held(table) == [
        ("a", "rome", 6, 10.0, "n1", ["x"]),
        ("b", "rome", 5, 2.0, "n2", []),
        ("c", "pisa", 6, None, "n3", None),
    ]
    late = rows_with(
        "note id ts city", ("m1", "a", 7, "rome"), ("m2", "b", 4, "rome"), ("m0", "a", 6, "rome")
    )
    table.upsert(late, options=options)
    first = ("a", "rome", 7, 10.0, "m1", ["x"]) if ordered else ("a", "rome", 6, 10.0, "m0", ["x"])
    second = ("b", "rome", 5, 2.0, "n2", []) if ordered else ("b", "rome", 4, 2.0, "m2", [])
    assert held(table)[:2] == [first, second]
    table.upsert(
        rows_with("id city ts stops", ("n", "rome", 8, ["y"]), ("a", "rome", 9, ["z"])), options=options
    )
    expected = [
        (*("a", "rome", 9), *first[3:5], ["z"]),
        second,
        ("c", "pisa", 6, None, "n3", None),
        ("n", "rome", 8, None, None, ["y"]),
    ]
    assert held(table) == expected
    if table_type == MOR:
        assert table.services.compact()
        assert held(table) == expected
    table.delete(where="id = 'a'")
    assert held(table) == expected[1:]


@pytest.mark.parametrize("index", [BUCKETS, {"hoodie.index.log.enable": "true"}], ids=["bucket", "log"])
@pytest.mark.parametrize("version", [8, 9])
def test_a_new_record_in_a_log_file_says_who_it_is(index: dict[str, str], version: int) -> None:
    table = create(SCHEMA, table_type=MOR, version=version, properties=index)
    whole = {"city": "rome", "ts": 1, "fare": None, "note": "whole", "stops": None}
    for letter in "on":
        table.upsert(pa.Table.from_pylist([{"id": f"{letter}{n}", **whole} for n in range(9)], SCHEMA))
    assert any(each.logs for each in table.inspect.files())
    new = [(f"n{n}", "rome", 6, 10.0) for n in range(9)]
    table.delete(rows_with("id city", *(each[:2] for each in new)))
    new += [(f"p{n}", "rome", 6, 10.0) for n in range(9)]
    table.upsert(rows_with("id city ts fare", *new), options=PARTIAL)
    assert [each for each in held(table) if each[0][0] != "o"] == [(*each, None, None) for each in new]


def test_logs_hold_the_columns_given_and_no_others() -> None:
    table = filled(MOR)
    table.upsert(rows_with("id city ts fare", ("a", "rome", 6, 10.0)), options=PARTIAL)
    (log,) = [log for each in table.inspect.files() for log in each.logs]
    with context_of(table).storage.open(log.status.path) as file:
        (block,) = scan_blocks(file, file.size())
    assert block.is_partial
    assert block.schema_json
    assert '"fare"' in block.schema_json
    assert '"note"' not in block.schema_json
    assert '"id"' not in block.schema_json


def test_a_table_that_goes_by_commit_time_logs_whole_rows() -> None:
    table = filled(MOR, ordered=False)
    table.upsert(rows_with("id city ts fare", ("a", "rome", 6, 10.0)), options=PARTIAL)
    table.update(
        "id = 'a'", {"note": "'new'"}, options={"hoodie.spark.sql.merge.into.partial.updates": "true"}
    )
    blocks = []
    for log in [log for each in table.inspect.files() for log in each.logs]:
        with context_of(table).storage.open(log.status.path) as file:
            blocks += scan_blocks(file, file.size())
    assert [block.is_partial for block in blocks] == [False, False]
    assert held(table)[0] == ("a", "rome", 6, 10.0, "new", ["x"])


def test_wrong_partial_updates_are_refused_and_leave_no_trace() -> None:
    for table_type in (COW, MOR):
        table = filled(table_type)
        for rows, text in (
            (rows_with("id city", ("a", "rome")), "only key and partition columns"),
            (rows_with("id city fare", ("a", "rome", 1.0)), "lack ts"),
            (
                rows_with("id city ts", ("a", "rome", 1)).append_column("fere", [["x"]]),
                "no column fere. Did you mean",
            ),
            (rows_with("id city ts", ("a", "rome", 1)).append_column("fare", [["x"]]), "fare.*is.*double"),
        ):
            with pytest.raises(InvalidError, match=text):
                table.upsert(rows, options=PARTIAL)
        with pytest.raises(InvalidError, match="needs the operation upsert"):
            table.insert(rows_with("id city ts", ("a", "rome", 1)), options=PARTIAL)
        assert len(table.timeline.instants) == 1


def test_an_empty_table_takes_partial_rows_whole() -> None:
    table = filled(COW)
    table.delete(where="true")
    table.upsert(rows_with("id city ts note", ("a", "rome", 6, "m")), options=PARTIAL)
    assert held(table) == [("a", "rome", 6, None, "m", None)]


def blocks(table: Table) -> list[tuple[bool, set[str]]]:
    """Return of each block in the newest log files whether it is partial, and its columns."""
    found = []
    for each in table.inspect.files():
        for log in each.logs:
            with context_of(table).storage.open(log.status.path) as file:
                for block in scan_blocks(file, file.size()):
                    names = {
                        field["name"] for field in json.loads(block.schema_json or '{"fields": []}')["fields"]
                    }
                    found.append((block.is_partial, {name for name in names if not name.startswith("_")}))
    return found


@pytest.mark.parametrize(
    ("version", "index", "log_format"),
    pairwise(list(itertools.product((8, 9), ("SIMPLE", "BUCKET"), ("parquet", "avro")))),
)
def test_merges_log_the_columns_that_updates_set_and_new_rows_whole(
    version: int, index: str, log_format: str
) -> None:
    outcomes = []
    for partial in (True, False):
        table = filled(MOR, version, index)
        options = {
            "hoodie.logfile.data.block.format": log_format,
            "hoodie.spark.sql.merge.into.partial.updates": partial,
        }
        rows = rows_with(
            "id city ts fare", ("a", "rome", 6, 10.0), ("c", "pisa", 1, 9.0), ("n", "rome", 1, 8.0)
        )
        (
            table.merge(rows, "target.id = source.id", options=options)
            .when_matched_delete("target.id = 'c'")
            .when_matched_update({"fare": "source.fare + target.fare", "note": None})
            .when_not_matched_insert({name: f"source.{name}" for name in ("id", "city", "ts", "fare")})
            .execute()
        )
        table.update("id = 'b'", {"fare": "fare * 2"}, options=options)
        changed = [names for is_partial, names in blocks(table) if is_partial]
        assert sorted(map(sorted, changed)) == ([["fare", "note", "ts"], ["fare", "ts"]] if partial else [])
        outcomes.append((held(table), bool(table.services.compact()), held(table)))
    expected = [
        ("a", "rome", 5, 11.0, None, ["x"]),
        ("b", "rome", 5, 4.0, "n2", []),
        ("n", "rome", 1, 8.0, None, None),
    ]
    assert outcomes == [(expected, True, expected)] * 2


def test_tables_with_a_column_for_deletes_get_whole_rows_which_hudi_can_read() -> None:
    table = drawstring.create(
        new_address(),
        pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())]),
        record_key="id",
        partition_by="city",
        table_type=MOR,
    )
    row = {"id": "a", "city": "rome", "ts": 5, "fare": 1.0, "note": "n", "stops": None}
    table.upsert(pa.Table.from_pylist([row], table.schema))
    table.upsert(
        rows_with("id city fare", ("a", "rome", 2.0)), options={"drawstring.write.partial_update": "true"}
    )
    table.update("id = 'a'", {"ts": 6}, options={"hoodie.spark.sql.merge.into.partial.updates": "true"})
    assert not any(is_partial for is_partial, _ in blocks(table))
    assert held(table) == [("a", "rome", 6, 2.0, "n", None)]


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6)])
def test_merges_write_whole_rows_where_readers_know_nothing_else(table_type: str, version: int) -> None:
    table = filled(table_type, version)
    table.update("id = 'b'", {"fare": "fare * 2"})
    assert not any(is_partial for is_partial, _ in blocks(table))
    assert held(table)[1] == ("b", "rome", 5, 4.0, "n2", [])


def test_an_update_of_all_columns_writes_whole_rows() -> None:
    table = filled(MOR)
    table.update("id = 'b'", {"ts": 6, "fare": 1.0, "note": "'m'", "stops": None})
    assert [is_partial for is_partial, _ in blocks(table)] == [False]
    assert held(table)[1] == ("b", "rome", 6, 1.0, "m", None)


@pytest.mark.parametrize("log_format", ["parquet", "avro"])
def test_an_update_leaves_structs_with_required_fields_alone(log_format: str) -> None:
    inner = pa.struct([pa.field("at", pa.int64(), nullable=False), ("by", pa.string())])
    schema = pa.schema([*SCHEMA, ("last", inner)])
    table = drawstring.create(new_address(), schema, record_key="id", partition_by="city", table_type=MOR)
    row = {"id": "a", "city": "rome", "ts": 5, "fare": 1.0, "note": "n", "stops": None}
    last = {"at": 1, "by": None}
    table.upsert(pa.Table.from_pylist([{**row, "last": last}, {**row, "id": "b", "last": None}], schema))
    table.update(None, {"fare": "fare + 1"}, options={"hoodie.logfile.data.block.format": log_format})
    table.update("id = 'a'", {"note": "'m'"}, options={"hoodie.logfile.data.block.format": log_format})
    for _ in ("logs", "base files"):
        found = table.scan(["id", "fare", "note", "last"]).to_arrow().to_pylist()
        assert sorted(found, key=lambda each: str(each["id"])) == [
            {"id": "a", "fare": 2.0, "note": "m", "last": last},
            {"id": "b", "fare": 2.0, "note": "n", "last": None},
        ]
        table.services.compact()


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_global_index_takes_no_partial_update(table_type: str, ordered: bool) -> None:
    table = filled(table_type, ordered=ordered)
    options = {**PARTIAL, "hoodie.index.type": "GLOBAL_SIMPLE"}
    with pytest.raises(UnsupportedError, match="A partial update is not supported with a global index"):
        table.upsert(rows_with("id city ts fare", ("a", "rome", 6, 9.0)), options=options)
    assert len(table.timeline.instants) == 1


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize(
    ("names", "row", "told"),
    [
        ("city ts fare", ("rome", 6, 1.0), "The rows lack id, a record key column. Add it."),
        ("id ts fare", ("a", 6, 1.0), "The rows lack city, a partition column. Add it."),
        ("id city fare", ("a", "rome", 1.0), "The rows lack ts, the ordering column. Add it."),
        (
            "ts fare",
            (6, 1.0),
            "The rows lack id, a record key column, and city, a partition column. Add them.",
        ),
    ],
)
def test_rows_that_name_no_record_are_told_what_they_lack(
    table_type: str, names: str, row: tuple[Any, ...], told: str
) -> None:
    table = filled(table_type, 9, "SIMPLE", True)
    with pytest.raises(InvalidError) as caught:
        table.upsert(rows_with(names, row), options=PARTIAL)
    assert caught.value.message == told
