"""Compression of the HFiles that are written: files and large log blocks have it, small ones do not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.formats.hfile import Codec, encode_hfile
from drawstring.formats.log_inline import HeaderKey
from drawstring.metadata.log_format import encode_log_blocks
from drawstring.metadata.record_index_lookup import location_rows
from tests.support.hfiles import reader


@pytest.mark.parametrize("codec", [Codec.GZ, Codec.NONE])
def test_a_written_file_is_read_whatever_its_compression(codec: Codec) -> None:
    pairs = [(f"key{number:06}", b"value" * 9) for number in range(20_000)]
    keys, values = (pa.array(each) for each in zip(*pairs, strict=True))
    data = encode_hfile(keys, values, {}, 0, codec)
    assert (len(data) < 200_000) == (codec is Codec.GZ)
    assert [key for each in reader(data).scan() for key in each.keys.to_pylist()] == keys.to_pylist()
    found = reader(data).seek(pa.array(["key000001", "key019999", "other"]))
    assert [key for each in found for key in each.keys.to_pylist()] == ["key000001", "key019999"]


def test_what_is_stored_of_many_records_is_compressed_and_of_few_is_not() -> None:
    def stored(count: int) -> bytes:
        keys = pa.array([f"key{number:06}" for number in range(count)])
        columns = (pa.array(["p"] * count), pa.array(["f" * 36] * count), pa.array([7] * count, pa.int64()))
        none = pa.array([], pa.string())
        header = {HeaderKey.INSTANT_TIME: "1"}
        return encode_log_blocks(header, "record_index", location_rows(keys, *columns), none, 0)

    few, many = stored(10), stored(20_000)
    assert (b"ffffffff" in few, b"ffffffff" in many) == (True, False)
    assert len(many) < 40 * 20_000
