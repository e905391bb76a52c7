"""The key join: which file group a key is in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from drawstring.base.clock import SeededIds, SystemIds
from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig, TableType
from drawstring.engine.local import LocalEngine
from drawstring.index.bloom_pruning import BloomPruning
from drawstring.index.bucket import BucketIndex
from drawstring.index.factory import choose_index
from drawstring.index.global_index import GlobalIndex
from drawstring.index.protocol import LOCATION, LOCATION_SCHEMA, UNKNOWN, Index, Location
from drawstring.index.record_index import GlobalRecordIndex, PartitionedRecordIndex
from drawstring.index.simple import SimpleIndex, one_location_per_key
from drawstring.index.tag_context import TagContext
from drawstring.model.files import FileSlice, TaskContext
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.timeline import Timeline
from tests.support.rows import held, rides
from tests.support.tables import create, table_types

HELD = {"rome": {"f1": ["a", "b"], "f2": ["c"]}, "oslo": {"f3": ["a"]}, "bern": {"f4": ["a"]}}


def slices_of(partition: str) -> list[FileSlice]:
    return [FileSlice(partition, file_id, "1", None) for file_id in HELD.get(partition, {})]


class Held:
    """Slices of a table that is not there."""

    settings = SimpleNamespace(finds_positions=False)

    def slices(self, partition: str) -> list[FileSlice]:
        return slices_of(partition)

    def key_reader(self, output: pa.Schema) -> Callable[[FileSlice], Iterator[pa.RecordBatch]]:
        def read_keys(file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
            assert file_slice.partition != "bern", "no row is for this partition"
            keys = HELD[file_slice.partition][file_slice.file_id]
            constants = (file_slice.partition, file_slice.file_id, False)
            columns = [pa.array(keys), *(pa.repeat(value, len(keys)) for value in constants)]
            yield pa.RecordBatch.from_arrays(columns, schema=output)

        return read_keys


def rows_of(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[tuple[object, ...]]:
    for batch in batches:
        yield from (
            tuple(row.values()) for row in batch.select([RECORD_KEY, PARTITION_PATH, LOCATION]).to_pylist()
        )


def test_keys_are_found_in_the_partitions_of_their_rows_only() -> None:
    schema = pa.schema([("fare", pa.int64()), (RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string())])
    incoming = [("a", "rome"), ("a", "oslo"), ("a", "turin"), ("c", "rome"), ("c", "oslo"), ("b", "rome")]
    batches = [
        pa.RecordBatch.from_pylist([{"fare": 1, RECORD_KEY: key, PARTITION_PATH: path}], schema)
        for key, path in incoming
    ]
    rows = LocalEngine(threads=2).rows(schema, batches).persist()
    found = SimpleIndex().tag_location(rows, cast(TagContext, Held())).run(rows_of)
    assert sorted(found) == sorted(
        [
            ("a", "rome", "f1"),
            ("a", "oslo", "f3"),
            ("a", "turin", None),
            ("c", "rome", "f2"),
            ("c", "oslo", None),
            ("b", "rome", "f1"),
        ]
    )
    rows.release()


def test_a_key_that_was_deleted_goes_where_it_lives_else_to_one_place_that_knows_it() -> None:
    found = [
        ("moved", "rome", "f1", True),
        ("moved", "rome", "f2", False),
        ("gone", "rome", "f2", True),
        ("gone", "rome", "f1", True),
        ("gone", "oslo", "f9", True),
        ("twice", "rome", "f1", False),
        ("twice", "rome", "f2", False),
        ("new", "rome", None, None),
    ]
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(LOCATION_SCHEMA.names, row, strict=True)) for row in found], LOCATION_SCHEMA
    )
    [chosen] = one_location_per_key(iter([batch]))
    assert [tuple(row.values()) for row in chosen.to_pylist()] == [
        ("moved", "rome", "f2"),
        ("gone", "rome", "f1"),
        ("gone", "oslo", "f9"),
        ("twice", "rome", "f1"),
        ("twice", "rome", "f2"),
        ("new", "rome", None),
    ]


def test_a_location_finds_its_slice_a_new_key_none_and_a_lost_group_is_a_conflict() -> None:
    index, slices = SimpleIndex(), slices_of("rome")
    assert index.slice_for(Location.file_group("f2"), slices) is slices[1]
    assert index.slice_for(UNKNOWN, slices) is None
    with pytest.raises(ConflictError, match="File group f9 was removed"):
        index.slice_for(Location.file_group("f9"), slices)
    assert len(index.new_file_id(UNKNOWN, SeededIds(1))) == 38


@pytest.mark.parametrize(
    ("kind", "partitioned", "index"),
    [
        ("SIMPLE", True, SimpleIndex()),
        ("BLOOM", True, SimpleIndex(BloomPruning())),
        ("GLOBAL_SIMPLE", True, GlobalIndex()),
        ("GLOBAL_BLOOM", True, GlobalIndex(pruning=BloomPruning(is_global=True))),
        ("GLOBAL_SIMPLE", False, SimpleIndex()),
        ("GLOBAL_BLOOM", False, SimpleIndex(BloomPruning())),
        ("RECORD_INDEX", True, GlobalRecordIndex(None, False)),
        ("GLOBAL_RECORD_LEVEL_INDEX", True, GlobalRecordIndex(None, False)),
        ("RECORD_LEVEL_INDEX", True, PartitionedRecordIndex()),
        ("RECORD_INDEX", False, PartitionedRecordIndex(None, False)),
        ("BUCKET", True, BucketIndex(4, ("id",))),
    ],
)
def test_an_index_is_chosen_by_its_name(kind: str, partitioned: bool, index: Index) -> None:
    buckets = {"hoodie.bucket.index.num.buckets": "4"} if kind == "BUCKET" else {}
    options = WriteOptions.parse({"hoodie.index.type": kind, **buckets})
    assert chosen(options, config_of(partitioned)) == index


def test_an_index_that_does_not_exist_yet_is_named() -> None:
    with pytest.raises(UnsupportedError, match="HBASE is not available yet"):
        chosen(WriteOptions.parse({}), replace(config_of(True), index_type="HBASE"))


def test_consistent_hashing_is_for_merge_on_read_tables() -> None:
    engine = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    with pytest.raises(InvalidError, match="needs a MERGE_ON_READ table"):
        chosen(WriteOptions.parse(engine), config_of(True))


def chosen(options: WriteOptions, config: TableConfig) -> Index:
    return choose_index(options, config, StorageSpec("/t"), Timeline((), None))


def config_of(partitioned: bool) -> TableConfig:
    return TableConfig(
        "t",
        TableType.COPY_ON_WRITE,
        9,
        2,
        record_key_fields=("id",),
        partition_fields=("city",) if partitioned else (),
    )


@table_types
def test_random_file_ids_do_not_look_like_those_of_buckets(
    table_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bucket_like(self: SystemIds) -> str:
        return f"00000012{str(uuid.uuid4())[8:]}"

    monkeypatch.setattr(SystemIds, "uuid", bucket_like)
    table = create(table_type=table_type)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    table.services.cluster()
    table.upsert(rides(("a", "rome", 3, 3.0)))
    assert held(table) == [("a", "rome", 3, 3.0)]
