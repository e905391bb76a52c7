"""The log format: log files with inline blocks, format version 1 (specification: Log Format)."""

from drawstring.formats.log_inline.blocks import (
    BlockType,
    HeaderKey,
    LogBlock,
    block_frame,
    encode_block,
    read_content,
    scan_blocks,
)
from drawstring.formats.log_inline.deletes import DeleteRecords, decode_deletes, encode_deletes

__all__ = [
    "BlockType",
    "DeleteRecords",
    "HeaderKey",
    "LogBlock",
    "block_frame",
    "decode_deletes",
    "encode_block",
    "encode_deletes",
    "read_content",
    "scan_blocks",
]
