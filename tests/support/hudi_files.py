"""Small files that Hudi 1.2.0 wrote, and what the tests do with them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from drawstring.formats.log_inline import LogBlock, scan_blocks

DATA = Path(__file__).parents[1] / "formats/data"


def data(name: str) -> bytes:
    """Return a file that Hudi wrote."""
    return (DATA / name).read_bytes()


def scan(content: bytes) -> list[LogBlock]:
    """Return the blocks of a log file held in memory."""
    return scan_blocks(pa.BufferReader(content), len(content))


def content_of(file: bytes, block: LogBlock) -> bytes:
    """Return the content of a block of a log file held in memory."""
    return file[block.content_offset : block.content_offset + block.content_bytes]
