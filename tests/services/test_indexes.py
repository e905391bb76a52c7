"""Indexes in the metadata table: created, dropped and shown; right from the start and after every write."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.model.index import TableIndex
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.bloom_filters import indexed_filters, stored_filters
from tests.support.copies import copied
from tests.support.golden import unpack
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.interrupted import Interrupted, on, upserting
from tests.support.record_indexes import indexed_places, places
from tests.support.rows import rides
from tests.support.secondary_indexes import indexed_values, misplaced, stored_values
from tests.support.tables import COW, MOR, create

BY_NAME = "secondary_index_by_name"


def expression(table: Table, function: str, **settings: object) -> TableIndex:
    options = {"expr": function, **settings}
    return table.indexes.create("by_expression", "name", using="column_stats", options=options)


@copied
def made(table_type: str = COW, **how: Any) -> Table:
    """Return a table with some commits and no metadata table."""
    created = create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts", **how)
    table = Table(TableContext(context_of(created).storage, clock=SteppingClock()))
    history = History(table, "SIMPLE", 1)
    table.upsert(history.rows(list(range(20)), True), options=QUIET)
    table.upsert(history.rows([1, 2, 30], True), options=QUIET)
    table.delete(history.rows([3], True).select(["id", "part"]), options=QUIET)
    return table


def with_metadata(table: Table) -> Table:
    context = context_of(table)
    return Table(TableContext(context.storage, clock=context.clock, uses_metadata=True))


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_created_indexes_are_right_after_each_step_of_any_history(table_type: str, version: int) -> None:
    table = made(table_type, version=version)
    assert table.indexes.create("record_index") == TableIndex("record_index", "record_index")
    created = table.indexes.create("by_name", "name")
    assert created == TableIndex(BY_NAME, "secondary_index", ("name",))
    table.indexes.create("bloom_filters")
    names = ["bloom_filters", "record_index", BY_NAME]
    history = History(table, "GLOBAL_RECORD_LEVEL_INDEX", version)
    taken: list[str] = []
    for number in range(14):
        assert [each.name for each in table.indexes.list()] == names, taken
        assert indexed_values(table, BY_NAME) == stored_values(table, "name"), taken
        assert indexed_places(table) == places(table), taken
        assert indexed_filters(table) == stored_filters(table), taken
        taken.append(history.step() if number != 5 else restored(table))
    assert not misplaced(table, BY_NAME, hashes_value=version == 9)


def restored(table: Table) -> str:
    table.savepoints.restore(table.timeline.writes()[-1].requested)
    return "restore"


def test_each_partition_may_have_a_record_index_of_its_own() -> None:
    table = made(MOR)
    assert table.indexes.create("record_index", partitioned=True).is_partitioned
    table.indexes.create("by_name", "name")
    assert indexed_places(table) == places(table)
    rows = [{"id": 1, "name": "same", "part": part, "price": 1.0, "ts": 10**6} for part in ("p0", "p1", "p2")]
    table.upsert(pa.Table.from_pylist(rows, SCHEMA), options=QUIET)
    assert indexed_values(table, BY_NAME) == stored_values(table, "name")
    gone = pa.Table.from_pylist(rows[:1], SCHEMA).select(["id", "part"])
    table.delete(gone, options=QUIET)
    scan = with_metadata(table).scan(where="name = 'same'")
    assert sorted(scan.to_arrow().column("part").to_pylist()) == ["p1", "p2"]
    assert any(step.by == BY_NAME for step in scan.explain().steps)


def test_queries_and_writes_use_the_indexes() -> None:
    table = made(MOR)
    table.indexes.create("record_index")
    table.indexes.create("by_name", "name")
    row = {"id": 7, "name": "rare", "part": "p3", "price": 1.0, "ts": 10**6}
    table.upsert(pa.Table.from_pylist([row], SCHEMA), options=QUIET)
    for where, index in (("id = 7", "record_index"), ("name = 'rare'", BY_NAME)):
        scan = with_metadata(table).scan(where=where)
        assert index in {step.by for step in scan.explain().steps}
        assert 7 in scan.to_arrow().column("id").to_pylist()


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("meta_fields", ["true", "false"])
def test_changes_of_single_columns_are_in_the_index(table_type: str, meta_fields: str) -> None:
    table = made(table_type, properties={"hoodie.populate.meta.fields": meta_fields})
    table.indexes.create("record_index")
    table.indexes.create("by_name", "name")
    keyed = pa.table({"id": pa.array([5, 6], pa.int32()), "part": ["p1", "p2"], "ts": [10**6] * 2})
    changes: list[Callable[[], Any]] = [
        lambda: table.update("id = 4", {"name": "'updated'"}),
        lambda: table.update("id = 8", {"price": "price + 1"}),
        lambda: table.upsert(
            keyed.append_column("name", pa.array(["part", None], pa.string())),
            options=QUIET | {"drawstring.write.partial_update": "true"},
        ),
        lambda: table.delete(where="id = 9 or id = 10"),
        lambda: table.upsert(late(), options=QUIET),
        lambda: table.delete(late().select(["id", "part", "ts"]), options=QUIET),
    ]
    for change in changes if meta_fields == "true" else [*changes[:2], *changes[3:]]:
        assert change()
        rows = table.scan(columns=["id", "name"]).to_arrow().to_pylist()
        assert indexed_values(table, BY_NAME) == {(row["name"], str(row["id"])) for row in rows}
        assert indexed_places(table) == places(table)
    assert "updated" in {value for value, _ in indexed_values(table, BY_NAME)}


def late() -> pa.Table:
    """Return a row that comes too late, and a new one."""
    rows = [(11, "late", "p3", 1.0, 0), (90, "new", "p2", 1.0, 0)]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@pytest.mark.parametrize(
    ("kind", "first", "second", "texts"),
    [
        (pa.string(), "a$b\\c", None, ["a$b\\c", None]),
        (pa.int64(), 5, -7, ["5", "-7"]),
        (pa.float64(), 1.5, 1e10, ["1.5", "1.0E10"]),
        (pa.date32(), dt.date(1970, 1, 3), None, ["2", None]),
        (pa.timestamp("us", "UTC"), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), None, ["1000000", None]),
    ],
    ids=str,
)
def test_values_are_indexed_by_their_texts_in_java(
    kind: pa.DataType, first: Any, second: Any, texts: list[str | None]
) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("value", kind)])
    table = create(schema, partition_by="part", ordering="ts")
    table.upsert(pa.table([["1$"], ["p"], [1], pa.array([first], kind)], schema=schema))
    table.indexes.create("record_index")
    table.indexes.create("by_value", "value")
    table.upsert(pa.table([["2"], ["p"], [1], pa.array([second], kind)], schema=schema))
    found = indexed_values(table, "secondary_index_by_value")
    assert {value for value, _ in found} == {*texts}
    assert {key for _, key in found} == {"1$", "2"}


def test_an_index_whose_values_are_written_in_another_way_from_now_on_is_dropped() -> None:
    schema = pa.schema(
        [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("value", pa.float32())]
    )
    table = create(schema, partition_by="part", ordering="ts")
    table.upsert(pa.table([["1"], ["p"], [1], [0.1]], schema=schema))
    table.indexes.create("record_index")
    table.indexes.create("by_value", "value")
    wider = schema.set(3, pa.field("value", pa.float64()))
    table.upsert(pa.table([["2"], ["p"], [1], [0.1]], schema=wider))
    assert [each.name for each in table.indexes.list()] == ["record_index"]


def test_statistics_of_partitions_come_and_go_with_those_of_columns() -> None:
    table = made()
    table.indexes.create("column_stats")
    assert [each.name for each in table.indexes.list()] == ["column_stats", "partition_stats"]
    assert "name" in table.indexes.list()[0].columns
    table.indexes.drop("column_stats")
    assert table.indexes.list() == []


def test_dropped_indexes_leave_nothing_behind(tmp_path: Path) -> None:
    table = drawstring.open(unpack("v9_idx_secondary", tmp_path))
    root = tmp_path / "v9_idx_secondary/.hoodie"
    table.indexes.drop("idx_sec")
    table.indexes.drop("record_index")
    table.indexes.drop("column_stats")
    assert table.indexes.list() == []
    assert [path.name for path in (root / "metadata").glob("[a-z]*")] == ["files"]
    assert json.loads((root / ".index_defs/index.json").read_text()) == {"indexDefinitions": {}}
    table.upsert(table.scan(columns=table.schema.names).to_arrow().slice(0, 1), options=QUIET)
    table.indexes.create("record_index")
    table.indexes.create("idx_sec", "name")
    assert indexed_values(table, "secondary_index_idx_sec") == stored_values(table, "name")


def test_an_index_whose_bounds_queries_do_not_use_says_so() -> None:
    table = create(pa.schema([("id", pa.string()), ("raw", pa.binary())]), partition_by=None, ordering=())
    table.upsert(pa.table({"id": ["a"], "raw": [b"x"]}))
    index = table.indexes.create("same", "raw", using="column_stats")
    assert index.unused is not None
    assert "do not use bounds of this type" in index.unused


CALLS: list[tuple[Callable[[Table], Any], str]] = [
    (lambda table: table.indexes.create("by_nam", "nam"), r"no column nam\. Did you mean name\?"),
    (lambda table: table.indexes.create("record_index"), "has an index record_index. Drop it first"),
    (lambda table: table.indexes.create("by_price"), "index by_price needs a column"),
    (lambda table: table.indexes.create("by-price", "price"), "cannot be the name of an index"),
    (lambda table: table.indexes.create("bloom_filters", "price"), "Leave the column out"),
    (lambda table: expression(table, "reverse"), r"cannot be of the function reverse\. Use one of date_add"),
    (lambda table: expression(table, "substring", pos=1), "substring of an index lacks len"),
    (lambda table: expression(table, "upper", len=1), "upper of an index has no len"),
    (lambda table: expression(table, "substring", pos=-1, len=2), "positions count from 1"),
    (
        lambda table: expression(table, "substring", pos="x", len=2),
        "The setting pos=x of the index .* is not a whole number",
    ),
    (lambda table: expression(table, "regexp_extract", pattern="(", idx=0), "The pattern cannot be read"),
    (lambda table: expression(table, "from_unixtime"), r"from_unixtime\(name\) cannot have an index of"),
    (
        lambda table: table.indexes.create("i", "name", options={"expr": "upper"}),
        "expr belong to an expression",
    ),
    (
        lambda table: table.indexes.create("i", "name", using="hash"),
        "cannot use 'hash'. Use one of secondary",
    ),
    (lambda table: table.indexes.create("bloom_filters", partitioned=True), "Only a record index"),
    (lambda table: table.indexes.drop("by_price"), "has no index by_price. It has record_index, secondary"),
    (lambda table: table.indexes.drop("files"), "has no index files"),
    (lambda table: table.indexes.drop("record_index"), f"{BY_NAME} cannot be used without record_index"),
]


def test_calls_that_make_no_sense_say_why_and_change_nothing() -> None:
    table = made()
    with pytest.raises(InvalidError, match="needs the record index, which the table does not have"):
        table.indexes.create("by_name", "name")
    assert table.config.metadata_partitions == ("files",)
    table.indexes.create("record_index")
    table.indexes.create("by_name", "name")
    before = table.indexes.list()
    for call, message in CALLS:
        with pytest.raises(InvalidError, match=message) as caught:
            call(table)
        assert caught.value.table == table.uri
    assert table.indexes.list() == before


def test_columns_that_cannot_be_indexed_are_refused() -> None:
    columns = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "flag": pa.bool_()}
    schema = pa.schema(columns | {"price": pa.float64()})
    table = create(schema, partition_by="part", ordering="ts")
    with pytest.raises(InvalidError, match="flag of type bool cannot have a secondary index"):
        table.indexes.create("by_flag", "flag")
    with pytest.raises(InvalidError, match="cannot have an index of bloom_filters: the column is double"):
        table.indexes.create("of_prices", "price", using="bloom_filters", options={"expr": "identity"})


def test_tables_of_version_6_have_the_indexes_of_version_6_alone() -> None:
    table = made(version=6)
    for name in ("record_index", "bloom_filters", "column_stats"):
        table.indexes.create(name)
    assert table.config.metadata_partitions == ("bloom_filters", "column_stats", "files", "record_index")
    for column, options in (("name", {}), ("name", {"using": "column_stats"})):
        with pytest.raises(UnsupportedError, match=r"version 6 can only have .* upgrade the table first"):
            table.indexes.create("by_name", column, **options)
    table.indexes.drop("record_index")
    assert table.config.metadata_partitions == ("bloom_filters", "column_stats", "files")
    with pytest.raises(UnsupportedError, match="of the whole table"):
        table.indexes.create("record_index", partitioned=True)


@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_write_that_goes_on_meanwhile_is_in_the_new_index(has_metadata: bool) -> None:
    table = create(table_type=MOR)
    if has_metadata:
        table = with_metadata(table)
    table.upsert(rides(("a", "rome", 1, 1.0)))

    def indexing(beside: Table) -> None:
        Table(context_of(beside)).indexes.create("record_index")
        beside.indexes.create("by_fare", "fare")

    late = on(Interrupted(Table(TableContext(context_of(table).storage)), indexing))
    upserting(("a", "rome", 2, 5.0), ("b", "rome", 2, 6.0))(late)
    assert "secondary_index_by_fare" in table.config.metadata_partitions
    assert indexed_places(table) == places(table)
    assert indexed_values(table, "secondary_index_by_fare") == stored_values(table, "fare")


def test_no_index_is_built_while_a_write_is_about_to_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_metadata(made())
    table.upsert(History(table, "SIMPLE", 2).rows([40], True), options=QUIET)
    last = table.timeline.writes()[-1]
    (path,) = [
        status.path
        for status in context_of(table).storage.list_files(".hoodie/timeline")
        if status.name.startswith(f"{last.requested}_")
    ]
    content = context_of(table).storage.read(path)
    context_of(table).storage.delete([path])
    monkeypatch.setattr("drawstring.services.indexing.recover", lambda locked, failed: locked)
    with pytest.raises(ConflictError, match=f"about to complete: .*{last.requested}"):
        table.indexes.create("record_index")
    context_of(table).storage.put(path, content)
    table.indexes.create("record_index")
    assert indexed_places(table) == places(table)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_repair_builds_all_indexes_again(table_type: str) -> None:
    table = made(table_type)
    for name, column in (("record_index", None), ("by_name", "name"), ("bloom_filters", None)):
        table.indexes.create(name, column)
    table.indexes.create("column_stats")
    table.indexes.create("upper", "name", using="column_stats", options={"expr": "upper"})
    names = [each.name for each in table.indexes.list()]
    storage = context_of(table).storage
    storage.delete([status.path for status in storage.list_files(".hoodie/metadata/files")])
    assert table.services.repair(apply=True)
    assert [each.name for each in table.indexes.list()] == names
    assert table.services.validate().findings == ()
    assert indexed_places(table) == places(table)
    assert indexed_values(table, BY_NAME) == stored_values(table, "name")
    assert indexed_filters(table) == stored_filters(table)
    for name in ("column_stats", "expr_index_upper"):
        assert table.inspect.metadata(name).num_rows
