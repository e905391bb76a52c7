"""Working out from the blocks of a log file which record keys it may have."""

from __future__ import annotations

import pyarrow as pa

from drawstring.filegroups.read.log_records import about_log, block_rows, open_log, scan_log
from drawstring.formats.bloom.key_summary import StoredSummary
from drawstring.formats.log_index import LogKeys
from drawstring.formats.log_inline import BlockType, LogBlock, decode_deletes, read_content
from drawstring.model.files import LogFile
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage


def summarise_log(storage: Storage, log: LogFile) -> tuple[StoredSummary, bool]:
    """Return the keys of a log file that does not tell them, and whether it holds more than keys tell.

    Keys of writes that do not count are among them: a filter may say yes for a key that is not there.

    Args:
        storage: the table's files.
        log: the file; its records have meta columns.

    Raises:
        CorruptTableError: it is gone or damaged.
    """
    found = LogKeys()
    is_opaque = False
    with open_log(storage, log) as file:
        for block in scan_log(log, file):
            with about_log(log, block.instant):
                keys = _keys(file, block)
            for each in keys or []:
                found.add(each.drop_null())
            is_opaque |= keys is None or bool(block.compacted_instants)
    return found.summary(), is_opaque


def _keys(file: pa.NativeFile, block: LogBlock) -> list[pa.Array] | None:
    """Return the keys of a block, None for one that is about other blocks or torn."""
    if block.kind.is_data:
        batches = list(block_rows(file, block, [RECORD_KEY]))
        if any(RECORD_KEY not in batch.schema.names for batch in batches):
            return None
        return [batch.column(RECORD_KEY).cast(pa.string()) for batch in batches]
    if block.kind is BlockType.DELETE:
        return [decode_deletes(read_content(file, block)).keys]
    return None
