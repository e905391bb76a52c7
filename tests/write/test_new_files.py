"""Bulk inserts gather the rows of a partition: a small one gets one file, however many threads write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import DrawstringError
from drawstring.base.limits import Limits
from drawstring.engine.local import LocalEngine
from drawstring.formats.bloom_footer import FILTER, LARGEST_KEY, SMALLEST_KEY
from drawstring.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("note", pa.string())])
BATCH_ROWS = 500


def table(folder: Path, engine: LocalEngine, partition_by: str = "city") -> Table:
    return drawstring.create(folder, SCHEMA, record_key="id", partition_by=partition_by or (), engine=engine)


def batches(count: int, cities: int, note: str = "n") -> Iterator[pa.RecordBatch]:
    """Yield batches in which the rows of all cities are mixed."""
    for number in range(count):
        ids = range(number * BATCH_ROWS, (number + 1) * BATCH_ROWS)
        columns = [[*ids], [f"city {each % cities}" for each in ids], [f"{note}{each}" for each in ids]]
        yield pa.RecordBatch.from_arrays([pa.array(each) for each in columns], schema=SCHEMA)


def files_by_partition(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in folder.glob("**/*.parquet"):
        if ".hoodie" not in path.parts:
            found[path.parent.name] = found.get(path.parent.name, 0) + 1
    return found


@pytest.mark.parametrize("memory_bytes", [512 << 20, 200_000, 0], ids=["plenty", "little", "none"])
@pytest.mark.parametrize("threads", [1, 4])
def test_a_small_partition_gets_one_file(tmp_path: Path, threads: int, memory_bytes: int) -> None:
    rides = table(tmp_path / "t", LocalEngine(threads, memory_bytes))
    rides.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, batches(40, cities=40)))

    assert files_by_partition(tmp_path / "t") == {f"city {each}": 1 for each in range(40)}
    rows = rides.scan(columns=["id", "city", "note"]).to_arrow().sort_by("id")
    assert rows.equals(pa.Table.from_batches([*batches(40, cities=40)]))


@pytest.mark.parametrize("memory_bytes", [512 << 20, 4 << 20])
def test_a_large_partition_gets_a_file_for_each_thread_at_most(tmp_path: Path, memory_bytes: int) -> None:
    note = "x" * (4 * Limits().share_bytes // (40 * BATCH_ROWS))
    rides = table(tmp_path / "t", LocalEngine(2, memory_bytes), partition_by="")
    rides.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, batches(40, cities=3, note=note)))

    assert files_by_partition(tmp_path / "t") == {"t": 2}
    rows = rides.scan(columns=["id", "note"]).to_arrow().sort_by("id")
    assert rows.equals(pa.Table.from_batches([*batches(40, cities=3, note=note)]).select(["id", "note"]))


@pytest.mark.parametrize("memory_bytes", [512 << 20, 200_000])
def test_a_source_that_fails_leaves_the_table_as_it_was(tmp_path: Path, memory_bytes: int) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(20, cities=3)
        raise OSError("the source is gone")

    rides = table(tmp_path / "t", LocalEngine(3, memory_bytes))
    with pytest.raises((OSError, DrawstringError), match="the source is gone"):
        rides.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, failing()))

    assert files_by_partition(tmp_path / "t") == {}
    assert drawstring.open(tmp_path / "t").scan().to_arrow().num_rows == 0


def test_files_that_are_written_together_say_the_same_of_their_keys(tmp_path: Path) -> None:
    footers = []
    for threads in (1, 2):  # a single thread writes one file after the other
        rides = table(tmp_path / f"t{threads}", LocalEngine(threads))
        rides.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, batches(8, cities=40)))
        footers.append(
            {path.parent.name: keys_in_footer(path) for path in tmp_path.glob(f"t{threads}/*/*.parquet")}
        )
    assert footers[0] == footers[1]
    assert len(footers[0]) == 40


def keys_in_footer(path: Path) -> dict[str, bytes]:
    entries = pq.read_metadata(path).metadata
    return {name: entries[name.encode()] for name in (FILTER, SMALLEST_KEY, LARGEST_KEY)}


def test_a_first_insert_of_many_small_partitions_reads_back(tmp_path: Path) -> None:
    rides = table(tmp_path / "t", LocalEngine(2))
    rides.upsert(pa.RecordBatchReader.from_batches(SCHEMA, batches(4, cities=150)))
    rides.upsert(pa.RecordBatchReader.from_batches(SCHEMA, batches(6, cities=150, note="m")))
    rows = rides.scan(columns=["id", "city", "note"]).to_arrow().sort_by("id")
    assert rows.equals(pa.Table.from_batches([*batches(6, cities=150, note="m")]))
    assert files_by_partition(tmp_path / "t") == {f"city {each}": 2 for each in range(150)}
