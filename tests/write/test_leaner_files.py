"""Tables whose files hold less: no meta columns, no partition columns."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.table import Table
from tests.support.golden import golden_table
from tests.support.rows import arrow_rows, scanned
from tests.support.tables import COW, MOR, create

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("fare", pa.float64())])
META_FIELDS = "hoodie.populate.meta.fields"
DROPPED = "hoodie.datasource.write.drop.partition.columns"
SLASHED = "hoodie.datasource.write.slash.separated.date.partitioning"
TYPE = "hoodie.datasource.write.keygenerator.type"


def held(table: Table, **how: Any) -> list[tuple[Any, ...]]:
    return scanned(table, SCHEMA.names, **how)


def go_through(table: Table, **options: str) -> None:
    """Write with every operation and compare after each."""
    table.insert(
        arrow_rows(SCHEMA, ("a", "rome", 1, 1.0), ("b", "rome", 2, 2.0), ("c", "oslo", 1, 3.0)),
        options=options,
    )
    table.bulk_insert(arrow_rows(SCHEMA, ("d", "oslo", 1, 4.0)), options=options)
    assert held(table) == [
        ("a", "rome", 1, 1.0),
        ("b", "rome", 2, 2.0),
        ("c", "oslo", 1, 3.0),
        ("d", "oslo", 1, 4.0),
    ]
    table.upsert(
        arrow_rows(SCHEMA, ("a", "rome", 2, 1.5), ("b", "rome", 1, 9.0), ("e", "rome", 1, 5.0)),
        options=options,
    )
    assert held(table, where="city = 'rome'") == [
        ("a", "rome", 2, 1.5),
        ("b", "rome", 2, 2.0),
        ("e", "rome", 1, 5.0),
    ]
    table.delete(arrow_rows(SCHEMA, ("c", "oslo", 9, 0.0), ("a", "rome", 9, 0.0)), options=options)
    expected = [("b", "rome", 2, 2.0), ("d", "oslo", 1, 4.0), ("e", "rome", 1, 5.0)]
    assert held(table) == expected
    if table.config.is_merge_on_read:
        table.services.compact()
        assert held(table) == expected
    table.upsert(arrow_rows(SCHEMA, ("d", "oslo", 2, 4.5)), options=options)
    table.insert_overwrite(arrow_rows(SCHEMA, ("z", "rome", 1, 7.0)), options=options)
    assert held(table) == [("d", "oslo", 2, 4.5), ("z", "rome", 1, 7.0)]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "parquet", "avro"])
def test_a_table_without_meta_columns_knows_rows_by_their_key_columns(version: int, kind: str) -> None:
    logs = {} if kind == "cow" else {"hoodie.logfile.data.block.format": kind}
    table = create(
        SCHEMA, version=version, table_type=MOR if logs else COW, properties={META_FIELDS: "false"}
    )
    go_through(table, **logs)
    assert table.scan().schema.names == SCHEMA.names


@pytest.mark.parametrize(
    "more", [{"partition_by": ()}, {"properties": {TYPE: "COMPLEX"}}, {"record_key": ["id", "fare"]}]
)
def test_other_keys_without_meta_columns(more: dict[str, Any]) -> None:
    properties = {META_FIELDS: "false"} | more.pop("properties", {})
    table = create(SCHEMA, **more, version=8, properties=properties)
    table.insert(arrow_rows(SCHEMA, ("a", "rome", 1, 1.0), ("b", "rome", 1, 2.0)))
    table.upsert(arrow_rows(SCHEMA, ("a", "rome", 2, 1.0), ("c", "rome", 1, 3.0)))
    assert held(table) == [("a", "rome", 2, 1.0), ("b", "rome", 1, 2.0), ("c", "rome", 1, 3.0)]


def test_files_have_the_meta_columns_empty(tmp_path: Path) -> None:
    table = create(SCHEMA, str(tmp_path / "t"), properties={META_FIELDS: "false"})
    table.insert(arrow_rows(SCHEMA, ("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)))
    table.upsert(arrow_rows(SCHEMA, ("a", "rome", 2, 2.0)))
    for file in (tmp_path / "t/rome").glob("*.parquet"):
        rows = pq.ParquetFile(file)
        assert rows.schema_arrow.names[:5] == [f"_hoodie_{name}" for name in META]
        assert {c.null_count for c in rows.read().select(rows.schema_arrow.names[:5]).columns} == {2}
        assert b"org.apache.hudi.bloomfilter" not in rows.metadata.metadata


META = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("partition_by", ["city", ["city", "fare_class"]])
def test_dropped_partition_columns_come_back_from_the_paths(
    version: int, partition_by: Any, tmp_path: Path
) -> None:
    if partition_by == "city":
        table = create(SCHEMA, str(tmp_path / "t"), version=version, properties={DROPPED: "true"})
        go_through(table)
        files = list((tmp_path / "t/rome").glob("*.parquet"))
        assert all("city" not in pq.ParquetFile(file).schema_arrow.names for file in files)
        return
    schema = SCHEMA.append(pa.field("fare_class", pa.string()))
    table = drawstring.create(
        str(tmp_path / "t"), schema, record_key="id", partition_by=partition_by, version=version,
        properties={DROPPED: "true", "hoodie.datasource.write.hive_style_partitioning": "true"},
    )  # fmt: skip
    table.insert(arrow_rows(SCHEMA, ("a", "rome", 1, 1.0)).append_column("fare_class", pa.array(["x"])))
    found = table.scan(columns=["id", *partition_by], where="fare_class = 'x'").to_arrow().to_pylist()
    assert found == [{"id": "a", "city": "rome", "fare_class": "x"}]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_log_files_lack_dropped_partition_columns_as_well(version: int, kind: str, tmp_path: Path) -> None:
    table = create(SCHEMA, str(tmp_path / "t"), version=version, table_type=MOR, properties={DROPPED: "true"})
    go_through(table, **{"hoodie.logfile.data.block.format": kind})
    assert list((tmp_path / "t").glob("*/.*.log.*"))
    files = list((tmp_path / "t/rome").glob("*.parquet"))
    assert files and all("city" not in pq.ParquetFile(file).schema_arrow.names for file in files)
    table.services.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "fare"})
    assert held(table, where="city = 'rome'") == [("z", "rome", 1, 7.0)]
    changes = table.incremental("earliest", columns=["id", "city"]).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in changes) == [("d", "oslo"), ("z", "rome")]


@pytest.mark.parametrize(
    ("properties", "more", "kind", "text"),
    [
        ({META_FIELDS: "false"}, {"record_key": ()}, InvalidError, "needs key columns"),
        ({META_FIELDS: "false", TYPE: "CUSTOM"}, {"partition_by": "city:SIMPLE"}, InvalidError, "needs key"),
        (
            {META_FIELDS: "false", "hoodie.table.cdc.enabled": "true"},
            {},
            InvalidError,
            "does not support change queries",
        ),
        ({DROPPED: "true"}, {"partition_by": ()}, InvalidError, "needs partition columns"),
        ({DROPPED: "true", SLASHED: "true"}, {}, InvalidError, "slash-separated"),
        ({DROPPED: "true"}, {"partition_by": "id"}, InvalidError, "would drop id"),
        ({DROPPED: "true"}, {"partition_by": "fare"}, InvalidError, "Make it a string"),
    ],
)
def test_contradictions_are_refused(
    properties: dict[str, str], more: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        create(SCHEMA, **more, properties=properties)


def test_a_global_index_is_refused_and_a_bloom_index_taken_as_simple() -> None:
    table = create(SCHEMA, properties={META_FIELDS: "false"})
    row = arrow_rows(SCHEMA, ("a", "rome", 1, 1.0))
    table.upsert(row, options={"hoodie.index.type": "BLOOM"})
    table.upsert(row, options={"hoodie.index.type": "BLOOM"})
    assert held(table) == [("a", "rome", 1, 1.0)]
    for leaner in (table, create(SCHEMA, properties={DROPPED: "true"})):
        with pytest.raises(UnsupportedError, match="GLOBAL_SIMPLE is not available yet"):
            leaner.upsert(row, options={"hoodie.index.type": "GLOBAL_SIMPLE"})


def test_a_table_keeps_what_its_files_hold() -> None:
    table = create(SCHEMA, properties={META_FIELDS: "false"})
    row = arrow_rows(SCHEMA, ("a", "rome", 1, 1.0))
    table.insert(row, options={META_FIELDS: "false"})
    with pytest.raises(InvalidError, match="meta columns True but the table has False"):
        table.insert(row, options={META_FIELDS: "true"})
    with pytest.raises(InvalidError, match="dropping partition columns True"):
        table.insert(row, options={DROPPED: "true"})


NAMES = (
    "v8_cow_no_meta_fields",
    "v9_cow_no_meta_fields",
    "v6_cow_drop_partition_columns",
    "v9_cow_drop_partition_columns",
)


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_real_hudi_go_on(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    columns = [name for name in table.scan().schema.names if not name.startswith("_hoodie_")]
    before = table.scan(columns=columns).to_arrow().sort_by("id")
    price = before.schema.get_field_index("price")
    late = before.slice(0, 3)
    newer = late.set_column(price, "price", pa.array([9.5] * 3)).set_column(
        before.schema.get_field_index("ts"), "ts", pa.array([10**9] * 3)
    )
    table.upsert(newer)
    table.delete(before.slice(3, 1))
    after = table.scan(columns=columns).to_arrow().sort_by("id")
    assert after.equals(pa.concat_tables([newer, before.slice(4)]).cast(after.schema))


def test_a_merge_on_read_table_of_real_hudi_goes_on(tmp_path: Path) -> None:
    # Hudi 1.2.0: two inserts, an update, a delete, a compaction, an insert and an update. The base files of
    # the compaction and the log blocks of the updates have the partition column, mostly null; others lack it.
    packed = Path(__file__).with_name("data") / "v9_mor_without_partition_columns.zip"
    zipfile.ZipFile(packed).extractall(tmp_path)
    table = drawstring.open(tmp_path)
    columns = ["id", "name", "price", "ts", "dt"]
    kept = [(2, "a2", 31.0, 1003, "d1"), (5, "a5", 50.0, 1000, "d1")]
    twice = [(1, "a1", 10.0, 1000, "d1"), (1, "b1", 11.0, 1001, "d1")]
    assert scanned(table, columns) == sorted([*twice, *kept, (4, "a4", 40.0, 1000, "d2")])
    schema = table.schema
    late, new = (2, "late", 0.0, 1, "d1"), (7, "n7", 7.0, 1, "d3")
    table.upsert(arrow_rows(schema, (1, "u1", 99.0, 2000, "d1"), new, late))
    table.delete(arrow_rows(schema, (4, "x", 0.0, 3000, "d2")))
    for _ in range(2):
        assert scanned(table, columns) == [(1, "u1", 99.0, 2000, "d1"), *kept, new]
        assert scanned(table, columns, where="dt = 'd1' AND price < 40") == [kept[0]]
        table.services.compact()
