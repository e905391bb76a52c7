"""Record batches between Spark and the core; no Spark needed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from drawstring.base.errors import InternalError
from drawstring.engine.grouping import KeySets, coalesced, gather_keys, union_of_parts
from drawstring.spark.workers.rows import (
    MAIN,
    ByGroup,
    ByHash,
    NoSplit,
    Unpack,
    join_key,
    packed,
    text_hash,
    with_types,
)
from drawstring.spark.workers.tasks import build_key_filter, shares

NUMBERS = pa.record_batch({"name": [f"n{i % 7}" for i in range(500)], "value": pa.array(range(500))})


def test_hashes_depend_on_the_text_alone() -> None:
    texts = pa.array(["", "a", "ab", "ba", "", None, "ünïcode", "a" * 1000])
    hashes = text_hash(texts)
    assert hashes[0] == hashes[4] == hashes[5]
    assert len(set(hashes[[0, 1, 2, 3, 6, 7]])) == 6
    np.testing.assert_array_equal(text_hash(texts.slice(2, 5)), hashes[2:7])
    np.testing.assert_array_equal(text_hash(pa.array(["ab"])), hashes[2:3])


def test_hashes_spread_over_buckets() -> None:
    keys = pa.array([f"ride-{i:012d}" for i in range(20_000)])
    counts = Counter((text_hash(keys) % np.uint64(200)).tolist())
    assert len(counts) == 200
    assert max(counts.values()) < 200


def test_join_keys_of_different_rows_differ() -> None:
    batch = pa.record_batch({"a": ["x:1", "x", None], "b": ["y", "1:y", "z"]})
    first, second, third = join_key(batch, ["a", "b"]).to_pylist()
    assert first != second
    assert third is None


def test_small_batches_are_joined_and_large_ones_pass() -> None:
    sizes = [10, 0, 30, 100, 5, 5]
    batches = (NUMBERS.slice(0, size) for size in sizes)
    assert [batch.num_rows for batch in coalesced(batches, rows_max=40)] == [40, 100, 10]


def test_types_are_cast_and_wrong_columns_refused() -> None:
    batch = pa.record_batch({"t": pa.array([1], pa.timestamp("us", "Europe/Berlin"))})
    utc = pa.schema([("t", pa.timestamp("us", "UTC"))])
    assert with_types(batch, utc).schema == utc
    with pytest.raises(InternalError, match="instead of"):
        with_types(batch, pa.schema([("other", pa.int64())]))
    with pytest.raises(InternalError, match="column t as"):
        with_types(batch, pa.schema([("t", pa.bool_())]))


@pytest.mark.parametrize("split", [NoSplit(), ByGroup(("name",)), ByHash(("name",), 3)])
def test_rows_survive_packing(split: object) -> None:
    messages = list(packed(iter([NUMBERS]), NUMBERS.schema, split, MAIN, 5))  # type: ignore[arg-type]
    back = pa.Table.from_batches(Unpack(NUMBERS.schema)(iter(messages)), NUMBERS.schema)
    assert back.sort_by("value") == pa.table(NUMBERS)
    assert set(messages[0].column("part").to_pylist()) == {5}
    assert messages[0].column("number").to_pylist() == list(range(messages[0].num_rows))


def test_large_batches_are_cut_into_messages() -> None:
    wide = pa.record_batch({"text": ["x" * 100_000] * 200})
    messages = list(packed(iter([wide]), wide.schema, NoSplit(), MAIN, 0))
    assert sum(message.num_rows for message in messages) >= 2
    back = pa.Table.from_batches(Unpack(wide.schema)(iter(messages)), wide.schema)
    assert back.num_rows == 200


def test_dictionaries_are_packed_as_values() -> None:
    encoded = pa.record_batch({"city": pa.array(["a", "b", "a"]).dictionary_encode()})
    schema = pa.schema([("city", pa.string())])
    messages = list(packed(iter([encoded]), schema, NoSplit(), MAIN, 0))
    back = pa.Table.from_batches(Unpack(schema)(iter(messages)), schema)
    assert back.column("city").to_pylist() == ["a", "b", "a"]


def test_tasks_share_slices_evenly() -> None:
    mib = 1 << 20
    assert shares([], 4) == []
    assert shares([5 * mib], 4) == [[0]]
    assert sorted(map(len, shares([1000] * 40, 2))) == [10, 10, 10, 10]
    assert sorted(map(len, shares([5 * mib + 1] * 32, 2))) == [8, 8, 8, 8]  # two rounds, no third
    assert sorted(map(len, shares([5 * mib] * 4, 2))) == [2, 2]
    assert len(shares([200 * mib] * 6, 2)) == 6
    parts = shares([100 * mib, 1, 1, 1, 90 * mib], 2)
    assert sorted(number for part in parts for number in part) == [0, 1, 2, 3, 4]
    assert [0] in parts


def keys_from(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"key": [f"ride-{number:012d}" for number in range(start, start + count)]})


def sets_from(*starts: int) -> list[KeySets]:
    return [gather_keys(iter([keys_from(start, 3000)]), ("key",), 1 << 20) for start in starts]


def test_all_wanted_keys_and_few_others_are_let_through() -> None:
    said = build_key_filter("key", union_of_parts(sets_from(0, 2000), 1 << 20))
    assert said is not None
    found = [batch for start in (0, 50_000) for batch in said(iter([keys_from(start, 50_000)]))]
    assert found[0]["key"][:5000].equals(keys_from(0, 5000)["key"])
    assert 5000 <= sum(batch.num_rows for batch in found) < 5100


def test_nothing_is_wanted_when_there_are_no_keys() -> None:
    said = build_key_filter("key", {})
    assert said is not None
    assert list(said(iter([keys_from(0, 10)]))) == []


def test_nothing_is_left_out_when_keys_are_too_many_to_tell() -> None:
    assert build_key_filter("key", union_of_parts(sets_from(0, 2000), 1000)) is None
