"""The ends of ORC stripes that unpack to far more than they take."""

from __future__ import annotations

import tracemalloc
import zlib
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from drawstring.base.errors import CorruptTableError
from drawstring.formats.data_file import Selection, read_base
from drawstring.formats.hfile.blocks import encode_message
from drawstring.plugins.orc.reader import stripe_zones
from drawstring.storage.memory import MemoryStorage

CHUNK_BYTES = 64 << 10
BOMB = bytes(64 << 20)


def zones(stored: bytes, codec: str, *, size: int | None = None, stripes: int = 1) -> list[str]:
    """Return the zones of a file that is nothing but the footer of its stripes."""
    place = encode_message([(1, 0), (2, 0), (3, 0), (4, len(stored) if size is None else size)])
    tail = encode_message([(2, encode_message([(3, place)] * stripes))])
    file: Any = SimpleNamespace(
        compression=codec,
        compression_size=CHUNK_BYTES,
        reader=SimpleNamespace(serialized_file_tail=lambda: tail),
    )
    return stripe_zones(file, pa.BufferReader(stored))


def compressed(plain: bytes, codec: str) -> bytes:
    if codec == "ZLIB":
        packer = zlib.compressobj(wbits=-15)
        return packer.compress(plain) + packer.flush()
    return bytes(pa.compress(plain, codec.lower(), asbytes=True))


def chunk(plain: bytes, codec: str) -> bytes:
    stored = compressed(plain, codec)
    return (len(stored) << 1).to_bytes(3, "little") + stored


ZONE = encode_message([(3, b"Asia/Tokyo")])


@pytest.mark.parametrize("codec", ["ZLIB", "SNAPPY", "ZSTD"])
def test_the_zone_is_read_in_parts(codec: str) -> None:
    assert zones(chunk(ZONE[:4], codec) + chunk(ZONE[4:], codec), codec) == ["Asia/Tokyo"]


@pytest.mark.parametrize("codec", ["ZLIB", "SNAPPY", "ZSTD"])
def test_a_part_that_unpacks_without_end_is_not_unpacked(codec: str) -> None:
    stored = chunk(BOMB, codec)
    before = pa.default_memory_pool().max_memory()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="decompress"):
            zones(stored, codec)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert pa.default_memory_pool().max_memory() - before < 16 << 20


def test_many_parts_do_not_add_up_without_end() -> None:
    stored = chunk(bytes(CHUNK_BYTES), "ZLIB") * 1_000
    with pytest.raises(ValueError, match="more than 16777216 bytes"):
        zones(stored, "ZLIB")


@pytest.mark.parametrize("size", [1 << 40, 1_000])
def test_a_footer_that_is_not_in_the_file_is_not_read(size: int) -> None:
    with pytest.raises(ValueError, match=r"longer than the file|stripe footer claims"):
        zones(chunk(ZONE, "ZLIB"), "ZLIB", size=size)


def test_many_stripes_do_not_share_one_footer() -> None:
    with pytest.raises(ValueError, match="longer than the file"):
        zones(chunk(ZONE, "ZLIB"), "ZLIB", stripes=10_000)


def test_a_part_that_is_cut_off_is_damage() -> None:
    stored = chunk(ZONE, "ZLIB")
    with pytest.raises(ValueError, match="cut off"):
        zones((len(stored) - 3 - 2 << 1).to_bytes(3, "little") + stored[3:-2], "ZLIB")


def test_an_orc_file_with_such_a_footer_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"at": pa.array([0, 1], pa.timestamp("us"))})
    sink = pa.BufferOutputStream()
    orc.write_table(rows, sink, compression="zlib")
    storage = MemoryStorage("memory://orc-zones")
    storage.put("a.orc", sink.getvalue().to_pybytes())
    assert len(list(read_base(storage, "a.orc", Selection(["at"])))) == 1
    monkeypatch.setattr("drawstring.plugins.orc.footer._CHUNK_BYTES_MAX", 8)
    with pytest.raises(CorruptTableError, match="time zones cannot be read"):
        list(read_base(storage, "a.orc", Selection(["at"])))
