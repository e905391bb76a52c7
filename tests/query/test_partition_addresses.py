"""Tables that are opened by a partition folder or a pattern: queries read these partitions only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.model.partition_scope import PartitionScope
from drawstring.storage.memory import MemoryStorage

SCHEMA = pa.schema([("id", pa.int64()), ("year", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
ROWS = [(1, "2023", "oslo"), (2, "2024", "oslo"), (3, "2024", "lima"), (4, "20", "oslo")]


def rows_of(*rows: tuple[int, str, str], ts: int = 1) -> pa.Table:
    names = SCHEMA.names
    return pa.Table.from_pylist([dict(zip(names, (*row, ts), strict=True)) for row in rows], SCHEMA)


def make(uri: str | Path, *, hive_style: bool = False, table_type: str = "COPY_ON_WRITE") -> None:
    table = drawstring.create(
        uri, SCHEMA, name="t", record_key="id", partition_by=["year", "city"], ordering="ts",
        hive_style=hive_style, table_type=table_type, cdc=True,
    )  # fmt: skip
    table.upsert(rows_of(*ROWS))


def ids(uri: str | Path) -> list[int]:
    return sorted(drawstring.open(uri).scan("id").to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ("2024", [2, 3]),
        ("2024/", [2, 3]),
        ("2024/lima", [3]),
        ("2024/lima/*", [3]),
        ("2024/lima/*.parquet", [3]),
        ("*", [1, 2, 3, 4]),
        ("*/*", [1, 2, 3, 4]),
        ("*/*/*", [1, 2, 3, 4]),
        ("202?/oslo", [1, 2]),
        ("202[4-9]/*", [2, 3]),
        ("{20,2023}/*", [1, 4]),
        ("*/o*", [1, 2, 4]),
    ],
)
def test_the_partitions_of_the_address_are_read(
    tmp_path: Path, table_type: str, below: str, expected: list[int]
) -> None:
    make(tmp_path / "t", table_type=table_type)
    assert ids(f"{tmp_path}/t/{below}") == expected


@pytest.mark.parametrize("below", ["2024/rome", "202", "*/*/*/*", "2024/lima/x", ".hoodie", "20[x]"])
def test_an_address_without_partitions_says_so(tmp_path: Path, below: str) -> None:
    make(tmp_path / "t")
    with pytest.raises(InvalidError, match=r"No partition of the table is at .* \(for example 20"):
        ids(f"{tmp_path}/t/{below}")


def test_a_table_without_partitions_is_read_by_the_pattern_of_its_files(tmp_path: Path) -> None:
    drawstring.create(tmp_path / "t", SCHEMA, record_key="id").upsert(rows_of(*ROWS))
    assert ids(f"{tmp_path}/t/*") == [1, 2, 3, 4]
    with pytest.raises(InvalidError, match="not partitioned"):
        ids(f"{tmp_path}/t/*/*")


def test_addresses_of_all_kinds_lead_to_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "t", hive_style=True)
    assert ids((tmp_path / "t/year=2024/city=lima").as_uri()) == [3]
    assert ids(f"file:{tmp_path}/t/year%3D2024/city=lima") == [3]
    monkeypatch.chdir(tmp_path)
    assert ids("t/year=2024") == [2, 3]
    monkeypatch.chdir(tmp_path / "t/year=2024")
    assert ids("city=lima") == [3]
    make("memory://addresses/t")
    assert ids("memory://addresses/t/2024") == [2, 3]
    assert drawstring.open("memory://addresses/t/2024").uri == MemoryStorage("memory://addresses/t").spec.uri


def test_all_kinds_of_queries_keep_to_the_partitions(tmp_path: Path) -> None:
    make(tmp_path / "t", table_type="MERGE_ON_READ")
    first = drawstring.open(tmp_path / "t").timeline.latest_write()
    assert first is not None
    drawstring.open(tmp_path / "t").upsert(rows_of((2, "2024", "oslo"), (4, "20", "oslo"), ts=2))
    part = drawstring.open(f"{tmp_path}/t/2024")
    times = {row["id"]: row["ts"] for row in part.scan(["id", "ts"]).to_arrow().to_pylist()}
    assert times == {2: 2, 3: 1}
    assert part.scan("id", where="id > 2").to_arrow()["id"].to_pylist() == [3]
    assert part.scan("ts", as_of=first.requested).to_arrow()["ts"].to_pylist() == [1, 1]
    assert part.incremental(first.completed, columns="id").to_arrow()["id"].to_pylist() == [2]
    changed = part.changes("earliest").to_arrow()["op"].to_pylist()
    assert sorted(changed) == ["i", "i", "u"]
    followed = [batch.rows.to_arrow().num_rows for batch in part.follow("earliest", poll_seconds=None)]
    assert sum(followed) == 2
    assert {each.partition for each in part.inspect.files()} == {"2024/oslo", "2024/lima"}


def test_overwritten_partitions_keep_to_the_address(tmp_path: Path) -> None:
    make(tmp_path / "t")
    drawstring.open(tmp_path / "t").insert_overwrite(rows_of((5, "2024", "lima"), (6, "2023", "oslo"), ts=2))
    part = drawstring.open(f"{tmp_path}/t/2024")
    assert sorted(part.changes().to_arrow()["op"].to_pylist()) == ["d", "i"]


def test_a_table_that_was_opened_by_a_partition_cannot_be_changed(tmp_path: Path) -> None:
    make(tmp_path / "t")
    part = drawstring.open(f"{tmp_path}/t/2024")
    for change in (
        lambda: part.upsert(rows_of((9, "2024", "oslo"))),
        lambda: part.delete(where="id = 1"),
        lambda: part.delete_partition("2023/oslo"),
        part.services.clean,
        part.services.cluster,
        part.savepoints.create,
    ):
        with pytest.raises(InvalidError, match="can only be read"):
            change()
    assert ids(tmp_path / "t") == [1, 2, 3, 4]


def test_an_address_outside_of_tables_is_what_it_was(tmp_path: Path) -> None:
    make(tmp_path / "t")
    with pytest.raises(InvalidError, match="not a Hudi table"):
        drawstring.open(tmp_path / "other/2024")
    with pytest.raises(InvalidError, match="not a Hudi table"):
        drawstring.open(f"{tmp_path}/*")


@pytest.mark.parametrize(
    ("pattern", "path", "admitted"),
    [
        ("a[!b]c", "axc", True),
        ("a[!b]c", "abc", False),
        ("a.c", "abc", False),
        ("{x,y=1*}", "y=12", True),
        ("*/[^2]*", "1/2a", False),
        ("a[b", "a[b", True),
        ("a", "a/b/c", True),
    ],
)
def test_patterns_are_those_of_hadoop(pattern: str, path: str, admitted: bool) -> None:
    assert PartitionScope(pattern).admits(path) is admitted
