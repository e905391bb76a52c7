"""Keys of rewritten files, and conditions on keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring import Table
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.parquet import parquet_footer
from drawstring.testing import context_of
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, create

SIMPLE = {"hoodie.index.type": "SIMPLE"}
BLOOM = {"hoodie.index.type": "BLOOM"}


def test_a_rewritten_file_has_all_its_keys_in_the_bloom_filter() -> None:
    table = create(table_type=COW, properties=BUCKETS | {"hoodie.bucket.index.num.buckets": "1"})
    rows = [(f"k{number}", "rome", 1, 1.0) for number in range(60)]
    table.insert(rides(*rows[:20]))
    table.upsert(rides(*rows[10:40]))
    table.delete(rides(*rows[:15]))
    table.upsert(rides(*rows[35:]))
    storage = context_of(table).storage
    newest = max(
        (status.path for status in storage.list_files("rome") if status.path.endswith(".parquet")),
        key=lambda path: path.rpartition("_")[2],
    )
    footer = parquet_footer(storage, newest)
    bloom = BloomFilter.decode(footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"])
    assert len(held(table)) == 45
    assert bloom.contains(pa.array([key for key, *_ in rows[15:]])).all()
    assert bloom.contains(pa.array([f"absent{number}" for number in range(100)])).sum() <= 2


@pytest.mark.parametrize(
    ("properties", "options", "is_exact"),
    [
        ({}, {}, True),
        (BLOOM, {}, True),
        (SIMPLE, {}, False),
        (BUCKETS, {}, False),
        ({}, SIMPLE, True),
        (SIMPLE, BLOOM, True),
        (SIMPLE, {"hoodie.metadata.index.bloom.filter.enable": "true"}, True),
    ],
    ids=["not named", "bloom", "simple", "bucket", "simple write", "bloom write", "in the metadata table"],
)
def test_bloom_filters_are_exact_if_a_bloom_index_may_ask_them(
    properties: dict[str, str], options: dict[str, str], is_exact: bool
) -> None:
    table = create(table_type=COW, properties=properties)
    table.upsert(rides(*((f"k{number}", "rome", 1, 1.0) for number in range(50))), options=options)
    for bloom in filters_in(table):
        assert bloom.is_as_exact_as(BloomFilter.DEFAULT_RATE) == is_exact


def test_a_write_with_a_bloom_index_makes_the_filters_of_its_files_exact() -> None:
    table = create(table_type=COW, properties=SIMPLE)
    table.upsert(rides(*((f"k{number}", "rome", 1, 1.0) for number in range(50))))
    table.upsert(rides(("k1", "rome", 2, 2.0)), options=BLOOM)
    loose, exact = sorted(filters_in(table), key=lambda bloom: bloom.shape.hashes)
    assert not loose.is_as_exact_as(BloomFilter.DEFAULT_RATE)
    assert exact.is_as_exact_as(BloomFilter.DEFAULT_RATE)
    assert exact.contains(pa.array([f"k{number}" for number in range(50)])).all()


def filters_in(table: Table) -> list[BloomFilter]:
    storage = context_of(table).storage
    paths = [each.path for each in storage.list_files("rome") if each.path.endswith(".parquet")]
    footers = [parquet_footer(storage, path) for path in paths]
    assert footers
    return [
        BloomFilter.decode(each["org.apache.hudi.bloomfilter"], each["hoodie_bloom_filter_type_code"])
        for each in footers
    ]


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
