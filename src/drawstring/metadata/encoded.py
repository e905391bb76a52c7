"""Delta commits of the metadata table that are encoded before they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from drawstring.config.table.config import TableConfig
from drawstring.model.commit import WriteStat

_BYTES_MAX: Final = 32 << 20
"""Bytes of log files that are encoded before they are written."""


@dataclass(frozen=True, slots=True)
class EncodedLog:
    """A log file of the metadata table, not stored yet.

    Attributes:
        stat: its statistics, for the delta commit.
        content: of the file.
    """

    stat: WriteStat
    content: bytes


@dataclass(frozen=True, slots=True)
class EncodedDelta:
    """A delta commit of the metadata table, not stored yet.

    Attributes:
        of: content of the completed file in the table of which it is made.
        config: settings of the metadata table for which it is made.
        logs: its log files.
        content: of its own completed file.
    """

    of: bytes
    config: TableConfig
    logs: tuple[EncodedLog, ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class EncodedCommit:
    """An instant that was encoded before its completion is claimed, a write before the table lock is taken.

    Attributes:
        content: of its completed file.
        delta: what the metadata table gets; None if that is found out under the lock.
    """

    content: bytes
    delta: EncodedDelta | None


def in_parts(logs: Iterable[EncodedLog]) -> Iterator[list[EncodedLog]]:
    """Yield log files in parts that may be held in memory."""
    part: list[EncodedLog] = []
    size_bytes = 0
    for log in logs:
        part.append(log)
        size_bytes += len(log.content)
        if size_bytes >= _BYTES_MAX:
            yield part
            part, size_bytes = [], 0
    yield part
