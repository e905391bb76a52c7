"""The consistent hashing index: rings as Hudi's, and writes to tables that Hudi resized."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError
from drawstring.index.consistent_bucket import FIRST_RING_INSTANT, Ring, key_hashes, load_ring, xxhash32
from drawstring.index.existing_writes import FOLDERS
from drawstring.model.plans import decode_nodes
from drawstring.storage.memory import MemoryStorage
from drawstring.testing import context_of
from tests.support.consistent_buckets import CONSISTENT
from tests.support.golden import TABLES, golden_table
from tests.support.validation import errors

NAMES = sorted(path.stem for path in TABLES.glob("*idx_consistent*.zip"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0x02CC5D05),
        ("a", 0x550D7456),
        ("abc", 0x32D153FF),
        ("Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_texts_hash_as_xxh32_does(text: str, value: int) -> None:
    assert xxhash32(pa.array(["bb", text, "a longer one than that"])).tolist()[1] == value


def test_compound_keys_are_hashed_by_their_values_together() -> None:
    keys = pa.array(["a:x,b:yz", "a:x,b:__null__", "a:x,b:__empty__", "a:1,2,b:3", "plain"])
    both = ["xyz", "xnull", "x", "1,23", "plain"]
    assert key_hashes(keys, ("a", "b")).tolist() == xxhash32(pa.array(both)).tolist()
    assert key_hashes(keys, ("b",)).tolist()[:1] == xxhash32(pa.array(["yz"])).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_every_record_of_hudi_is_where_its_ring_says(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    storage, timeline = context_of(table).storage, table.timeline
    rows = table.scan().to_arrow().to_pylist()
    paths = {row["_hoodie_partition_path"] for row in rows}
    for path in paths:
        ring = load_ring(storage, path, timeline.has_completed)
        assert ring is not None
        here = [row for row in rows if row["_hoodie_partition_path"] == path]
        prefixes = ring.prefixes_of(
            key_hashes(pa.array([row["_hoodie_record_key"] for row in here]), ("id",))
        )
        assert all(
            row["_hoodie_file_name"].startswith(prefix)
            for row, prefix in zip(here, prefixes.to_pylist(), strict=True)
        )
        first = "/".join(part for part in (FOLDERS[0], path, f"{FIRST_RING_INSTANT}.hashing_meta") if part)
        assert Ring.first(path, 2).encode(path) == storage.read(first)


def test_a_ring_counts_when_its_resizing_completed() -> None:
    storage = MemoryStorage("memory://rings")
    for time, buckets in ((FIRST_RING_INSTANT, 2), ("20260101000000000", 4), ("20260102000000000", 8)):
        ring = Ring.first("p", buckets).encode("p")
        storage.put(f"{FOLDERS[0]}/p/{time}.hashing_meta", ring)

    def buckets_when(completed: set[str]) -> int:
        ring = load_ring(storage, "p", completed.__contains__)
        return 0 if ring is None else len(ring.values)

    assert buckets_when(set()) == 2
    assert buckets_when({"20260102000000000"}) == 8
    storage.put(f"{FOLDERS[0]}/p/20260101000000000.commit", b"")
    assert buckets_when(set()) == 4
    storage.put(f"{FOLDERS[0]}/p/20260101000000000.hashing_meta", b"{}")
    with pytest.raises(CorruptTableError, match="hashing metadata"):
        buckets_when(set())


def test_writes_go_on_after_hudi_split_the_buckets(tmp_path: Path) -> None:
    table = golden_table("v9_idx_consistent_split", tmp_path)
    rows = table.scan().to_arrow()
    before = {row["id"]: row["_hoodie_file_name"][:36] for row in rows.to_pylist()}
    data = rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie")])
    table.upsert(data, options=CONSISTENT)
    after = {row["id"]: row["_hoodie_file_name"][:36] for row in table.scan().to_arrow().to_pylist()}
    assert after == before
    assert len(set(after.values())) == 4


@pytest.mark.parametrize("index", [{}, {"hoodie.index.type": "SIMPLE"}, {"hoodie.index.type": "BUCKET"}])
def test_another_index_is_refused(tmp_path: Path, index: dict[str, str]) -> None:
    table = golden_table("v9_idx_consistent", tmp_path)
    with pytest.raises(InvalidError, match=r"bucket\.engine=CONSISTENT_HASHING"):
        table.upsert(table.scan().to_arrow().slice(0, 1), options=index)


def test_a_write_that_is_to_wait_for_a_pending_resizing_names_it(tmp_path: Path) -> None:
    table = golden_table("v9_idx_consistent_dual_write", tmp_path)
    waits = {"hoodie.clustering.updates.strategy": "SparkRejectUpdateStrategy"}
    with pytest.raises(ConflictError, match=r"splits or merges.*20261121092353217"):
        table.upsert(table.scan().to_arrow().slice(0, 1), options={**CONSISTENT, **waits})


@pytest.mark.parametrize("name", ["v6_idx_consistent", "v9_idx_consistent", "v9_idx_consistent_split"])
def test_partitions_that_real_hudi_wrote_are_overwritten(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    rows = table.scan().to_arrow()
    kept, path = rows.slice(0, 1), rows["_hoodie_partition_path"][0].as_py()
    others = [row for row in rows.to_pylist() if row["_hoodie_partition_path"] != path]
    keys = sorted(row["_hoodie_record_key"] for row in [*others, *kept.to_pylist()])
    table.insert_overwrite(kept, options=CONSISTENT)
    assert sorted(table.scan().to_arrow()["_hoodie_record_key"].to_pylist()) == keys
    table.upsert(table.scan().to_arrow(), options=CONSISTENT)
    assert sorted(table.scan().to_arrow()["_hoodie_record_key"].to_pylist()) == keys
    assert errors(table) == []


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "content",
    [DEEP, "[]", '{"nodes": [1]}', '{"nodes": [{"value": "x"}]}'],
    ids=["deep", "list", "number", "no number"],
)
def test_a_ring_that_is_none_is_corrupt(content: str) -> None:
    storage = MemoryStorage("memory://deep-ring")
    storage.put(f"{FOLDERS[0]}/p/{FIRST_RING_INSTANT}.hashing_meta", content.encode())

    with pytest.raises(CorruptTableError, match="hashing metadata"):
        load_ring(storage, "p", lambda instant: True)


def test_nodes_of_a_plan_that_are_nested_without_end_are_an_error() -> None:
    with pytest.raises(ValueError, match="node"):
        decode_nodes(DEEP)
