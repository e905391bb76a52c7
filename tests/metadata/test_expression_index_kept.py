"""The expression indexes that drawstring keeps: after each step what the files of the table give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.partitions.expression_index import SETTINGS
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.expression_indexes import built, kept, without_origin
from tests.support.golden import unpack
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.seeds import SHORT_AND_LONG, scaled_steps
from tests.support.tables import COW, MOR, create

GOLDEN = ["v8_idx_expression", "v9_idx_expression"]
BY_DAY, BY_NAME, BY_SECOND = "expr_index_by_day", "expr_index_by_name", "expr_index_by_second"


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("partition", ["expr_index_idx_cs", "expr_index_idx_bl"])
def test_built_anew_an_index_is_that_of_real_hudi(name: str, partition: str, tmp_path: Path) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    found = kept(table, partition)
    assert len(found) == (9 if "cs" in partition else 6)
    assert without_origin(built(table, partition)) == without_origin(found)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_definitions_of_real_hudi_are_written_as_it_does(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    defined = json.loads((path / ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    table = drawstring.open(path)
    for index, using in (("idx_cs", "column_stats"), ("idx_bl", "bloom_filters")):
        known = defined[f"expr_index_{index}"]
        table.indexes.drop(index)
        table.indexes.create(index, known["sourceFields"][0], using=using, options=known["indexOptions"])
        text = (path / ".hoodie/.index_defs/index.json").read_text()
        again = json.loads(text)["indexDefinitions"][f"expr_index_{index}"]
        assert {**known, "version": again.get("version")} == {"version": None, **again}


@pytest.mark.parametrize("name", GOLDEN)
def test_indexes_of_real_hudi_are_kept_over_a_life(name: str, tmp_path: Path) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    rows = table.scan().to_arrow().drop_columns([n for n in table.schema.names if n.startswith("_hoodie")])
    later = rows.set_column(rows.schema.get_field_index("ts"), "ts", [[10**9] * len(rows)]).cast(rows.schema)

    def check() -> None:
        for partition in ("expr_index_idx_cs", "expr_index_idx_bl"):
            assert without_origin(kept(table, partition)) == without_origin(built(table, partition))

    table.upsert(later.slice(0, 3), options=QUIET)
    check()
    table.services.cluster()
    check()
    table.insert_overwrite(later.slice(1, 1), options=QUIET)
    check()
    table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    check()


def with_indexes(table_type: str, version: int = 9) -> Table:
    """Return a table with some commits and expression indexes."""
    created = create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts", version=version)
    table = Table(TableContext(context_of(created).storage, clock=SteppingClock(), uses_metadata=True))
    history = History(table, "SIMPLE", 1)
    table.upsert(history.rows(list(range(20)), True), options=QUIET)
    table.upsert(history.rows([1, 2, 30], True), options=QUIET)
    filters = {"numentries": "20", "fpp": "0.01"}
    table.indexes.create("by_name", "name", using="bloom_filters", options={"expr": "upper", **filters})
    table.indexes.create("by_second", "ts", using="column_stats", options={"expr": "from_unixtime"})
    days = {"expr": "substring", "pos": "2", "len": "3"}
    table.indexes.create("by_day", "name", using="column_stats", options=days)
    return table


@pytest.mark.scaled
@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 8)])
def test_indexes_are_right_after_each_step_of_any_history(table_type: str, version: int, seed: int) -> None:
    table = with_indexes(table_type, version)
    history = History(table, "SIMPLE", seed)
    taken: list[str] = []
    for _ in range(scaled_steps(8)):
        for partition in (BY_DAY, BY_NAME, BY_SECOND):
            found = kept(table, partition)
            assert found == built(table, partition), taken
            assert found
        taken.append(history.step())


def test_nulls_and_columns_that_come_later_are_in_the_index() -> None:
    table = with_indexes(COW)
    history = History(table, "SIMPLE", 5)
    rows = history.rows([91, 92, 93], True)
    nulls = pa.array([None, "x", None], pa.string())
    table.upsert(rows.set_column(1, "name", nulls), options=QUIET)
    table.upsert(history.rows([90], True).append_column("extra", [["y"]]), options=QUIET)
    table.indexes.create("by_extra", "extra", using="column_stats", options={"expr": "lower"})
    for partition in (BY_DAY, BY_NAME, "expr_index_by_extra"):
        assert kept(table, partition) == built(table, partition)
    shown = table.inspect.metadata("expr_index_by_extra").to_pylist()
    assert {row["min"] for row in shown} == {None, "y"}
    assert table.scan(where="upper(name) = 'X'").to_arrow().num_rows == 1


def test_times_that_texts_cannot_have_leave_a_file_out_of_the_index() -> None:
    table = with_indexes(COW)
    rows = History(table, "SIMPLE", 6).rows([1, 46], True)
    table.upsert(rows.set_column(4, "ts", pa.array([10**15, 10**18])), options=QUIET)
    shown = table.inspect.metadata(BY_SECOND).to_pylist()
    files = {row["file"] for row in shown}
    by_name = {row["file"] for row in table.inspect.metadata(BY_NAME).to_pylist()}
    assert by_name > files - {None}
    assert any(row["max"] == "\U0010ffff" for row in shown if row["file"] is None)


def test_a_restore_builds_the_indexes_again() -> None:
    table = with_indexes(MOR)
    history = History(table, "SIMPLE", 2)
    then = table.upsert(history.rows([1, 2, 70], True), options=QUIET).instant
    table.upsert(history.rows([3, 4, 71], True), options=QUIET)
    table.savepoints.restore(then)
    assert {BY_DAY, BY_NAME, BY_SECOND} <= {*table.config.metadata_partitions}
    for partition in (BY_DAY, BY_NAME, BY_SECOND):
        assert kept(table, partition) == built(table, partition)


CONDITIONS = [
    "upper(name) = '{upper}'",
    "upper(name) in ('{upper}', 'N1')",
    "substring(name, 2, 3) = '{middle}'",
    "SUBSTR(`NAME`, 2, 3) < '{middle}' and id < 40",
    "not substring(name, 2, 3) >= '{middle}'",
    "substring(name, 2, 3) is null",
    "upper(name) = '{upper}' or id = 3",
    "upper(name) = '{upper}' and substring(name, 2, 3) = '{middle}'",
]


@pytest.mark.scaled
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_queries_find_the_same_rows_with_and_without_the_indexes(table_type: str) -> None:
    table = with_indexes(table_type)
    plain = Table(TableContext(context_of(table).storage, clock=SteppingClock()))
    history = History(table, "SIMPLE", 9)
    skipped: set[str] = set()
    for _ in range(scaled_steps(12)):
        history.step()
        names = plain.scan(["name"]).to_arrow().column("name").to_pylist()
        name = (names or ["n1"])[-1]
        for text in CONDITIONS:
            where = text.format(upper=name.upper(), middle=name[1:4])
            scan = table.scan(where=where)
            assert by_id(scan) == by_id(plain.scan(where=where)), where
            skipped |= {step.by for step in scan.explain().steps if step.skipped}
    assert {BY_DAY, BY_NAME} <= skipped


def by_id(scan: Any) -> list[Any]:
    return list(scan.to_arrow().sort_by("id").to_pylist())


def test_an_index_of_another_function_is_dropped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = unpack("v9_idx_expression", tmp_path)
    definitions = path / ".hoodie/.index_defs/index.json"
    definitions.write_text(definitions.read_text().replace("from_unixtime", "split"))
    table = drawstring.open(path)
    table.delete(where="id = 1")
    assert "Dropped expr_index_idx_cs from the metadata table" in caplog.text
    assert [each.name for each in table.indexes.list()] == [
        "column_stats",
        "expr_index_idx_bl",
        "partition_stats",
    ]


def test_settings_of_expression_indexes_are_no_options_of_writes() -> None:
    assert not any(name.startswith("hoodie") for name in SETTINGS)
