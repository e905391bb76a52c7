"""Going on with tables that real Hudi wrote, or leaving them alone where that would break them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.schema.fields import META_COLUMNS
from drawstring.table import Table
from tests.support.combinations import others_long
from tests.support.golden import NAMES, TABLES, golden_table, of_each_kind
from tests.support.golden_rows import in_order, rows_of
from tests.support.interrupted import in_no_time

BUCKETED = ("idx_bucket_cow", "idx_bucket_hash_field", "mor_log_only", "idx_consistent")
"""Tables that were written with the bucket index, which their properties do not say."""

OTHERWISE = (
    "cow_empty_table",
    "clustering_pending",
    "idx_bucket_partition_level",
    "idx_consistent_dual_write",
    "timestamp_keygen",
    "cow_keyless",
    "cow_no_meta_fields",
    "drop_partition_columns",
    "custom_keygen",
)
"""Tables that have tests of their own."""


def matching(known: Any, name: str) -> Any:
    return next((key for key in known if key in name), None)


GOES_ON = [name for name in NAMES if matching(OTHERWISE, name) is None]


def all_files(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"
    }


def options_of(name: str) -> dict[str, str]:
    part = matching(BUCKETED, name)
    if part is None:
        return {}
    written: dict[str, str] = json.loads((TABLES / f"{name}.json").read_text())["options"]
    return {
        key: value
        for key, value in written.items()
        if "bucket.index" in key or key in ("hoodie.index.type", "hoodie.index.bucket.engine")
    }


def data(table: Table) -> pa.Table:
    return table.scan().to_arrow().drop_columns(META_COLUMNS)


def changed(table: Table, rows: pa.Table) -> pa.Table:
    """Return rows with other values in a column that is neither key nor partition column."""
    config = table.config
    fixed = {*config.record_key_fields, *config.partition_fields}
    free = [name for name in rows.column_names if name not in (*fixed, *config.ordering_fields)]
    for name in (*free, *config.ordering_fields):
        field = rows.schema.field(name)
        if field.type in (pa.string(), pa.float64(), pa.int64(), pa.int32()):
            value = pa.scalar("changed" if field.type == pa.string() else 4_000_000).cast(field.type)
            return rows.set_column(rows.schema.get_field_index(name), field, pa.repeat(value, len(rows)))
    raise AssertionError("no column to change")


def renamed(table: Table, rows: pa.Table) -> pa.Table:
    """Return rows with other record keys."""
    name = table.config.record_key_fields[0]
    keys = rows.column(name)
    new = pc.binary_join_element_wise(keys, "new", "-") if keys.type == pa.string() else pc.add(keys, 900_000)
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), new.cast(keys.type))


def plain(*tables: pa.Table) -> list[str]:
    return [row for table in tables for row in in_order(rows_of(table))]


@pytest.mark.parametrize("name", others_long(GOES_ON, of_each_kind(GOES_ON)))
def test_writes_go_on_where_real_hudi_stopped(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    options = options_of(name)
    before = data(table)
    last = table.timeline.latest_write()
    updates, gone, fresh = (
        changed(table, before.slice(0, 3)),
        before.slice(3, 1),
        renamed(table, before.slice(0, 2)),
    )
    table.upsert(pa.concat_tables([updates, fresh]), options=options)
    table.delete(gone, options=options)
    expected = sorted(plain(updates, before.slice(4), fresh))
    assert sorted(plain(data(table))) == expected
    if table.config.is_merge_on_read:
        table.services.compact()
        assert sorted(plain(data(table))) == expected
    assert last is not None
    then = table.scan(columns=before.column_names, as_of=last.requested).to_arrow()
    assert sorted(plain(then)) == sorted(plain(before))


@pytest.mark.parametrize("name", ["v9_cow_timestamp_keygen_sql", "v9_mor_timestamp_keygen_sql"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_writes_go_on_where_spark_sql_made_texts_of_partition_numbers(
    name: str, kind: pa.DataType, tmp_path: Path
) -> None:
    table = golden_table(name, tmp_path)
    known, other = 1_704_477_600_000, 1_740_801_906_000
    schema = pa.schema([("id", pa.int32()), ("v", pa.string()), ("ts", pa.int64()), ("part", kind)])
    rows = pa.table([[1, 9], ["up", "new"], [5, 5], pa.array([known, other]).cast(kind)], schema=schema)
    table.upsert(rows)
    where = {"id": [1, 3, 9], "v": ["up", "c", "new"], "part": [known, 1_720_202_400_120, other]}
    found = data(table).select(list(where)).sort_by("id").to_pydict()
    assert found == where | {"part": list(map(str, where["part"]))}
    paths = table.scan(columns=["_hoodie_partition_path"]).to_arrow().column(0).to_pylist()
    assert sorted(paths) == ["2024-01-05", "2024-07-05", "2025-03-01"]
    table.update("id = 9", {"v": "'z'"})
    table.delete(rows.slice(0, 1).select(["id", "part"]))
    if table.config.is_merge_on_read:
        table.services.compact()
    assert data(table).select(["id", "v"]).sort_by("id").to_pydict() == {"id": [3, 9], "v": ["c", "z"]}
    with pytest.raises(InvalidError, match=r"'2024-01-05', which is not an integer\. Give it as EPOCHMILLI"):
        table.upsert(pa.table([[1], ["a"], [9], ["2024-01-05"]], names=schema.names))


def test_a_table_that_real_hudi_left_empty_takes_its_first_rows(tmp_path: Path) -> None:
    table = golden_table("v9_cow_empty_table", tmp_path)
    rows = data(golden_table("v9_cow_ops", tmp_path)).select(table.schema.names)
    table.upsert(rows)
    assert sorted(plain(data(table))) == sorted(plain(rows))


@pytest.mark.parametrize("name", ["v6_cow_clustering_pending", "v9_cow_clustering_pending"])
def test_file_groups_in_a_pending_clustering_are_not_touched(name: str, tmp_path: Path) -> None:
    table = in_no_time(golden_table(name, tmp_path))
    rows = data(table)
    for write in (table.upsert, table.delete, table.insert_overwrite, table.insert_overwrite_table):
        with pytest.raises(ConflictError, match="part of a pending clustering") as caught:
            write(rows)
        assert caught.value.table == table.uri
        assert sorted(plain(data(table))) == sorted(plain(rows))
    fresh = renamed(table, rows.slice(0, 2))
    table.upsert(fresh)
    assert sorted(plain(data(table))) == sorted(plain(rows, fresh))


@pytest.mark.parametrize("name", ["v9_idx_expression", "v8_idx_expression"])
def test_partitions_of_a_metadata_table_that_are_not_maintained_are_dropped_before_a_write(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = golden_table(name, tmp_path)
    definitions = tmp_path / name / ".hoodie/.index_defs/index.json"
    definitions.write_text(
        definitions.read_text().replace('"upper"', '"split"')
    )  # a function that is not kept
    with caplog.at_level(logging.WARNING, "drawstring"):
        table.upsert(changed(table, data(table).slice(0, 2)))
    kept = ["column_stats", "expr_index_idx_cs", "files", "partition_stats"]
    assert f"maintains only {', '.join(kept)}" in caplog.text
    assert sorted(table.config.metadata_partitions) == kept
    assert sorted(path.name for path in (tmp_path / name / ".hoodie/metadata").glob("[a-z]*")) == kept


def test_a_refused_call_leaves_the_metadata_table_alone(tmp_path: Path) -> None:
    table = golden_table("v9_mdt_cow", tmp_path)
    key = table.config.record_key_fields[0]
    rows = data(table)
    for wrong in (
        lambda: table.upsert(rows.drop_columns([key])),
        lambda: table.upsert(rows, options={"hoodie.index.type": "SIMPEL"}),
        lambda: table.services.compact(),
    ):
        before = all_files(tmp_path)
        with pytest.raises((InvalidError, UnsupportedError)):
            wrong()
        assert all_files(tmp_path) == before


@pytest.mark.parametrize("name", ["v6_idx_bucket_cow", "v9_idx_bucket_cow", "v9_idx_bucket_partition_level"])
@pytest.mark.parametrize("buckets", ["2", "3", "8", "256"])
def test_a_wrong_number_of_buckets_is_noticed(name: str, buckets: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    rows = data(table)
    with pytest.raises(InvalidError, match=r"hoodie\.bucket\.index\.num\.buckets"):
        table.upsert(
            rows, options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": buckets}
        )
    assert sorted(plain(data(table))) == sorted(plain(rows))


def test_a_bucketed_table_is_not_taken_for_one_without(tmp_path: Path) -> None:
    table = golden_table("v9_idx_bucket_cow", tmp_path)
    with pytest.raises(InvalidError, match=r"Set hoodie\.index\.type=BUCKET"):
        table.upsert(data(table))
    assert table.upsert(data(table), options={"hoodie.index.type": "SIMPLE"}).instant
