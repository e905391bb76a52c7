"""Rollback command blocks of version 6, which invalidate log blocks that cannot be deleted.

A log file of version 6 may hold blocks of several writes, so it stays; a command block after them tells
readers which write's blocks to ignore (specification: Rollback).
"""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import ConflictError
from drawstring.formats.log_inline.blocks import ROLLBACK_COMMAND, BlockType, HeaderKey, encode_block
from drawstring.model.files import FileStatus, LogFile, join_path
from drawstring.model.plans import RollbackRequest
from drawstring.storage.protocol import Storage

_FIRST_TOKEN: Final = "1-0-1"


def append_command(storage: Storage, by: str, target: str, request: RollbackRequest) -> FileStatus:
    """Append a rollback command to a file slice, as a log file of its own; idempotent."""
    header = {
        HeaderKey.INSTANT_TIME: by,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    block = encode_block(BlockType.COMMAND, header, b"")
    logs = _logs_of(storage, request)
    for log in logs:
        if log.status.size_bytes == len(block) and storage.read(log.status.path) == block:
            return log.status
    version = max((log.version for log in logs), default=0) + 1
    token = logs[-1].write_token if logs else _FIRST_TOKEN
    name = LogFile.name_of(request.file_id, request.base_instant, version, token or _FIRST_TOKEN)
    path = join_path(request.partition, name)
    if not storage.put_if_absent(path, block):
        raise ConflictError(
            f"Another writer appends to the file slice {request.base_instant} of {request.file_id}, to which"
            f" the rollback {by} of {target} appends as well. Retry the write.",
            instant=target,
            path=path,
        )
    return FileStatus(path, len(block))


def _logs_of(storage: Storage, request: RollbackRequest) -> list[LogFile]:
    """Return the log files of a file slice of version 6 in order."""
    parsed = (LogFile.parse(status) for status in storage.list_files(request.partition))
    slice_key = (request.file_id, request.base_instant)
    logs = [log for log in parsed if log is not None and (log.file_id, log.instant) == slice_key]
    return sorted((log for log in logs if not log.is_cdc), key=lambda log: log.order)
