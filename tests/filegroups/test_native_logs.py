"""Tables of version 10, whose log files are Parquet files: what a write makes, and what else may be there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, MissingFileError, UnsupportedError
from drawstring.table import Table
from tests.support.rows import SCHEMA, held, rides
from tests.support.tables import AVRO_LOGS, COW, MOR, WITHOUT_SERVICES, create, store_of

PARTIAL = {"hoodie.spark.sql.merge.into.partial.updates": "true", **WITHOUT_SERVICES}
BASE = [("a", "rome", 1, 1.0), ("b", "rome", 1, 2.0), ("c", "rome", 1, 3.0)]
CDC = {"hoodie.table.cdc.enabled": "true"}
KEEP_ONE = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}


def table_of(path: Path | None = None, version: int = 10, **how: Any) -> Table:
    table = create(path=path, table_type=MOR, version=version, **how)
    table.insert(rides(*BASE), options=WITHOUT_SERVICES)
    return table


def names(table: Table) -> list[str]:
    """Return what the log files of the newest slice hold, and which of its instant's files each is."""
    (file_slice,) = table.inspect.files()
    return [log.status.name.partition(f"{log.instant}")[2] for log in file_slice.logs]


def log_paths(table: Table, root: Path) -> list[Path]:
    return [root / log.status.path for each in table.inspect.files() for log in each.logs]


def files(root: Path) -> dict[str, bytes]:
    """Return the data files of a table."""
    found = (path for path in root.rglob("*") if path.is_file() and ".hoodie" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def test_a_write_with_records_and_deletes_makes_a_file_of_each(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = create(schema, path=tmp_path / "t", table_type=MOR, version=10)
    rows = [dict(zip(schema.names, (*row, False), strict=True)) for row in BASE]
    table.insert(pa.Table.from_pylist(rows, schema), options=WITHOUT_SERVICES)
    changes = [{**rows[0], "ts": 2}, {**rows[1], "ts": 3, "_hoodie_is_deleted": True}]
    result = table.upsert(pa.Table.from_pylist(changes, schema), options=WITHOUT_SERVICES)

    (file_slice,) = table.inspect.files()
    prefix = f"{file_slice.file_id}_0-0-0_{result.instant}_1"
    data, deletes = f"{prefix}.log.parquet", f"{prefix}.deletes.parquet"
    assert [log.status.name for log in file_slice.logs] == [data, deletes]
    stats = store_of(table).commit_metadata(table.timeline.writes()[-1]).stats
    assert [(each.num_writes, each.num_updates, each.num_deletes) for each in stats] == [(1, 1, 0), (0, 0, 1)]
    assert [each.log_files for each in stats] == [(data,), (data, deletes)]
    assert pq.read_table(tmp_path / "t/rome" / deletes).to_pylist() == [{"_hoodie_record_key": "b", "ts": 3}]
    assert held(table) == [("a", "rome", 2, 1.0), ("c", "rome", 1, 3.0)]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_new_table_names_no_format_of_log_files(table_type: str) -> None:
    table = create(table_type=table_type, version=10)
    assert "hoodie.table.log.file.format" not in table.config.properties


def test_the_footers_say_what_the_files_hold(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert(rides(("a", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    own = {"parquet.avro.schema", "writer.model.name", "org.apache.hudi.bloomfilter"}
    own |= {"hoodie_bloom_filter_type_code", "hoodie_min_record_key", "hoodie_max_record_key"}
    for path, kind, key in zip(
        log_paths(table, tmp_path / "t"), ("parquet_data", "delete"), ("a", "b"), strict=True
    ):
        stored = pq.read_metadata(path).metadata
        footer = {name.decode(): text.decode() for name, text in stored.items()}
        instant = footer["hudi.log.format.INSTANT_TIME"]
        assert set(footer) - own == {
            "hudi.log.format.VERSION",
            "hudi.log.format.INSTANT_TIME",
            "hudi.log.format.SCHEMA",
            "hudi.log.format.RECORD_POSITIONS",
            "hudi.log.format.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS",
            "hudi.log.format_version",
            "hudi.log.block_type",
            "hudi.log.instant_time",
            "hudi.log.record_positions",
            "hudi.log.base_file_instant_of_positions",
        }
        assert own <= set(footer)
        assert footer["hudi.log.format.VERSION"] == "2"
        assert footer["hudi.log.instant_time"] == instant
        assert f"_{instant}_" in path.name
        assert footer["hudi.log.block_type"] == kind
        assert footer["hoodie_min_record_key"] == footer["hoodie_max_record_key"] == key
        assert "_hoodie_commit_time" in footer["hudi.log.format.SCHEMA"]


def test_other_readers_of_parquet_read_the_log_files(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert(rides(("a", "rome", 2, 9.0), ("b", "rome", 2, 8.0)), options=WITHOUT_SERVICES)
    (path,) = log_paths(table, tmp_path / "t")

    assert pl.scan_parquet(path).filter(pl.col("fare") > 8).select("id", "fare").collect().rows() == [
        ("a", 9.0)
    ]
    assert duckdb.sql(f"SELECT id, fare FROM '{path}' WHERE fare > 8").fetchall() == [("a", 9.0)]
    found = ds.dataset(path).to_table(["id", "_hoodie_record_key"], filter=ds.field("ts") == 2)
    assert found.to_pydict() == {"id": ["a", "b"], "_hoodie_record_key": ["a", "b"]}


def test_deletes_have_the_generated_key_without_meta_columns_as_well(tmp_path: Path) -> None:
    table = table_of(
        tmp_path / "t",
        record_key=("id", "city"),
        properties={"hoodie.populate.meta.fields": "false"},
    )
    table.upsert(rides(("a", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    records, deletes = (pq.read_table(path) for path in log_paths(table, tmp_path / "t"))
    assert records.column("_hoodie_record_key").to_pylist() == [None]
    assert deletes.to_pylist() == [{"_hoodie_record_key": "id:b,city:rome", "ts": None}]
    assert held(table) == [("a", "rome", 2, 9.0), ("c", "rome", 1, 3.0)]


def test_partial_updates_and_new_rows_of_a_merge_go_to_files_of_their_own(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("note", pa.string()))
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = create(schema, path=tmp_path / "t", table_type=MOR, version=10, properties=properties)
    rows = [dict(zip(schema.names, (*row, "kept"), strict=True)) for row in BASE]
    table.insert(pa.Table.from_pylist(rows, schema), options=WITHOUT_SERVICES)
    source = rides(("a", "rome", 7, 70.0), ("n", "rome", 7, 70.0))
    merge = table.merge(source, on=["id", "city"], options=PARTIAL)
    merge = merge.when_matched_update({"fare": "source.fare", "ts": "source.ts"})
    done = merge.when_not_matched_insert({name: f"source.{name}" for name in SCHEMA.names}).execute()

    assert (done.inserts, done.updates, done.files) == (1, 1, 2)
    assert names(table) == ["_1.log.parquet", "_2.log.parquet"]
    some, whole = (pq.read_table(path) for path in log_paths(table, tmp_path / "t"))
    own = [name for name in some.column_names if name[:8] != "_hoodie_"]
    assert (own, some.column("fare").to_pylist()) == (["ts", "fare"], [70.0])
    assert whole.column("id").to_pylist() == ["n"]
    notes = table.scan(columns=["id", "ts", "note"]).to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in notes] == [
        ("a", 7, "kept"),
        ("b", 1, "kept"),
        ("c", 1, "kept"),
        ("n", 7, None),
    ]


@pytest.mark.parametrize("format_", ["avro", "parquet"])
def test_an_upgraded_table_has_log_files_of_both_formats_and_no_file_changes(
    tmp_path: Path, format_: str
) -> None:
    table = table_of(tmp_path / "t", version=9)
    options = {**WITHOUT_SERVICES, "hoodie.logfile.data.block.format": format_}
    table.upsert(rides(("a", "rome", 2, 20.0), ("b", "rome", 5, 50.0)), options=options)
    table.delete(rides(("c", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    before, then = files(tmp_path / "t"), table.timeline.latest_time()

    result = table.versions.upgrade(10)
    assert (result.old, result.new, result.compacted) == (9, 10, None)
    assert files(tmp_path / "t") == before

    table.upsert(rides(("a", "rome", 3, 30.0), ("b", "rome", 4, 40.0)), options=WITHOUT_SERVICES)
    assert names(table)[-1] == "_1.log.parquet"
    assert len(names(table)) == 3
    now = [("a", "rome", 3, 30.0), ("b", "rome", 5, 50.0)]
    assert held(table) == now
    assert held(table, as_of=then) == [("a", "rome", 2, 20.0), ("b", "rome", 5, 50.0)]
    assert table.services.log_compact(min_blocks=2)
    written = [name.rpartition("_")[2] for name in names(table)[-2:]]
    assert written == ["1.deletes.parquet", "2.log.parquet"]  # a record may have come after its delete
    assert held(table) == now
    assert table.services.compact()
    assert held(table) == now
    assert table.services.validate().findings == ()


def test_a_downgrade_compacts_native_log_files(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert(rides(("a", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    writes = table.timeline.writes()

    result = table.versions.downgrade(9)

    assert (result.old, result.new, bool(result.compacted)) == (10, 9, True)
    assert held(table) == [("a", "rome", 2, 9.0), BASE[2]]
    assert names(table) == []
    assert held(table, as_of=writes[-2].requested) == [("a", "rome", 2, 9.0), *BASE[1:]]
    table.upsert(rides(("a", "rome", 3, 8.0)), options={**WITHOUT_SERVICES, **AVRO_LOGS})
    assert names(table) == [".log.1_0-0-0"]
    assert held(table) == [("a", "rome", 3, 8.0), BASE[2]]


def test_a_downgrade_that_would_lose_changes_is_refused(tmp_path: Path) -> None:
    table = create(path=tmp_path / "t", table_type=COW, version=10, properties=CDC)
    table.insert(rides(*BASE), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
    (change_log,) = (tmp_path / "t/rome").glob("*.cdc.parquet")
    for attempt in (table.versions.downgrade, table.versions.plan):
        with pytest.raises(UnsupportedError, match="change logs") as refused:
            attempt(9)
        assert refused.value.path == f"rome/{change_log.name}"
    assert table.config.version == 10

    table.upsert(rides(("a", "rome", 3, 9.0)), options=WITHOUT_SERVICES)
    for path in (tmp_path / "t/rome").glob("*.cdc.parquet"):
        path.unlink()
    assert table.versions.downgrade(9).new == 9


@pytest.mark.parametrize("mode", ["DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"])
def test_change_logs_are_parquet_files_and_tell_the_same(tmp_path: Path, mode: str) -> None:
    found = []
    for version in (9, 10):
        properties = {**CDC, "hoodie.table.cdc.supplemental.logging.mode": mode}
        table = create(path=tmp_path / str(version), table_type=COW, version=version, properties=properties)
        table.insert(rides(*BASE), options=WITHOUT_SERVICES)
        table.upsert(rides(("a", "rome", 2, 9.0), ("n", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
        table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
        changes = table.changes("earliest").to_arrow().to_pylist()
        found.append([(row["op"], image(row["before"]), image(row["after"])) for row in changes])
    assert found[0] == found[1]
    paths = sorted((tmp_path / "10/rome").glob("*_1.cdc.parquet"))
    assert len(paths) == 2
    (first, *_) = paths
    footer = pq.read_metadata(first).metadata
    assert footer[b"hudi.log.block_type"] == b"cdc"
    assert footer[b"parquet.avro.schema"] == footer[b"hudi.log.format.SCHEMA"]
    assert sorted(pq.read_table(first).column("op").to_pylist()) in (["i", "u"], ["d"])


def image(text: str | None) -> dict[str, Any]:
    return {name: value for name, value in json.loads(text or "{}").items() if name in SCHEMA.names}


def test_incremental_and_change_queries_see_each_write(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert(rides(("a", "rome", 2, 9.0), ("d", "rome", 2, 7.0)), options={**WITHOUT_SERVICES})
    table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    inserted, updated, deleted = (each.completed or "" for each in table.timeline.writes())
    rows = table.incremental(inserted, updated, columns=["id", "fare"]).to_arrow().sort_by("id")
    assert rows.to_pydict() == {"id": ["a", "d"], "fare": [9.0, 7.0]}
    changes = table.changes(updated, deleted).to_arrow().to_pylist()
    assert [(row["op"], image(row["before"])["id"], row["after"]) for row in changes] == [("d", "b", None)]


def test_late_records_and_late_deletes_lose(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = create(schema, path=tmp_path / "t", table_type=MOR, version=10)
    for ts, fare, gone in ((5, 5.0, False), (7, 7.0, False), (6, 6.0, True), (3, 3.0, False)):
        rows = pa.Table.from_pylist(
            [dict(zip(schema.names, ("a", "rome", ts, fare, gone), strict=True))], schema
        )
        table.upsert(rows, options=WITHOUT_SERVICES)
        found = held(table)
        assert found == [("a", "rome", max(ts, found[0][2]), max(fare, found[0][3]))]
    assert found == [("a", "rome", 7, 7.0)]
    assert table.services.log_compact(min_blocks=2)
    assert held(table) == found


def test_a_key_is_looked_up_without_the_log_files_that_cannot_have_it(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert(rides(("a", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("b", "rome", 2, 8.0)), options=WITHOUT_SERVICES)
    other = log_paths(table, tmp_path / "t")[1]
    data = bytearray(other.read_bytes())
    pages = pq.read_metadata(other).row_group(0).column(0)
    data[4 : 4 + pages.total_compressed_size] = bytes(pages.total_compressed_size)
    other.write_bytes(data)

    assert table.scan(where="id = 'a'", columns=["fare"]).to_arrow().to_pydict() == {"fare": [9.0]}
    with pytest.raises(CorruptTableError) as damaged:
        table.scan().to_arrow()
    assert damaged.value.path == f"rome/{other.name}"


def test_a_log_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.upsert(rides(("a", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
    (path,) = log_paths(table, tmp_path / "t")
    path.unlink()

    with pytest.raises(MissingFileError, match="missing"):
        drawstring.open(tmp_path / "t").scan().to_arrow()
    assert [each.check for each in table.services.validate().findings] == ["missing"]


def test_a_restore_deletes_the_files_of_later_writes(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    before, saved = files(tmp_path / "t"), table.savepoints.create()
    table.upsert(rides(("a", "rome", 2, 9.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("b", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    table.savepoints.restore(saved)
    assert files(tmp_path / "t") == before
    assert held(table) == BASE
