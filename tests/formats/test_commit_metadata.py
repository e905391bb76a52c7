"""Commit metadata of real tables, both layouts, there and back."""

from __future__ import annotations

import json

import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.formats import schemas
from drawstring.formats.avro.container import decode_container, encode_container
from drawstring.formats.metadata.commit import decode_commit, encode_commit
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.table_version import LAYOUT_1, LAYOUT_2, LAYOUTS, TimelineLayout
from tests.support.hudi_files import data

COMMITS = [
    "v6_delete.commit",
    "v6_log.deltacommit",
    "v6_overwrite.replacecommit",
    "v9_delete.commit",
    "v9_log.deltacommit",
    "v9_overwrite.replacecommit",
]


def test_a_rewritten_base_file_is_read_from_json() -> None:
    meta = decode_commit(data("v6_delete.commit"))

    assert meta.operation == "DELETE"
    assert not meta.compacted
    assert meta.schema_json is not None
    assert json.loads(meta.schema_json)["name"] == "v6_cow_ops_record"
    assert meta.stats[0] == WriteStat(
        partition="p0",
        file_id="a131ef47-fbcf-4237-8cd4-1e5e4a479c50-0",
        path="p0/a131ef47-fbcf-4237-8cd4-1e5e4a479c50-0_0-325-460_20261121091336806.parquet",
        prev_commit="20261121091335540",
        num_writes=6,
        num_deletes=1,
        size_bytes=435447,
        prev_base_file="a131ef47-fbcf-4237-8cd4-1e5e4a479c50-0_0-306-437_20261121091335540.parquet",
        seconds=0.138,
    )


def test_an_appended_log_file_is_read_from_json_and_avro() -> None:
    old, new = (decode_commit(data(name)).stats[0] for name in ("v6_log.deltacommit", "v9_log.deltacommit"))

    assert old.log_version == 3
    assert old.base_file == "9439a826-f914-4203-9808-d40f5c73fc04-0_0-7161-14417_20261121092952167.parquet"
    assert old.log_files is not None
    assert len(old.log_files) == 3
    assert new.log_version == 1
    assert new.base_file == ""
    assert new.log_files == (".57377b09-2248-4548-99ee-4a943ab76f77-0_20261121091721306.log.1_0-1900-3488",)


def test_replaced_file_groups_are_read() -> None:
    meta = decode_commit(data("v9_overwrite.replacecommit"))

    assert meta.operation == WriteOperation.INSERT_OVERWRITE
    assert meta.replaced == {"p0": ("62ceff9f-6947-4ee0-a94e-e16081113a08-0",)}
    assert meta.stats[0].created


def test_an_inflight_profile_is_read_as_stats_without_files() -> None:
    meta = decode_commit(data("v9_delete.inflight"))

    assert {stat.path for stat in meta.stats} == {""}
    assert meta.stats[1].num_updates == 1


def test_an_empty_file_is_empty_metadata() -> None:
    assert decode_commit(b"") == CommitMetadata()


@pytest.mark.parametrize("name", COMMITS)
def test_what_hudi_wrote_is_written_with_the_same_fields_and_values(name: str) -> None:
    original = data(name)
    layout = LAYOUT_2 if original.startswith(b"Obj") else LAYOUT_1

    written = encode_commit(decode_commit(original), layout, "replace" in name)

    if layout is LAYOUT_1:
        assert json.loads(written) == json.loads(original)
        assert list(json.loads(written)) == list(json.loads(original))
    else:
        assert decode_container(written) == decode_container(original)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [*COMMITS, "v9_delete.inflight"])
def test_metadata_survives_either_layout(name: str, layout: TimelineLayout) -> None:
    meta = decode_commit(data(name))

    assert decode_commit(encode_commit(meta, layout, replace=True)) == meta


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_compaction_keeps_its_numbers(layout: TimelineLayout) -> None:
    stat = WriteStat(
        partition="größe=1",
        file_id="f-0",
        path="größe=1/f-0_0-1-2_20240101000000000.parquet",
        prev_commit="20231231000000000",
        num_writes=10,
        num_updates=4,
        size_bytes=5 << 32,
        prev_base_file="old.parquet",
        log_records=7,
        log_blocks=3,
        log_files_compacted=2,
        log_size_compacted=999,
        seconds=1.25,
    )
    meta = CommitMetadata((stat,), WriteOperation.COMPACT, {"schema": "{}", "k": "ü"}, compacted=True)

    assert decode_commit(encode_commit(meta, layout, replace=False)) == meta


def test_equal_metadata_gives_equal_bytes_without_codec_entry() -> None:
    meta = decode_commit(data("v9_delete.commit"))

    first, second = (encode_commit(meta, LAYOUT_2, replace=False) for _ in range(2))

    assert first == second
    assert b"avro.codec" not in first
    schema = json.dumps(schemas.load("commit"), separators=(",", ":")).encode()
    assert schema in data("v9_delete.commit")
    assert schema in first


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"Obj\x01",
        b'{"partitionToWriteStats":{"p":[{"path":5}]}}',
        b'{"partitionToWriteStats":{"p":{"a":1}}}',
        b'{"partitionToWriteStats":[1]}',
        b'{"partitionToWriteStats":{"p":[{"numWrites":"many"}]}}',
        b'{"extraMetadata":[1]}',
        b'{"partitionToReplaceFileIds":{"p":5}}',
        b"[" * 100_000,
    ],
)
def test_content_of_another_shape_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptTableError):
        decode_commit(content)


def test_unknown_fields_and_missing_ones_do_not_matter() -> None:
    meta = decode_commit(b'{"news":1,"partitionToWriteStats":{"p":[{"fileId":"f","recordsStats":{}}]}}')

    assert meta.stats == (WriteStat(partition="p", file_id="f", path="", created=True),)
    assert decode_commit(encode_container(schemas.compact("commit"), {})) == CommitMetadata()
