"""Small Parquet files whose rows take far more memory than the file."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.base.limits import Limits
from drawstring.formats.parquet import ParquetQuery, read_parquet
from drawstring.storage.memory import MemoryStorage
from tests.support.limits import SetLimits


def stored(table: pa.Table, **how: object) -> MemoryStorage:
    """Return a storage with the table as a.parquet."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False, **how)
    storage = MemoryStorage("memory://folded")
    storage.put("a.parquet", sink.getvalue().to_pybytes())
    return storage


def repeated(text: str | bytes, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([text]))


def test_a_file_of_long_texts_repeated_is_read_in_small_pieces() -> None:
    table = pa.table({"key": repeated("k" * 10_000, 20_000), "n": pa.array(range(20_000))})
    storage = stored(table, dictionary_pagesize_limit=1 << 30)
    assert len(storage.read("a.parquet")) < 200_000

    numbers, most = [], 0
    for batch in read_parquet(storage, "a.parquet"):
        assert batch.schema.types == [pa.string(), pa.int64()]
        most = max(most, batch.nbytes)
        numbers += batch["n"].to_pylist()

    assert numbers == list(range(20_000))
    assert most < 2 * Limits().expanded_bytes_max


def test_texts_and_bytes_come_back_as_they_are(limit: SetLimits) -> None:
    limit(expanded_bytes_max=1_000)
    texts = [None if n % 7 == 0 else "x" * (n % 300) for n in range(4_000)]
    table = pa.table(
        {
            "text": pa.array(texts, pa.string()),
            "plain": pa.array([f"{n}" for n in range(4_000)]),
            "bytes": pa.array([None if text is None else text.encode() for text in texts], pa.binary()),
            "none": pa.nulls(4_000, pa.string()),
            "list": pa.array([[text] for text in texts]),
        }
    )
    storage = stored(table, row_group_size=1_500)

    batches = list(read_parquet(storage, "a.parquet"))
    assert pa.Table.from_batches(batches).equals(table)
    assert len(batches) > 400
    found = list(read_parquet(storage, "a.parquet", ParquetQuery(["bytes"], pc.field("text") == "xx")))
    assert (
        pa.Table.from_batches(found).to_pylist()
        == table.filter(pc.field("text") == "xx").select(["bytes"]).to_pylist()
    )


def test_a_file_that_claims_more_rows_than_its_bytes_can_tell_apart_is_corrupt() -> None:
    storage = stored(pa.table({"n": pa.nulls(4_000_000, pa.int32())}))

    with pytest.raises(CorruptTableError, match="claims 4000000 rows"):
        list(read_parquet(storage, "a.parquet"))


def test_many_rows_without_a_value_are_fine() -> None:
    storage = stored(pa.table({"n": pa.nulls(1_000_000, pa.int32())}))

    assert sum(batch.num_rows for batch in read_parquet(storage, "a.parquet")) == 1_000_000


VALIDATE = """
import pathlib, sys, pyarrow as pa, pyarrow.parquet as pq, drawstring
root = pathlib.Path(sys.argv[1])
table = drawstring.create(root, pa.schema([("id", pa.string())]), record_key="id", table_type="COPY_ON_WRITE")
table.insert(pa.table({"id": ["k"]}))
(path,) = root.glob("*.parquet")
rows, zeros = pq.read_table(path).to_pylist()[0], pa.repeat(pa.scalar(0, pa.int32()), 12_000)
rows |= {"_hoodie_record_key": "k" * 20_000, "id": "k" * 20_000}
hostile = {name: pa.DictionaryArray.from_arrays(zeros, pa.array([value])) for name, value in rows.items()}
pq.write_table(pa.table(hostile), path, compression="zstd", store_schema=False)
found = drawstring.open(root).services.validate()
print(path.stat().st_size, found.records, pa.default_memory_pool().max_memory())
"""


def test_validate_stays_small_on_a_small_file_of_many_long_keys(tmp_path: object) -> None:
    run = [sys.executable, "-c", VALIDATE, f"{tmp_path}/table"]
    shown = subprocess.run(run, capture_output=True, text=True, check=True).stdout

    file_bytes, records, peak_bytes = map(int, shown.split())
    assert file_bytes < 12_000
    assert records == 12_000
    assert peak_bytes < 180 << 20
