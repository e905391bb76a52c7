"""Tables with the storage layout `lsm_tree`: every write leaves files that are sorted by record key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InternalError, InvalidError
from drawstring.cli.app import run
from drawstring.write import placement
from drawstring.write.placement import in_pieces
from tests.support.limits import SetLimits
from tests.support.rows import SCHEMA, held, rides
from tests.support.sorted_tables import (
    BUCKET,
    LSM,
    check_sorted,
    drawn,
    keys_of_files,
    sorted_table,
    unsorted_table,
)
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create, logs

LAYOUT = "hoodie.table.storage.layout"
RINGS = {**BUCKET, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


@pytest.mark.parametrize("index", [{}, {"hoodie.index.type": "GLOBAL_BLOOM"}, BUCKET, RINGS], ids=str)
def test_every_operation_writes_sorted_files(index: dict[str, str]) -> None:
    table = sorted_table(properties=index)
    steps: list[Callable[[], Any]] = [
        lambda: table.insert(drawn(1), options=WITHOUT_SERVICES),
        lambda: table.insert(drawn(2), options=WITHOUT_SERVICES),
        lambda: table.bulk_insert(drawn(3), options=WITHOUT_SERVICES),
        lambda: table.upsert(drawn(4, ts=2), options=WITHOUT_SERVICES),
        lambda: table.delete(drawn(5, 15), options=WITHOUT_SERVICES),
        lambda: table.update("fare > 20", {"fare": "fare + 1"}, options=WITHOUT_SERVICES),
        lambda: table.services.log_compact(min_blocks=2),
        lambda: table.upsert(drawn(6, ts=3), options=WITHOUT_SERVICES),
        table.services.compact,
        lambda: table.insert_overwrite(drawn(7), options=WITHOUT_SERVICES),
    ]
    if index is not BUCKET:
        steps.insert(7, table.services.cluster)
    for step in steps:
        assert step() is not None
        assert check_sorted(table)
    assert {each.severity.name for each in table.services.validate().findings} <= {"WARNING"}


@pytest.mark.parametrize("verb", ["insert", "bulk_insert", "insert_overwrite", "upsert"])
def test_rows_of_one_key_become_one_record(verb: str) -> None:
    table = sorted_table(partition_by=())
    twice = rides(("b", "x", 1, 1.0), ("a", "x", 2, 2.0), ("b", "x", 3, 3.0), ("b", "x", 2, 4.0))
    getattr(table, verb)(twice)
    assert held(table) == [("a", "x", 2, 2.0), ("b", "x", 3, 3.0)]


def test_an_insert_that_fills_a_small_file_merges_with_the_records_in_it() -> None:
    table = sorted_table()
    table.insert(rides(("b", "rome", 1, 1.0), ("d", "rome", 5, 5.0)), options=WITHOUT_SERVICES)
    new = rides(("c", "rome", 1, 1.0), ("b", "rome", 2, 2.0), ("d", "rome", 4, 4.0), ("a", "rome", 1, 1.0))
    table.insert(new, options=WITHOUT_SERVICES)
    assert len(table.inspect.files()) == 1
    assert check_sorted(table) == 2
    assert held(table) == [
        ("a", "rome", 1, 1.0), ("b", "rome", 2, 2.0), ("c", "rome", 1, 1.0), ("d", "rome", 5, 5.0),
    ]  # fmt: skip


def test_rows_that_do_not_fit_into_memory_are_sorted_on_disk(limit: SetLimits) -> None:
    limit(sort_bytes_max=512, piece_bytes_max=512)
    table = sorted_table()
    rows = drawn(1, 300)
    table.upsert(rows, options=WITHOUT_SERVICES)
    assert check_sorted(table) == 1
    assert len(held(table)) == len(set(rows.column("id").to_pylist()))


def test_a_write_that_does_not_fit_into_memory_becomes_one_sorted_log_file(
    monkeypatch: pytest.MonkeyPatch, limit: SetLimits
) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = sorted_table(schema, BUCKET)
    rows = [
        {"id": f"{number % 97:02}", "city": "rome", "ts": 1, "fare": 1.0, "_hoodie_is_deleted": False}
        for number in range(97)
    ]
    table.insert(pa.Table.from_pylist(rows, schema), options=WITHOUT_SERVICES)
    pieces: list[int] = []

    def noted(batches: Iterator[pa.RecordBatch], *, is_sorted: bool) -> Iterator[pa.Table]:
        for piece in in_pieces(batches, is_sorted=is_sorted):
            pieces.append(piece.num_rows)
            yield piece

    limit(piece_bytes_max=512)
    monkeypatch.setattr(placement, "in_pieces", noted)
    changed = [{**row, "ts": 2, "_hoodie_is_deleted": number % 3 == 0} for number, row in enumerate(rows)]
    stale = [{**row, "ts": 0} for row in rows]  # rows of one key are in one piece
    table.upsert(pa.Table.from_pylist([*changed, *stale], schema), options=WITHOUT_SERVICES)
    assert len(pieces) > 4
    assert sum(pieces) == len(changed) + len(stale)
    (file_slice,) = table.inspect.files()
    assert [log.status.name.split(".")[1] for log in file_slice.logs] == ["log", "deletes"]
    assert check_sorted(table) == 3
    assert [row[0] for row in held(table)] == [f"{n:02}" for n in range(97) if n % 3]
    assert table.services.compact()
    assert check_sorted(table) == 4


def test_runs_that_do_not_follow_each_other_go_to_files_of_further_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: SetLimits
) -> None:
    table = sorted_table(properties=BUCKET, path=tmp_path / "t")
    keys = [f"{number:03}" for number in range(60)]
    table.insert(rides(*((key, "rome", 1, 1.0) for key in keys)), options=WITHOUT_SERVICES)

    def backwards(batches: Iterator[pa.RecordBatch], *, is_sorted: bool) -> Iterator[pa.Table]:
        return reversed([*in_pieces(batches, is_sorted=is_sorted)])

    limit(piece_bytes_max=512)
    monkeypatch.setattr(placement, "in_pieces", backwards)
    table.upsert(rides(*((key, "rome", 2, 2.0) for key in keys)), options=WITHOUT_SERVICES)
    (file_slice,) = table.inspect.files()
    versions = [int(log.status.name.split(".")[0].rpartition("_")[2]) for log in file_slice.logs]
    assert versions == [*range(1, len(versions) + 1)]
    assert len(versions) > 2
    assert check_sorted(table) == 1 + len(versions)
    assert held(table) == [(key, "rome", 2, 2.0) for key in keys]


def test_a_clustering_keeps_records_that_two_file_groups_have() -> None:
    table = sorted_table()
    no_small_files = {**WITHOUT_SERVICES, "hoodie.parquet.small.file.limit": "0"}
    for fare in (1.0, 2.0, 3.0):
        table.insert(rides(("a", "rome", 1, fare), ("b", "rome", 1, fare)), options=no_small_files)
    before = held(table)
    assert len(before) == 6
    assert table.services.cluster()
    assert held(table) == before
    check_sorted(table)


@pytest.mark.parametrize("columns", [["fare"], ["id", "fare"], ["_hoodie_commit_time"]], ids=str)
def test_clustering_and_bulk_insert_sort_by_record_key_alone(columns: list[str]) -> None:
    table = sorted_table()
    table.insert(drawn(1), options=WITHOUT_SERVICES)
    refusal = f"sorted by record key.* sort(ed)? by {', '.join(columns)}[.]"
    with pytest.raises(InvalidError, match=refusal):
        table.services.cluster(sort_by=columns)
    with pytest.raises(InvalidError, match=refusal):
        table.bulk_insert(drawn(2), sort_by=columns)


@pytest.mark.parametrize("column", ["id", "_hoodie_record_key"])
def test_clustering_and_bulk_insert_may_be_asked_to_sort_by_record_key(column: str) -> None:
    table = sorted_table()
    table.bulk_insert(drawn(1), sort_by=[column], options=WITHOUT_SERVICES)
    assert table.services.cluster(sort_by=[column])
    assert check_sorted(table)


def test_clustering_does_not_go_along_a_curve_through_several_key_columns() -> None:
    table = sorted_table(record_key=("city", "id"), partition_by=())
    table.insert(drawn(1), options=WITHOUT_SERVICES)
    with pytest.raises(InvalidError, match=r"sorted by city, id along a curve \(ZORDER\)"):
        table.services.cluster(sort_by=["city", "id"], layout="ZORDER")
    assert table.services.cluster(sort_by=["city", "id"])
    assert check_sorted(table)


def test_a_file_that_would_not_be_sorted_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = sorted_table()
    monkeypatch.setattr(placement, "sorted_by_key", lambda batches: batches)
    with pytest.raises(InternalError, match="not sorted"):
        table.insert(rides(("b", "rome", 1, 1.0), ("a", "rome", 1, 1.0)))
    monkeypatch.undo()
    assert held(table) == []
    assert keys_of_files(table) == {}


def test_the_layout_is_chosen_at_creation_and_left_for_good(tmp_path: Path) -> None:
    table = sorted_table(path=tmp_path / "t")
    assert (table.config.storage_layout, table.config.properties[LAYOUT]) == ("lsm_tree", "lsm_tree")
    table.insert(rides(("a", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    assert table.versions.set_storage_layout("lsm_tree") is False
    assert table.versions.set_storage_layout("default") is True
    assert table.versions.set_storage_layout("DEFAULT") is False
    table = drawstring.open(tmp_path / "t")
    table.upsert(rides(("b", "rome", 1, 1.0), ("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    assert held(table) == [("a", "rome", 2, 2.0), ("b", "rome", 1, 1.0)]
    with pytest.raises(InvalidError, match="not sorted"):
        table.versions.set_storage_layout("lsm_tree")
    with pytest.raises(InvalidError, match="storage layout lsm_tree but the table has default"):
        table.upsert(rides(("a", "rome", 3, 3.0)), options=LSM)
    with pytest.raises(InvalidError, match="no storage layout 'heap'"):
        table.versions.set_storage_layout("heap")


def test_a_table_and_the_command_line_tell_the_layout(tmp_path: Path, capsys: Any) -> None:
    table = sorted_table(path=tmp_path / "t")
    assert "files sorted by record key" in str(table) + table._repr_html_()
    assert run(["show", str(tmp_path / "t")]) == 0
    assert "storage layout  lsm_tree" in capsys.readouterr().out


def test_a_copy_on_write_table_is_stored_with_the_default_layout() -> None:
    table = create(table_type=COW, version=10, properties=LSM)
    assert table.config.properties[LAYOUT] == "default"
    assert not table.config.has_sorted_files
    table.upsert(rides(("a", "rome", 1, 1.0)), options=LSM)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"version": 9}, "needs table version 10"),
        ({"version": 10, "record_key": (), "ordering": ()}, "needs key columns"),
        ({"version": 10, "properties": {"hoodie.populate.meta.fields": "false"}}, "needs hoodie.populate"),
    ],
    ids=str,
)
def test_other_tables_cannot_have_it(how: dict[str, Any], why: str) -> None:
    properties = {**LSM, **how.get("properties", {})}
    with pytest.raises(InvalidError, match=why):
        create(table_type=MOR, **{**how, "properties": properties})


def test_a_downgrade_forgets_the_layout() -> None:
    table = sorted_table()
    table.upsert(drawn(1), options=WITHOUT_SERVICES)
    before = held(table)
    table.versions.downgrade(9)
    assert LAYOUT not in table.config.properties
    assert held(table) == before


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of files whose keys are in no order, two of which one file or another has as well."""
    folder = tmp_path / "source"
    for number, keys in enumerate((["b", "\U00010437", "a", "b"], ["\uffff", "a", "c"])):
        folder.mkdir(exist_ok=True)
        ts = [number + 1] * len(keys)
        pq.write_table(pa.table({"id": keys, "ts": ts}), folder / f"{number}.parquet")
    return folder


def bootstrap(path: Path, source: Path, **how: Any) -> drawstring.Table:
    given = {"table_type": MOR, "version": 10, "mode": "full", "options": LSM, **how}
    drawstring.bootstrap(path, source, record_key="id", ordering="ts", **given)
    return drawstring.open(path)


def test_a_bootstrap_that_copies_the_rows_sorts_them(tmp_path: Path, source: Path) -> None:
    table = bootstrap(tmp_path / "t", source)
    assert table.config.storage_layout == "lsm_tree"
    assert check_sorted(table)
    rows = {row["id"]: row["ts"] for row in table.scan(["id", "ts"]).to_arrow().to_pylist()}
    assert rows == {"a": 2, "b": 1, "c": 2, "\uffff": 2, "\U00010437": 1}
    table.upsert(pa.table({"id": ["c", "a"], "ts": [3, 3]}), options=WITHOUT_SERVICES)
    assert table.services.compact()
    assert check_sorted(table)
    assert table.services.validate().findings == ()


def test_a_bootstrap_that_leaves_the_rows_where_they_are_cannot_sort_them(
    tmp_path: Path, source: Path
) -> None:
    with pytest.raises(InvalidError, match=r"stay in their order.*\(mode full\)"):
        bootstrap(tmp_path / "t", source, mode="metadata")
    assert not (tmp_path / "t").exists()
    table = bootstrap(tmp_path / "t", source, mode="metadata", table_type=COW)
    assert table.config.properties[LAYOUT] == "default"


def test_validate_finds_files_that_are_not_sorted(tmp_path: Path) -> None:
    table = unsorted_table(tmp_path / "t")
    findings = table.services.validate().findings
    assert {each.check for each in findings} == {"order"}
    assert logs(table) == 1
    assert len(findings) == 2
    table.versions.set_storage_layout("default")
    assert table.services.validate().findings == ()


def test_row_groups_of_wide_log_files_are_small_and_those_of_base_files_are_looked_up_fast(
    tmp_path: Path,
) -> None:
    names = [f"c{number}" for number in range(200)]
    schema = pa.schema([("id", pa.string()), *((name, pa.float64()) for name in names)])
    table = sorted_table(schema, BUCKET, path=tmp_path / "t", partition_by=(), ordering=())
    few, many = wide(schema, 3000), wide(pa.schema(list(schema)[:2]), 40_000)
    table.bulk_insert(few)
    table.upsert(few, options=WITHOUT_SERVICES)
    narrow = sorted_table(many.schema, BUCKET, path=tmp_path / "n", partition_by=(), ordering=())
    narrow.bulk_insert(many)
    assert [row_groups(path) for path in sorted((tmp_path / "t").glob("*.log.parquet"))] == [
        [1272, 1272, 456]
    ]
    assert [row_groups(path) for path in (tmp_path / "n").glob("*.parquet")] == [[32_768, 7_232]]


def wide(schema: pa.Schema, rows: int) -> pa.Table:
    keys = pa.array([f"{number:06}" for number in range(rows)])
    return pa.table([keys, *([pa.array([0.5] * rows)] * (len(schema) - 1))], schema=schema)


def row_groups(path: Path) -> list[int]:
    footer = pq.read_metadata(path)
    return [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
