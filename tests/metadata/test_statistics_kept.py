"""The statistics that drawstring keeps in the metadata table: after each step those of a new build."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.partitions import column_stats
from drawstring.metadata.partitions.column_stats import INDEXED_META, ColumnStatsMaintainer, ReadSummaries
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.built_statistics import ENABLED, Records, built, check, kept, with_statistics
from tests.support.golden import unpack
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.seeds import SHORT_AND_LONG, scaled_steps
from tests.support.tables import COW, MOR, create


def play(table: drawstring.Table, seed: int, steps: int, of_hudi: Records | None = None) -> None:
    history = History(table, "SIMPLE", seed)
    check(table, of_hudi=of_hudi)
    taken = []
    for _ in range(steps):
        taken.append(history.step())
        check(table, taken, of_hudi)


@pytest.mark.scaled
@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize(
    "name", ["v6_mdt_compacted", "v8_idx_record_level", "v9_mdt_cow", "v9_mdt_compacted"]
)
def test_statistics_of_real_hudi_are_right_after_each_step_of_any_history(
    tmp_path: Path, name: str, seed: int
) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    play(table, seed, scaled_steps(10), kept(table, "column_stats"))


@pytest.mark.scaled
@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_statistics_built_for_a_table_are_right_after_each_step_of_any_history(
    table_type: str, version: int, seed: int
) -> None:
    play(with_statistics(table_type, version=version), seed, scaled_steps(12))


def test_a_file_of_deletes_has_statistics_without_values() -> None:
    table = with_statistics(MOR, version=10)
    rows = History(table, "SIMPLE", 1).rows([1, 2, 3], True)
    table.upsert(rows, options=QUIET | ENABLED)
    deleted = table.delete(rows, options=QUIET | ENABLED)
    kept_of = [
        each for each in table.inspect.metadata("column_stats").to_pylist() if deleted.instant in each["file"]
    ]
    assert {each["column"] for each in kept_of} == {*SCHEMA.names, *INDEXED_META}
    assert all(each["file"].endswith(".deletes.parquet") for each in kept_of)
    assert {(each["type"], each["min"], each["max"], each["values"]) for each in kept_of} == {
        ("NULL", None, None, 0)
    }
    check(table)


def test_a_write_adds_the_statistics_that_it_asks_for() -> None:
    table = create(SCHEMA, partition_by="part", ordering="ts")
    table = Table(TableContext(context_of(table).storage, clock=SteppingClock(), uses_metadata=True))
    rows = History(table, "SIMPLE", 1).rows(list(range(20)), True)
    some = {
        "hoodie.metadata.index.column.stats.column.list": "price,name,_hoodie_file_name,nothing",
        "hoodie.metadata.index.partition.stats.enable": "false",
    }
    table.upsert(rows, options=QUIET | ENABLED | some)
    assert {*table.config.metadata_partitions} == {"column_stats", "files"}
    shown = table.inspect.metadata("column_stats").column("column").unique().to_pylist()
    assert sorted(shown) == sorted([*INDEXED_META, "name", "price"])
    table.upsert(rows, options=QUIET | ENABLED)
    assert {*table.config.metadata_partitions} == {"column_stats", "files", "partition_stats"}
    assert sorted(table.inspect.metadata("partition_stats").column("column").unique().to_pylist()) == sorted(
        shown
    )


@pytest.mark.parametrize("log_format", ["parquet", "avro"])
def test_no_log_file_is_read_for_its_statistics(log_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer has the rows: long texts, NaN, nulls, deletes and nested fields too."""
    schema = pa.schema(
        [*SCHEMA, ("at", pa.struct([("x", pa.float64()), ("when", pa.timestamp("us", "UTC"))]))]
    )
    table = create(schema, table_type=MOR, partition_by="part", ordering="ts")
    table = Table(TableContext(context_of(table).storage, clock=SteppingClock(), uses_metadata=True))
    history = History(table, "SIMPLE", 1)
    at = [{"x": nan, "when": 5}, None, {"x": None, "when": None}, {"x": -0.0, "when": 7}]
    first = history.rows([1, 2, 3, 4], True)
    columns = {"hoodie.metadata.index.column.stats.column.list": "id,name,price,part,at.x,at.when"}
    options = {**QUIET, **ENABLED, **columns, "hoodie.logfile.data.block.format": log_format}
    table.upsert(
        first.append_column(schema.field("at"), pa.array(at, schema.field("at").type)), options=options
    )
    long = first.append_column(schema.field("at"), pa.array(at[::-1], schema.field("at").type))
    long = long.set_column(
        first.schema.get_field_index("name"), "name", pa.array(["a" * 5000, None, "ç", "b"])
    )

    def refuse(*_: object) -> None:
        raise AssertionError("a log file is read back")

    with monkeypatch.context() as patched:
        patched.setattr(ReadSummaries, "_of_log", refuse)
        table.upsert(long, options=options)
        table.delete(first.slice(0, 1), options=options)
    assert kept(table, "column_stats") == built(table, ColumnStatsMaintainer())


def test_the_first_columns_get_statistics() -> None:
    table = create(SCHEMA, partition_by=(), ordering="ts")
    table = Table(TableContext(context_of(table).storage, clock=SteppingClock(), uses_metadata=True))
    few = {"hoodie.metadata.index.column.stats.max.columns.to.index": "2"}
    table.upsert(History(table, "SIMPLE", 1).rows([1, 2], True), options=QUIET | ENABLED | few)
    assert {*table.config.metadata_partitions} == {"column_stats", "files"}  # it has no partitions
    assert {"id", "name", *INDEXED_META} == {
        *table.inspect.metadata("column_stats").column("column").to_pylist()
    }


def test_a_restore_builds_the_statistics_of_the_same_columns_again() -> None:
    table = with_statistics(COW)
    history = History(table, "SIMPLE", 2)
    then = table.upsert(history.rows([1, 2, 70], True), options=QUIET).instant
    table.upsert(history.rows([3, 4, 71], True), options=QUIET)
    columns = {*table.inspect.metadata("column_stats").column("column").to_pylist()}
    table.savepoints.restore(then)
    assert {*table.inspect.metadata("column_stats").column("column").to_pylist()} == columns
    check(table)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_the_statistics_that_drawstring_keeps_rule_out_partitions_and_files(table_type: str) -> None:
    table = with_statistics(table_type)
    row = History(table, "SIMPLE", 3).rows([77], True).set_column(1, "name", [["z"]])
    table.upsert(row, options=QUIET)
    for where, by in (("id > 60", "partition_stats"), ("name > 'n9'", "column_stats")):
        scan = table.scan(where=where)
        assert {step.by: step.kept for step in scan.explain().steps}[by] == 1
        assert scan.to_arrow().num_rows == 1


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_the_writers_of_base_files_describe_them(table_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_statistics(table_type)

    def refuse(*_: object) -> None:
        raise AssertionError("a base file is read")

    with monkeypatch.context() as patch:
        patch.setattr(column_stats, "column_summaries", refuse)
        history = History(table, "SIMPLE", 4)
        table.bulk_insert(history.rows([101, 102], True), options=QUIET)
        table.upsert(history.rows([1, 2, 3, 103], True), options=QUIET)
        if table_type == MOR:
            table.services.compact()
        table.services.cluster()
    check(table)
