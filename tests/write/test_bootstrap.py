"""Tables made of a folder of Parquet files: both ways, and whatever is written to them afterwards."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring import bootstrapping
from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.filegroups.read.bootstrap_reader import side_by_side
from drawstring.storage.local import LocalStorage
from drawstring.testing import context_of
from drawstring.txn import transaction
from tests.support.combinations import pairwise
from tests.support.tables import COW, MOR, WITHOUT_COMPACTION

KEYS = {"record_key": "id", "partition_by": "city", "ordering": "ts"}
CITIES = ("new york", "oslo", None)
Rows = dict[str, tuple[int, int, str | None]]


def rides(*numbers: int, fare: int | None = None, ts: int = 1) -> pa.Table:
    return pa.table(
        {
            "id": [f"r{number:03}" for number in numbers],
            "fare": pa.array([number if fare is None else fare for number in numbers], pa.int64()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "city": pa.array([CITIES[number % 3] for number in numbers], pa.string()),
        }
    )


def rows_of(table: pa.Table) -> Rows:
    return {row["id"]: (row["fare"], row["ts"], row["city"]) for row in table.to_pylist()}


def held(table: drawstring.Table, **query: Any) -> Rows:
    found = table.scan(columns=["id", "fare", "ts", "city"], **query).to_arrow()
    assert len(set(found.column("id").to_pylist())) == found.num_rows
    return rows_of(found)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder as Spark and Arrow write it: the partition column is in the folders' names only."""
    folder = tmp_path / "source"
    partitioning = ds.partitioning(pa.schema([("city", pa.string())]), flavor="hive")
    sizes = {"max_rows_per_file": 7, "max_rows_per_group": 3}
    ds.write_dataset(rides(*range(40)), folder, format="parquet", partitioning=partitioning, **sizes)
    (folder / "_SUCCESS").touch()
    return folder


def digest(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha1(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize(
    ("table_type", "version", "mode"),
    pairwise(list(itertools.product((COW, MOR), (6, 8, 9), ("metadata", "full", "mixed")))),
)
def test_a_bootstrapped_table_goes_on_like_any_other(
    tmp_path: Path, source: Path, table_type: str, version: int, mode: str
) -> None:
    before, model = digest(source), rows_of(rides(*range(40)))
    how = {"mode": "metadata", "matching": ".*oslo"} if mode == "mixed" else {"mode": mode}
    path = tmp_path / "table"
    made = drawstring.bootstrap(path, source, table_type=table_type, version=version, **KEYS, **how)
    table = drawstring.open(path)
    assert (made.operation, made.records_written) == ("bootstrap", 40)
    assert len(table.timeline.writes()) == (2 if mode == "mixed" else 1)
    assert held(table) == model
    assert held(table, where="city = 'oslo' and fare > 20") == {
        key: row for key, row in model.items() if row[2] == "oslo" and row[0] > 20
    }
    assert table.scan(columns=["city"], where="fare > 20").to_arrow().num_rows == 19
    assert table.incremental("earliest").to_arrow().num_rows == 40

    table.upsert(rides(1, 2, 100, fare=-1, ts=2))
    model |= rows_of(rides(1, 2, 100, fare=-1, ts=2))
    table.upsert(rides(4, fare=-9, ts=0))  # older than what is there
    table.delete(rides(3, 6), options=WITHOUT_COMPACTION)
    del model["r003"], model["r006"]
    table.update("id = 'r007'", {"fare": "fare * 100"}, options=WITHOUT_COMPACTION)
    model["r007"] = (700, 1, model["r007"][2])
    assert held(table) == model
    bootstraps = [write.requested for write in table.timeline.writes() if write.requested.startswith("0")]
    assert held(table, as_of=bootstraps[-1]) == rows_of(rides(*range(40)))
    if table_type == MOR:
        assert set(held(table, read_optimized=True)) >= {f"r{number:03}" for number in range(40)}
        assert table.services.compact()
        assert held(table, read_optimized=True) == model
    assert not table.services.validate().findings
    assert table.changes("earliest").to_arrow().num_rows >= 46
    assert held(drawstring.open(path)) == model
    assert digest(source) == before


def test_rows_that_stay_where_they_are_cost_their_keys_only(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    wide = rides(*range(20_000)).append_column(
        "note", pa.array([f"{number:0100}" for number in range(20_000)])
    )
    pq.write_table(wide, tmp_path / "source/wide.parquet", compression="none")
    made = drawstring.bootstrap(tmp_path / "table", tmp_path / "source", record_key="id")
    assert made.bytes_written < 400_000 < 2_000_000 < (tmp_path / "source/wide.parquet").stat().st_size
    table = drawstring.open(tmp_path / "table")
    (base,) = (tmp_path / "table").glob("*.parquet")
    assert len(pq.read_schema(base)) == 5
    found = table.scan(columns=["_hoodie_record_key", "note", "id"], where="id >= 'r19990'").to_arrow()
    assert 0 < found.num_rows < 20_000
    assert found.column("_hoodie_record_key").equals(found.column("id"))


def test_folders_of_values_alone_name_partition_columns_in_their_order(tmp_path: Path) -> None:
    for year, month, numbers in (("2023", "12", (1, 2)), ("2024", "01", (3,))):
        folder = tmp_path / "source" / year / month
        folder.mkdir(parents=True)
        pq.write_table(rides(*numbers), folder / "a.parquet")
    drawstring.bootstrap(
        tmp_path / "table", tmp_path / "source", record_key="id", partition_by=["year", "month"]
    )
    table = drawstring.open(tmp_path / "table")
    found = table.scan(columns=["id", "year", "month"], where="year = 2023").to_arrow()
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": "r001", "year": 2023, "month": "12"},
        {"id": "r002", "year": 2023, "month": "12"},
    ]
    table.upsert(table.scan(where="id = 'r003'").to_arrow())
    assert table.scan().to_arrow().num_rows == 3


def test_files_with_fewer_columns_and_narrower_types_make_one_table(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    pq.write_table(rides(1), source / "a.parquet")
    narrow = rides(2).drop_columns(["city"]).set_column(1, "fare", pa.array([5], pa.int32()))
    pq.write_table(narrow, source / "b.parquet")
    drawstring.bootstrap(tmp_path / "table", source, record_key="id")
    table = drawstring.open(tmp_path / "table")
    assert held(table) == {"r001": (1, 1, "oslo"), "r002": (5, 1, None)}
    table.upsert(rides(2, fare=6))
    assert held(table)["r002"] == (6, 1, None)


def test_clustering_brings_the_rows_of_a_source_into_the_table(tmp_path: Path, source: Path) -> None:
    drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    table = drawstring.open(tmp_path / "table")
    assert table.services.cluster()
    assert held(table) == rows_of(rides(*range(40)))
    assert not table.services.compact_base_files() or held(table) == rows_of(rides(*range(40)))
    assert all(each.base and each.base.source is None for each in table.inspect.files())


def test_small_files_that_stand_for_others_come_together_with_their_rows(
    tmp_path: Path, source: Path
) -> None:
    drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    table = drawstring.open(tmp_path / "table")
    assert table.services.compact_base_files()
    assert held(table) == rows_of(rides(*range(40)))


def test_new_rows_do_not_make_files_of_a_source_move_into_the_table(tmp_path: Path, source: Path) -> None:
    drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    table = drawstring.open(tmp_path / "table")
    result = table.insert(rides(100, 103))
    assert (result.records_written, result.inserts) == (2, 2)


TRANSLATOR = "hoodie.bootstrap.partitionpath.translator"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another layout": ({"partition_by": "fare"}, "partitioned by city"),
    "no layout": ({"partition_by": ()}, "partitioned by city"),
    "two columns": ({"partition_by": ["city", "fare"]}, "partitioned by city"),
    "a key that is null": ({"record_key": "maybe"}, "null or empty"),
    "a key that is not there": ({"record_key": "ident"}, "lacks"),
    "a bucket index": ({"options": {"hoodie.index.type": "BUCKET"}}, "bucket index"),
    "plain folders": (
        {"options": {"hoodie.datasource.write.hive_style_partitioning": "false"}},
        "cannot stay",
    ),
    "escapes": (
        {"options": {f"{TRANSLATOR}.class": "IdentityBootstrapPartitionPathTranslator"}},
        "cannot stay",
    ),
    "no meta columns": ({"options": {"hoodie.populate.meta.fields": "false"}}, "cannot stay"),
    "another mode": ({"mode": "half"}, "metadata or full"),
    "no pattern": ({"matching": "("}, "not a regular expression"),
    "another operation": ({"options": {"hoodie.datasource.write.operation": "upsert"}}, "bootstrap"),
}


@pytest.mark.parametrize(("change", "told"), WRONG.values(), ids=list(WRONG))
def test_wrong_use_leaves_no_table(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    folder = tmp_path / "source/city=a%3Ab"
    folder.mkdir(parents=True)
    maybe = pa.array(["x", None], pa.string())
    pq.write_table(rides(1, 2).drop_columns(["city"]).append_column("maybe", maybe), folder / "a.parquet")
    with pytest.raises(InvalidError, match=told):
        drawstring.bootstrap(tmp_path / "table", tmp_path / "source", **{**KEYS, **change})
    assert not list((tmp_path / "table").rglob("*"))


def test_a_source_is_a_folder_of_parquet_files_elsewhere(tmp_path: Path, source: Path) -> None:
    with pytest.raises(InvalidError, match="contain each other"):
        drawstring.bootstrap(source / "table", source, **KEYS)
    with pytest.raises(InvalidError, match="no Parquet files"):
        drawstring.bootstrap(tmp_path / "table", tmp_path / "nowhere", **KEYS)
    drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    with pytest.raises(InvalidError, match="Hudi table"):
        drawstring.bootstrap(tmp_path / "other", tmp_path / "table", **KEYS)
    with pytest.raises(InvalidError, match=r"(table|rows) already"):
        drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    with pytest.raises(InvalidError, match="not empty"):
        drawstring.bootstrap(tmp_path / "full", source, **KEYS)
    (source / "more.orc").touch()
    with pytest.raises(UnsupportedError, match="ORC file"):
        drawstring.bootstrap(tmp_path / "another", source, **KEYS)
    (source / "more.orc").unlink()
    with pytest.raises(InvalidError, match="creates a table"):
        table = drawstring.open(tmp_path / "table")
        table._write_rows("bootstrap", context_of(table).engine.rows(pa.schema([]), iter(())), {})


def test_a_bootstrap_that_died_is_taken_back_by_the_next_one(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(transaction.Transaction, "commit", lambda *_: 1 / 0)
        dying.setattr(transaction, "abort_write", lambda *_, **__: None)
        dying.setattr(LocalStorage, "delete_tree", lambda *_: None)
        with pytest.raises(ZeroDivisionError):
            drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    assert held(drawstring.open(tmp_path / "table")) == {}
    with pytest.raises(InvalidError, match="table already"):
        drawstring.bootstrap(tmp_path / "table", source, **{**KEYS, "ordering": "fare"})
    drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    assert held(drawstring.open(tmp_path / "table")) == rows_of(rides(*range(40)))


def test_a_source_that_changed_or_went_away_is_noticed(tmp_path: Path, source: Path) -> None:
    drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    table = drawstring.open(tmp_path / "table")
    file = next(source.glob("city=oslo/*"))
    shorter = pq.read_table(file).slice(1)
    pq.write_table(shorter, file)
    with pytest.raises(CorruptTableError, match="number of rows of a bootstrap source file has changed"):
        table.scan().to_arrow()
    file.unlink()
    with pytest.raises(CorruptTableError, match=file.name):
        table.scan().to_arrow()
    (index,) = (tmp_path / "table/.hoodie/.aux/.bootstrap/.partitions").iterdir()
    index.unlink()
    with pytest.raises(CorruptTableError, match="index"):
        drawstring.open(tmp_path / "table").scan().to_arrow()


def test_a_failure_on_the_way_leaves_no_table(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrapping, "fill", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        drawstring.bootstrap(tmp_path / "table", source, **KEYS)
    assert not list((tmp_path / "table").rglob("*"))


def test_two_streams_are_cut_at_the_same_rows() -> None:
    def batches(name: str, *sizes: int) -> Any:
        rows, start = pa.record_batch({name: list(range(sum(sizes)))}), 0
        for size in sizes:
            yield rows.slice(start, size)
            start += size

    found = list(side_by_side(batches("a", 3, 0, 4), batches("b", 2, 5)))
    assert [left.num_rows for left, _ in found] == [2, 1, 4]
    assert all(pc.all(pc.equal(left["a"], right["b"])).as_py() for left, right in found)
    with pytest.raises(CorruptTableError, match="number of rows of a bootstrap source file has changed"):
        list(side_by_side(batches("a", 3), batches("b", 4)))
