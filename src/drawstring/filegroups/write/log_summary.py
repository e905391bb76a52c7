"""Key summary of a log file, built from its blocks."""

from __future__ import annotations

import pyarrow as pa

from drawstring.filegroups.read.open_logs import about_log, open_log, scan_log
from drawstring.formats.bloom.key_summary import StoredSummary
from drawstring.formats.log_files import block_deletes, block_rows
from drawstring.formats.log_index import LogKeys
from drawstring.formats.log_inline import BlockType, LogBlock
from drawstring.model.files import LogFile
from drawstring.schema.meta import KEY_ALONE, RECORD_KEY
from drawstring.storage.protocol import Storage


def summarise_log(storage: Storage, log: LogFile) -> tuple[StoredSummary, bool]:
    """Return the key summary of a log file without an index, and whether it has blocks besides records.

    The summary includes keys of writes that are not visible: a filter may have false positives.

    Args:
        storage: storage of the table.
        log: the log file; its records have meta columns.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    log_keys = LogKeys()
    is_opaque = False
    with open_log(storage, log) as file:
        for block in scan_log(storage, log, file):
            with about_log(log, block.instant):
                keys = _keys(file, block)
            for each in keys or []:
                log_keys.add(each.drop_null())
            is_opaque |= keys is None or bool(block.compacted_instants)
    return log_keys.summary(), is_opaque


def _keys(file: pa.NativeFile, block: LogBlock) -> list[pa.Array] | None:
    """Return the keys of a block; None for a command block or a torn block."""
    if block.kind.is_data:
        batches = list(block_rows(file, block, KEY_ALONE))
        if any(RECORD_KEY not in batch.schema.names for batch in batches):
            return None
        return [batch.column(RECORD_KEY).cast(pa.string()) for batch in batches]
    if block.kind is BlockType.DELETE:
        return [block_deletes(file, block).keys]
    return None
