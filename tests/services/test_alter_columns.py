"""Renaming, dropping, adding, moving and widening columns of tables with files of before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.query.table_state import facts_of
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.tables import WITHOUT_SERVICES

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("name", pa.string()),
        ("at", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("ts", pa.int64()),
    ]
)
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
LSM = {"hoodie.table.storage.layout": "lsm_tree"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
KINDS = {
    "cow": ("COPY_ON_WRITE", 9, {}),
    "mor": ("MERGE_ON_READ", 9, {}),
    "lsm": ("MERGE_ON_READ", 10, LSM),
    "cow-6": ("COPY_ON_WRITE", 6, {}),
    "mor-6": ("MERGE_ON_READ", 6, {}),
    "mor-buckets-8": ("MERGE_ON_READ", 8, BUCKETS),
}


def old(number: int, ts: int = 1) -> dict[str, Any]:
    at = {"x": number, "y": f"y{number}"}
    return {"id": number, "city": f"c{number % 2}", "n": number, "name": f"name{number}", "at": at, "ts": ts}


def new(key: int, ts: int = 1, /, **values: Any) -> dict[str, Any]:
    """Return a row of before as it is after the changes."""
    at = {"xx": key, "y": f"y{key}"}
    row = {"n": None, "id": key, "name": None, "city": f"c{key % 2}", "number": key, "at": at, "ts": ts}
    return {**row, **values}


def begun(path: Path, kind: str = "mor", **more: Any) -> Table:
    table_type, version, properties = KINDS[kind]
    table = drawstring.create(
        path,
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
        version=version,
        properties={**properties, **more},
    )
    table.insert(pa.Table.from_pylist([old(number) for number in range(1, 5)], SCHEMA))
    table.upsert(pa.Table.from_pylist([old(2, 2)], SCHEMA))
    return table


def alter(table: Table) -> None:
    table.columns.rename("n", "number", options=WITHOUT_SERVICES)
    table.columns.change_type("number", pa.int64(), options=WITHOUT_SERVICES)
    table.columns.drop("name", options=WITHOUT_SERVICES)
    table.columns.rename("at.x", "xx", options=WITHOUT_SERVICES)
    table.columns.add("name", pa.int64(), after="id", options=WITHOUT_SERVICES)
    table.columns.add("n", pa.string(), first=True, options=WITHOUT_SERVICES)


def rows(table: Table, where: str | None = None, **more: Any) -> list[dict[str, Any]]:
    found = table.scan(columns=table.schema.names, where=where, **more).to_arrow()
    return sorted(found.to_pylist(), key=lambda each: each["id"])


@pytest.mark.parametrize("kind", KINDS)
def test_old_files_are_read_by_the_ids_of_columns_and_written_on(tmp_path: Path, kind: str) -> None:
    table = begun(tmp_path / "t", kind)
    before = table.timeline.writes()[-1].requested
    alter(table)
    expected = [new(1), new(2, 2), new(3), new(4)]
    assert table.schema.names == ["n", "id", "name", "city", "number", "at", "ts"]
    assert rows(table) == expected
    assert rows(table, "number = 2 and name is null") == [expected[1]]
    ours = [new(3, 5, n="n3", name=3, number=1 << 40), new(5, 1, n="n5")]
    table.upsert(pa.Table.from_pylist(ours, table.schema), options=WITHOUT_SERVICES)
    table.delete(where="number = 4", options=WITHOUT_SERVICES)
    expected = [new(1), new(2, 2), *ours]
    assert rows(table) == expected
    if table.config.is_merge_on_read:
        assert table.services.compact()
        assert rows(table) == expected
    if kind != "mor-buckets-8":
        assert table.services.cluster()
        assert rows(table) == expected
    assert not table.services.validate().findings
    then = table.scan(columns=SCHEMA.names, as_of=before).to_arrow().to_pylist()
    assert sorted(then, key=lambda each: each["id"]) == [old(1), old(2, 2), old(3), old(4)]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_large_file_is_rewritten_by_ids_although_its_columns_seem_the_same(
    tmp_path: Path, kind: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.string())])
    table = drawstring.create(tmp_path / "t", schema, record_key="id", table_type=KINDS[kind][0])
    count = 10_000
    table.insert(pa.table([list(range(count)), ["a"] * count, ["b"] * count], schema=schema))
    table.columns.rename("a", "c")
    table.columns.rename("b", "a")
    table.columns.rename("c", "b")  # the names of before, each for the other column
    assert table.schema.names == ["id", "b", "a"]
    table.upsert(pa.table([[7], ["new b"], ["new a"]], schema=table.schema))
    if kind == "mor":
        table.services.compact()
    table.services.cluster()
    found = table.scan(columns=["id", "a", "b"], where="id in (7, 8)").to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 7, "a": "new a", "b": "new b"}, {"id": 8, "a": "b", "b": "a"}]


def test_files_that_seem_alike_are_not_stitched_together(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.string())])
    table = drawstring.create(tmp_path / "t", schema, record_key="id")
    one_file = {"hoodie.parquet.small.file.limit": "0"}
    count = 50_000
    table.insert(pa.table([list(range(count)), [f"old {n}" for n in range(count)]], schema=schema))
    table.columns.drop("a")
    table.columns.add("a", pa.string())
    later = range(count, 2 * count)
    table.insert(pa.table([list(later), [f"new {n}" for n in later]], schema=schema), options=one_file)
    assert table.services.cluster()
    values = table.scan(columns=["id", "a"]).to_arrow().sort_by("id").column("a")
    assert values[:count].null_count == count
    assert values[count:].to_pylist() == [f"new {n}" for n in later]


def test_a_compaction_planned_before_a_change_has_the_columns_of_its_time(tmp_path: Path) -> None:
    table = begun(tmp_path / "t")
    planned = table.services.schedule_compaction()
    alter(table)
    table.services.compact(planned)
    assert rows(table) == [new(1), new(2, 2), new(3), new(4)]
    table.upsert(pa.Table.from_pylist([new(2, 3, n="x")], table.schema))
    assert rows(table) == [new(1), new(2, 3, n="x"), new(3), new(4)]


def test_a_write_that_adds_a_column_of_a_dropped_name_does_not_revive_its_values(tmp_path: Path) -> None:
    table = begun(tmp_path / "t", "cow")
    table.columns.drop("name")
    row = {"id": 1, "city": "c1", "n": 1, "at": None, "ts": 9, "name": "again"}
    kinds = pa.schema([*table.schema, ("name", pa.string())])
    table.upsert(pa.Table.from_pylist([row], kinds))
    assert [each["name"] for each in rows(table)] == ["again", None, None, None]


def test_rows_with_the_old_name_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = begun(tmp_path / "t")
    table.columns.rename("n", "number")
    writes = len(table.timeline.writes())
    with pytest.raises(InvalidError, match="The rows lack columns of the table: number"):
        table.upsert(pa.Table.from_pylist([old(1, 9)], SCHEMA))
    assert len(table.timeline.writes()) == writes


def test_every_commit_has_the_versions_so_that_they_outlive_archiving(tmp_path: Path) -> None:
    table = begun(tmp_path / "t", "cow")
    table.columns.rename("n", "number")
    for ts in range(10, 18):
        table.upsert(pa.Table.from_pylist([{**old(1, ts), "number": ts}], table.schema), options=SHORT)
    names = sorted(path.name for path in (tmp_path / "t/.hoodie/.schema").glob("*.schemacommit"))
    kept = [each.requested for each in table.timeline.writes()]
    having = [name.partition("_")[0] for name in names]
    assert having[-len(kept) :] == kept and len(having) < 9
    newest = facts_of(context_of(table)).store.commit_metadata(table.timeline.writes()[-1]).extra
    assert [field["name"] for field in json.loads(newest["latest_schema"])["fields"][5:8]] == [
        "id",
        "city",
        "number",
    ]
    assert [each["number"] for each in rows(drawstring.open(tmp_path / "t"))] == [17, 2, 3, 4]


@pytest.mark.parametrize("kind", ["mor", "mor-6", "cow"])
def test_a_savepoint_has_the_versions_when_archiving_has_passed_it(tmp_path: Path, kind: str) -> None:
    table = begun(tmp_path / "t", kind)
    table.columns.rename("n", "number")

    def write(ts: int) -> str:
        row = {**old(1, ts), "number": ts}
        return table.upsert(pa.Table.from_pylist([row], table.schema), options=SHORT).instant

    saved = table.savepoints.create(write(10))
    for ts in range(11, 18):
        write(ts)
    assert (table.timeline.start or "") > saved
    table.savepoints.restore(saved)
    assert [each["number"] for each in rows(drawstring.open(tmp_path / "t"))] == [10, 2, 3, 4]
    write(20)
    assert [each["number"] for each in rows(table)] == [20, 2, 3, 4]


def test_statistics_are_those_of_the_columns_that_have_the_names_now(tmp_path: Path) -> None:
    table = begun(tmp_path / "t", "cow")
    table.indexes.create("column_stats")
    table.columns.rename("n", "number")
    table.columns.add("n", pa.int64())
    assert "column_stats" not in table.config.metadata_partitions
    row = pa.Table.from_pylist([{**old(4, 2), "number": 4, "n": None}], table.schema)
    table.upsert(row, options={"hoodie.metadata.index.column.stats.enable": "true"})
    shown = [
        each
        for each in table.inspect.metadata("column_stats").to_pylist()
        if each["column"] in ("number", "n")
    ]
    assert {(each["column"], each["min"], each["nulls"]) for each in shown} == {
        ("n", None, 2),
        ("number", "1", 0),
        ("number", "2", 0),
    }
    assert rows(table, "number > 3") == [
        {**{k: v for k, v in old(4).items() if k != "n"}, "number": 4, "n": None, "ts": 2}
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.columns.drop("id"), "id is a column of the record key"),
        (lambda table: table.columns.rename("city", "town"), "city is a column of the partition path"),
        (lambda table: table.columns.change_type("ts", pa.string()), "ts is a column of the ordering"),
        (lambda table: table.columns.rename("_hoodie_record_key", "key"), "is a column of the table format"),
        (lambda table: table.columns.rename("n", "_hoodie_record_key"), "is a name of the table format"),
        (lambda table: table.columns.rename("n", "_HOODIE_operation"), "is a name of the table format"),
        (
            lambda table: table.columns.add("_hoodie_file_name", pa.string()),
            "is a column of the table format",
        ),
        (lambda table: table.columns.rename("n", "_hoodie_is_deleted"), "marks the rows to delete"),
        (lambda table: table.columns.add("_hoodie_is_deleted", pa.bool_()), "marks the rows to delete"),
        (lambda table: table.columns.add("z", pa.null()), "Column z cannot be null"),
        (lambda table: table.columns.add("z", "int"), "'int' is not a type of pyarrow"),
        (lambda table: table.columns.drop(None), "The name of a column is a text"),
        (
            lambda table: table.columns.add("z", pa.int32(), first=True, after="n"),
            "Both first=True and after",
        ),
        (lambda table: table.columns.move("n", first=True, after="id"), "Both first=True and after"),
        (lambda table: table.columns.rename("at.zz", "z"), "There is no field zz in at. There are x, y"),
        (lambda table: table.columns.rename("n", "n"), "table has these columns already"),
        (lambda table: table.columns.drop("gone"), "There is no column gone"),
    ],
)
def test_a_change_that_is_refused_leaves_no_trace(tmp_path: Path, change: Any, why: str) -> None:
    table = begun(tmp_path / "t")
    with pytest.raises(InvalidError, match=why):
        change(table)
    assert not (tmp_path / "t/.hoodie/.schema").exists()
    assert len(table.timeline.instants) == len(table.timeline.writes()) == 2


def test_a_field_of_a_struct_may_have_any_name(tmp_path: Path) -> None:
    table = begun(tmp_path / "t")
    table.columns.rename("at.x", "_hoodie_record_key")
    assert [each["at"]["_hoodie_record_key"] for each in rows(table)] == [1, 2, 3, 4]


def test_a_column_of_an_index_stays(tmp_path: Path) -> None:
    table = begun(tmp_path / "t")
    table.indexes.create("record_index")
    table.indexes.create("by_name", "name")
    with pytest.raises(InvalidError, match="secondary_index_by_name is of column name"):
        table.columns.drop("name")
    table.columns.rename("n", "number")
    table.upsert(pa.Table.from_pylist([{**old(3, 9), "number": 9, "name": "found"}], table.schema))
    assert [each["number"] for each in rows(table, "name = 'found'")] == [9]


@pytest.mark.parametrize("mode", ["data_before_after", "data_before", "op_key_only"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_logged_changes_show_the_columns_of_now(tmp_path: Path, kind: str, mode: str) -> None:
    logged = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
    table = begun(tmp_path / "t", kind, **logged)
    alter(table)
    ours = [new(3, 5, n="n3", name=3, number=1 << 40), new(5, 1, n="n5")]
    table.upsert(pa.Table.from_pylist(ours, table.schema), options=WITHOUT_SERVICES)
    table.delete(where="number = 4", options=WITHOUT_SERVICES)
    images = [
        tuple(each and of_columns(json.loads(each)) for each in (change["before"], change["after"]))
        for change in table.changes("earliest").to_arrow().to_pylist()
        if change["op"] != "i"
    ]
    expected = [
        (new(2, 1), new(2, 2)),
        (new(3), ours[0]),
        (new(4), None),
    ]
    assert sorted(images, key=lambda each: each[0]["id"]) == [
        tuple(each and of_columns(each) for each in pair) for pair in expected
    ]


def of_columns(image: dict[str, Any]) -> dict[str, Any]:
    """Return an image as all modes have it: without meta columns, and without nulls."""
    return {name: each for name, each in image.items() if each is not None and name[:8] != "_hoodie_"}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_columns_of_source_files_of_a_bootstrap_change_by_ids(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    for number in range(1, 5):
        folder = source / f"city=c{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        one = pa.Table.from_pylist([old(number)], SCHEMA).drop_columns(["city"])
        pq.write_table(one, folder / f"{number}.parquet")
    keys = {"record_key": "id", "partition_by": "city", "ordering": "ts", "table_type": kind}
    drawstring.bootstrap(tmp_path / "t", source, **keys)
    table = drawstring.open(tmp_path / "t")
    alter(table)
    assert {tuple(each.items()) for each in map(flattened, rows(table))} == {
        tuple(flattened({name: new(number)[name] for name in table.schema.names}).items())
        for number in range(1, 5)
    }
    ours = pa.Table.from_pylist([new(2, 3, n="ours", name=7)], table.schema)
    table.upsert(ours, options=WITHOUT_SERVICES)
    assert [(each["n"], each["name"], each["number"]) for each in rows(table)] == [
        (None, None, 1),
        ("ours", 7, 2),
        (None, None, 3),
        (None, None, 4),
    ]
    assert [each["id"] for each in rows(table, "number >= 3 and name is null")] == [3, 4]
    if kind == "MERGE_ON_READ":
        assert table.services.compact()
    assert table.services.cluster()
    assert [each["number"] for each in rows(table)] == [1, 2, 3, 4]
    assert not table.services.validate().findings


def flattened(row: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) for name, value in row.items()}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_the_mark_of_deletions_is_dropped_when_no_log_needs_it(tmp_path: Path, kind: str) -> None:
    table = begun(tmp_path / "t", kind)
    marked = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    gone = [{**old(1, 9), "_hoodie_is_deleted": True}, {**old(2, 9), "_hoodie_is_deleted": False}]
    table.upsert(pa.Table.from_pylist(gone, marked), options=WITHOUT_SERVICES)
    if kind == "mor":
        with pytest.raises(InvalidError, match="Compact the table first"):
            table.columns.drop("_hoodie_is_deleted")
        with pytest.raises(InvalidError, match="Compact the table first"):
            table.columns.rename("_hoodie_is_deleted", "was_deleted")
        table.services.compact()
    table.columns.drop("_hoodie_is_deleted")
    assert [each["id"] for each in rows(table)] == [2, 3, 4]


def test_changes_and_increments_show_the_columns_of_now(tmp_path: Path) -> None:
    table = begun(tmp_path / "t", "cow")
    table.columns.rename("n", "number")
    found = table.incremental("earliest", columns=["id", "number"]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": number, "number": number} for number in range(1, 5)]
    row = pa.Table.from_pylist([{**old(4, 9), "number": 44}], table.schema)
    table.upsert(row)
    (change,) = table.changes().to_arrow().to_pylist()
    before, after = json.loads(change["before"]), json.loads(change["after"])
    assert (before["number"], after["number"]) == (4, 44)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_that_are_read_while_another_writer_renames_their_column_are_refused(
    tmp_path: Path, kind: str
) -> None:
    table = begun(tmp_path / "t", kind)
    other = drawstring.open(tmp_path / "t")

    def rows_and_a_rename() -> Any:
        yield pa.RecordBatch.from_pylist([old(1, 9)], SCHEMA)
        other.columns.rename("n", "number", options=WITHOUT_SERVICES)
        yield pa.RecordBatch.from_pylist([{**old(7, 9), "n": 70}], SCHEMA)

    with pytest.raises(InvalidError, match="lack columns of the table: number"):
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, rows_and_a_rename()), options=WITHOUT_SERVICES)
    found = table.scan(columns=["id", "number"]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": number, "number": number} for number in range(1, 5)]
