"""Log files of real tables, torn ones, and bytes that lie about themselves."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.log_inline import (
    BlockType,
    HeaderKey,
    LogBlock,
    block_frame,
    encode_block,
    read_content,
    scan_blocks,
)
from tests.support.hudi_files import DATA, content_of, data, scan

LOGS = sorted(path.name for path in DATA.iterdir() if path.suffix in (".log", ".cdc"))
WHOLE = [name for name in LOGS if name != "v6_torn.log"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("v6_avro.log", [BlockType.AVRO_DATA]),
        ("v9_avro.log", [BlockType.AVRO_DATA]),
        ("v9_delete.log", [BlockType.DELETE]),
        ("v9_soft_delete.log", [BlockType.AVRO_DATA, BlockType.DELETE]),
        ("v9_parquet.log", [BlockType.PARQUET_DATA]),
        ("v9_partial.log", [BlockType.AVRO_DATA]),
        ("v9_compacted.log", [BlockType.AVRO_DATA, BlockType.DELETE]),
        ("v6_command.log", [BlockType.COMMAND]),
        ("v9.cdc", [BlockType.CDC_DATA]),
        ("v6_torn.log", [BlockType.CORRUPT]),
    ],
)
def test_the_blocks_of_real_files_are_found(name: str, kinds: list[BlockType]) -> None:
    blocks = scan(data(name))

    assert [block.kind for block in blocks] == kinds
    assert blocks[-1].end == len(data(name))


def test_headers_say_what_the_format_says() -> None:
    (avro,) = scan(data("v9_avro.log"))
    (partial,) = scan(data("v9_partial.log"))
    (command,) = scan(data("v6_command.log"))
    compacted, _ = scan(data("v9_compacted.log"))

    assert avro.instant == "20261121091719455"
    assert avro.header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] == "20261121091718831"
    assert avro.schema_json is not None
    assert '"_hoodie_commit_time"' in avro.schema_json
    assert avro.kind.is_data
    assert not avro.is_partial
    assert partial.is_partial
    assert command.rolls_back == "20261121093548498"
    assert command.instant == "20261121093549756"
    assert command.content_bytes == 0
    assert avro.rolls_back is None
    assert compacted.compacted_instants == ("20261121091839691", "20261121091840783", "20261121091841764")
    assert avro.compacted_instants == ()


def test_a_parquet_block_holds_a_whole_parquet_file() -> None:
    file = data("v9_parquet.log")
    (block,) = scan(file)

    content = read_content(pa.BufferReader(file), block)

    assert content == content_of(file, block)
    assert content.startswith(b"PAR1")
    assert content.endswith(b"PAR1")


@pytest.mark.parametrize("name", WHOLE)
def test_a_block_is_written_as_hudi_writes_it(name: str) -> None:
    file = data(name)

    for block in scan(file):
        written = encode_block(block.kind, block.header, content_of(file, block))
        original = file[block.offset : block.end]
        # Only the order of the header's entries is free.
        assert len(written) == len(original)
        assert sorted(written) == sorted(original)
        (again,) = scan(written)
        assert (again.kind, again.header) == (block.kind, block.header)
        assert content_of(written, again) == content_of(file, block)


def test_a_frame_around_a_streamed_content_is_the_block() -> None:
    header = {HeaderKey.INSTANT_TIME: "20240101000000000"}

    head, tail = block_frame(BlockType.AVRO_DATA, header, 3)

    assert head + b"abc" + tail == encode_block(BlockType.AVRO_DATA, header, b"abc")


def block(text: str = "20240101000000000", content: bytes = b"content") -> bytes:
    """Return a small whole block."""
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: text}, content)


def test_reading_goes_on_behind_a_torn_block() -> None:
    torn = block("1", b"x" * 1000)[:500]
    file = block("0") + torn + block("2") + torn

    blocks = scan(file)

    kinds = [each.kind for each in blocks]
    assert kinds == [BlockType.AVRO_DATA, BlockType.CORRUPT, BlockType.AVRO_DATA, BlockType.CORRUPT]
    assert [each.instant for each in blocks] == ["0", None, "2", None]
    assert blocks[1].content_bytes == 500
    assert blocks[-1].end == len(file)


def test_garbage_between_blocks_spoils_only_itself_and_the_block_before() -> None:
    # The block before is not followed by a magic, so readers cannot trust its length.
    blocks = scan(block("0") + block("1") + b"garbage" + block("2"))

    assert [each.instant for each in blocks] == ["0", None, "2"]


def test_garbage_at_the_start_and_at_the_end_is_corrupt() -> None:
    assert [each.kind for each in scan(b"garbage" + block())] == [BlockType.CORRUPT, BlockType.AVRO_DATA]
    assert [each.kind for each in scan(b"#HU")] == [BlockType.CORRUPT]
    assert [each.kind for each in scan(b"#HUDI#")] == [BlockType.CORRUPT]
    assert scan(b"") == []


def test_a_magic_across_two_windows_is_found() -> None:
    for length in range((1 << 20) - 10, (1 << 20) + 3):
        blocks = scan(b"x" * length + block())
        assert [each.kind for each in blocks] == [BlockType.CORRUPT, BlockType.AVRO_DATA]
        assert blocks[1].offset == length


def test_a_header_longer_than_the_first_look_is_read() -> None:
    header = {HeaderKey.INSTANT_TIME: "1", HeaderKey.SCHEMA: "ü" * 50_000, HeaderKey.IS_PARTIAL: "true"}

    (found,) = scan(encode_block(BlockType.PARQUET_DATA, header, b"abc"))

    assert found.header == header
    assert found.content_bytes == 3


class Counting(io.BytesIO):
    """A file that counts what is read of it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.sizes: list[int] = []

    def read(self, size: int | None = -1) -> bytes:
        got = super().read(size)
        self.sizes.append(len(got))
        return got


def counted_scan(content: bytes) -> tuple[list[LogBlock], list[int]]:
    """Return the blocks of a file and how many bytes each read of it took."""
    file = Counting(content)
    return scan_blocks(pa.PythonFile(file, mode="r"), len(content)), file.sizes


def test_scanning_does_not_read_contents() -> None:
    blocks, sizes = counted_scan(block(content=b"x" * (8 << 20)) * 2)

    assert [each.content_bytes for each in blocks] == [8 << 20] * 2
    assert 0 < sum(sizes) < 100_000


@pytest.mark.parametrize(
    "piece",
    [b"#HUDI#", b"#HUDI#\0\0", b"#HUDI#" + struct.pack(">qii", 2**40, 1, 3), b"#", b"#HUDI"],
    ids=repr,
)
def test_damage_is_read_once_however_often_blocks_seem_to_start_in_it(piece: bytes) -> None:
    damage = piece * (60_000 // len(piece)) * (20 if piece in b"#HUDI#" else 1)
    file = block("0") + block("1") + damage + block("2")

    blocks, sizes = counted_scan(file)

    assert [each.instant for each in blocks if each.instant != "1"] == ["0", None, "2"]
    assert sum(sizes) < 2 * len(file) + 100_000
    assert len(sizes) < 20


def test_false_starts_that_cost_a_read_each_are_bounded() -> None:
    start = b"#HUDI#" + struct.pack(">qii", 3 << 20, 1, 3)
    file = start * 20_000 + bytes(3 << 20)
    reader = Counting(file)

    with pytest.raises(CorruptTableError, match="10000 block starts"):
        scan_blocks(pa.PythonFile(reader, mode="r"), len(file))
    assert len(reader.sizes) < 10_100
    assert sum(reader.sizes) < 2 * len(file)


def test_small_blocks_are_not_read_one_by_one() -> None:
    file = block(content=b"") * 5_000

    blocks, sizes = counted_scan(file)

    assert len(blocks) == 5_000
    assert sum(sizes) < 2 * len(file)
    assert len(sizes) < 100


def framed(version: int = 1, kind: int = 3, body: bytes = b"") -> bytes:
    """Return a block with a sound frame around any body."""
    size = 8 + len(body) + 8
    return b"#HUDI#" + struct.pack(">qii", size, version, kind) + body + struct.pack(">q", size + 6)


BODY = struct.pack(">i", 0) + struct.pack(">q", 0) + struct.pack(">i", 0)


@pytest.mark.parametrize(("version", "kind"), [(2, 3), (0, 3), (1, 7), (1, 2), (1, -1), (1, 2**31 - 1)])
def test_an_unknown_version_or_type_is_not_supported(version: int, kind: int) -> None:
    with pytest.raises(UnsupportedError, match="log block at byte 0"):
        scan(framed(version, kind, BODY))


@pytest.mark.parametrize(
    "body",
    [
        struct.pack(">i", -1) + BODY,
        struct.pack(">i", 2**31 - 1) + BODY,
        struct.pack(">iii", 1, 0, 2**31 - 1) + BODY,
        struct.pack(">iii", 1, 0, -1) + BODY,
        struct.pack(">iii", 1, 0, 2) + b"\xff\xff" + BODY,
        struct.pack(">iq", 0, 2**62) + BODY,
        struct.pack(">iq", 0, -1) + BODY,
    ],
)
def test_a_sound_frame_around_a_senseless_header_is_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptTableError, match="at byte 0"):
        scan(framed(body=body))


def test_unknown_header_keys_are_left_out() -> None:
    body = struct.pack(">i", 2) + struct.pack(">ii", 77, 1) + b"x" + struct.pack(">ii", 0, 1) + b"5"

    (found,) = scan(framed(body=body + struct.pack(">q", 0) + struct.pack(">i", 0)))

    assert found.header == {HeaderKey.INSTANT_TIME: "5"}


def sound(blocks: list[LogBlock], size: int) -> bool:
    """Tell whether blocks cover a file from end to end, contents inside them."""
    ends = [0, *(each.end for each in blocks)]
    covered = all(each.offset == end for each, end in zip(blocks, ends, strict=False))
    inside = all(
        each.offset <= each.content_offset and each.content_offset + each.content_bytes <= each.end
        for each in blocks
    )
    return covered and ends[-1] == size and inside


@given(st.sampled_from(LOGS), st.data())
def test_a_flipped_byte_gives_blocks_or_a_clear_error(name: str, drawn: st.DataObject) -> None:
    file = bytearray(data(name) + block())
    at = drawn.draw(st.integers(0, len(file) - 1))
    file[at] ^= drawn.draw(st.integers(1, 255))

    try:
        blocks = scan(bytes(file))
    except (CorruptTableError, UnsupportedError):
        return
    assert sound(blocks, len(file))


@given(st.sampled_from(WHOLE), st.data())
def test_a_cut_file_ends_in_a_corrupt_block(name: str, drawn: st.DataObject) -> None:
    file = data(name)
    bounds = {0, *(each.end for each in scan(file))}
    cut = drawn.draw(st.integers(1, len(file) - 1).filter(lambda length: length not in bounds))

    blocks = scan(file[:cut])

    assert blocks[-1].kind is BlockType.CORRUPT
    assert sound(blocks, cut)


@given(st.lists(st.sampled_from([b"#HUDI#", b"#", b"\x00" * 8, b"\x00\x00\x00\x01", block()]), max_size=30))
def test_any_row_of_pieces_is_covered(pieces: list[bytes]) -> None:
    file = b"".join(pieces)

    try:
        blocks = scan(file)
    except (CorruptTableError, UnsupportedError):
        return
    assert sound(blocks, len(file))
