"""The schema in the metadata of a large commit, of which the statistics are not decoded."""

from __future__ import annotations

import io

import fastavro
import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.formats.avro.container import encode_long, read_long
from drawstring.formats.metadata import commit
from drawstring.formats.metadata.commit import decode_head, encode_commit
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.table_version import LAYOUTS

EXTRA = {"schema": '{"type": "record"}', "more": "text"}
COUNTS = {3: True, 20_000: False}
"""Numbers of files, and whether the metadata of so many is decoded as a whole in any case."""


def encoded(count: int) -> bytes:
    stats = tuple(WriteStat(partition="p", file_id=f"f{each}", path=f"p/f{each}") for each in range(count))
    layout = next(each for each in LAYOUTS if each.has_completion_times)
    return encode_commit(CommitMetadata(stats=stats, extra=EXTRA), layout, False)


@pytest.mark.parametrize(("count", "is_whole"), COUNTS.items())
def test_the_schema_of_a_large_commit_is_read_without_its_statistics(count: int, is_whole: bool) -> None:
    content = encoded(count)
    head, whole = decode_head(content, whole=False)
    assert (head.extra, head.schema_json, whole) == (EXTRA, EXTRA["schema"], is_whole)
    assert len(head.stats) == (count if is_whole else 0)
    assert len(decode_head(content, whole=True)[0].stats) == count


def test_a_large_commit_that_was_cut_off_is_told() -> None:
    with pytest.raises(CorruptTableError):
        decode_head(encoded(20_000)[:-5_000], whole=False)


def test_the_statistics_of_a_large_commit_are_passed_over() -> None:
    content = bytearray(encoded(20_000))
    content[100_000:101_000] = b"\xff" * 1_000
    head, _ = decode_head(bytes(content), whole=False)
    assert head.extra == EXTRA
    with pytest.raises(CorruptTableError):
        decode_head(bytes(content), whole=True)


def test_the_schema_of_a_large_commit_of_another_writer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sized = encoded(20_000)
    monkeypatch.setattr(commit, "_STATS_READ", 1_000_000)
    other = encoded(20_000)
    assert len(other) != len(sized)
    assert decode_head(other, whole=False)[0].extra == EXTRA
    assert decode_head(other, whole=True)[0] == decode_head(sized, whole=True)[0]
    assert list(fastavro.reader(io.BytesIO(sized))) == list(fastavro.reader(io.BytesIO(other)))


@pytest.mark.parametrize("size", [-1, 1 << 40])
def test_a_size_of_statistics_that_cannot_be_is_damage(size: int) -> None:
    content = encoded(20_000)
    head = b"\x02" + encode_long(-1)  # a map with one partition
    at = content.index(head) + len(head)
    known = encode_long(read_long(io.BytesIO(content[at:])))
    damaged = content[:at] + encode_long(size) + content[at + len(known) :]
    with pytest.raises(CorruptTableError):
        decode_head(damaged, whole=False)
