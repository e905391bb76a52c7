"""Keys of rewritten files, and conditions on keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.parquet import parquet_footer
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, create


def test_a_rewritten_file_has_all_its_keys_in_the_bloom_filter() -> None:
    table = create(table_type=COW, properties=BUCKETS | {"hoodie.bucket.index.num.buckets": "1"})
    rows = [(f"k{number}", "rome", 1, 1.0) for number in range(60)]
    table.insert(rides(*rows[:20]))
    table.upsert(rides(*rows[10:40]))
    table.delete(rides(*rows[:15]))
    table.upsert(rides(*rows[35:]))
    storage = table._context.storage
    newest = max(
        (status.path for status in storage.list_files("rome") if status.path.endswith(".parquet")),
        key=lambda path: path.rpartition("_")[2],
    )
    footer = parquet_footer(storage, newest)
    bloom = BloomFilter.decode(footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"])
    assert len(held(table)) == 45
    assert bloom.contains(pa.array([key for key, *_ in rows[15:]])).all()
    assert not bloom.contains(pa.array([f"absent{number}" for number in range(100)])).any()


@pytest.mark.parametrize("where", ["id = 'b'", "_hoodie_record_key = 'b'", "id >= 'b' and id < 'c'"])
def test_a_condition_on_the_key_sees_merged_records(where: str) -> None:
    table = create(table_type=MOR, properties=BUCKETS)
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "rome", 3, 3.0), ("c", "rome", 1, 1.0)))
    table.upsert(rides(("b", "rome", 2, 2.0), ("c", "rome", 2, 2.0)))
    assert held(table, where=where) == [("b", "rome", 3, 3.0)]
    table.upsert(rides(("b", "rome", 4, 4.0)))
    assert held(table, where=where) == [("b", "rome", 4, 4.0)]
    table.delete(rides(("b", "rome", 4, 4.0)))
    assert held(table, where=where) == []
