"""The writers of log files, by the log format that the version of a table prescribes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from drawstring.filegroups.write.inline_log import write_inline_log
from drawstring.filegroups.write.log_content import LogContent, LogTarget
from drawstring.filegroups.write.native_log import write_native_logs
from drawstring.model.commit import WriteStat
from drawstring.model.table_version import LogFormat

LOG_WRITERS: Final[Mapping[LogFormat, Callable[[LogTarget, Iterator[LogContent]], list[WriteStat]]]] = {
    LogFormat.INLINE: write_inline_log,
    LogFormat.NATIVE: write_native_logs,
}
"""Each writes one or several pieces as new log files, and returns the statistics of each file."""
