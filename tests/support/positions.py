"""The positions in the log files of a table, and the rows of base files that they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.formats.log_files import block_deletes, block_rows, log_blocks
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block, scan_blocks
from drawstring.formats.log_native import NativeBlock
from drawstring.formats.record_positions import decode_bitmap, decode_list
from drawstring.model.files import BaseFile, FileStatus, LogFile
from drawstring.schema.fields import KEY_ALONE, RECORD_KEY
from drawstring.table import Table
from drawstring.testing import context_of


@dataclass(frozen=True)
class Logged:
    """A data or delete block: its instant, its record keys, and their positions if it has them."""

    instant: str
    kind: BlockType
    keys: list[str]
    positions: list[int] | None
    is_partial: bool
    base: BaseFile | None


def _files(table: Table) -> list[FileStatus]:
    storage = context_of(table).storage
    folders = ["", *(each for each in storage.list_folders("") if each != ".hoodie")]
    return [status for folder in folders for status in storage.list_files(folder)]


def logged(table: Table) -> list[Logged]:
    """Return the blocks of all log files of a table, the oldest first."""
    files = _files(table)
    bases = [base for base in map(BaseFile.parse, files) if base is not None]
    logs = [log for log in map(LogFile.parse, files) if log is not None and not log.is_cdc]
    return [each for log in sorted(logs, key=lambda log: log.order) for each in _blocks(table, log, bases)]


def _blocks(table: Table, log: LogFile, bases: list[BaseFile]) -> Iterator[Logged]:
    with context_of(table).storage.open(log.status.path) as file:
        for block in log_blocks(file, log):
            if block.kind is BlockType.DELETE:
                keys = block_deletes(file, block).keys.to_pylist()
            else:
                read = block_rows(file, block, KEY_ALONE)
                keys = [key for batch in read for key in batch.column(0).to_pylist()]
            text = block.header.get(HeaderKey.RECORD_POSITIONS)
            instant = block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
            assert (text is None) == (instant is None)
            found = [base for base in bases if (base.file_id, base.instant) == (log.file_id, instant)]
            decode = decode_list if isinstance(block, NativeBlock) else decode_bitmap
            yield Logged(
                block.instant or log.instant,
                block.kind,
                keys,
                None if text is None else decode(text).tolist(),
                block.is_partial,
                found[0] if found else None,
            )


def check_positions(table: Table) -> list[Logged]:
    """Check that positions lead to the records, in every log file whose base file is there; return them."""
    found = logged(table)
    for each in found:
        if each.base is not None:
            with context_of(table).storage.open(each.base.status.path) as file:
                stored = pq.read_table(file, columns=[RECORD_KEY]).column(0).to_pylist()
            assert each.positions is not None
            assert [stored[position] for position in each.positions] == each.keys
    return found


def relabel(folder: Path, header: Mapping[HeaderKey, str]) -> None:
    """Change headers of the only block of the only inline log file in a folder."""
    (log,) = (path for path in folder.iterdir() if ".log." in path.name and not path.name.endswith(".crc"))
    content = log.read_bytes()
    (block,) = scan_blocks(pa.BufferReader(content), len(content))
    body = content[block.content_offset : block.content_offset + block.content_bytes]
    log.write_bytes(encode_block(block.kind, {**block.header, **header}, body))
