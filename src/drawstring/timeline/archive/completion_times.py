"""Completion times of archived writes, read from the archive only where they matter.

A log file of layout 2 belongs to the newest base file that was requested before its write completed. For an
archived write the active timeline does not tell when that was. It matters only if the file group has a base
file that was requested after the write: drawstring keeps such writes on the timeline, Apache Hudi 1.2.0 does
not (`CompletionTimeQueryViewV2` reads them from the archive).
"""

from __future__ import annotations

from threading import Lock

from drawstring.config.table.config import TableConfig
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import open_archive


class ArchivedCompletionTimes:
    """Completion times of the archived writes of one table.

    Args:
        storage: the table's files.
        config: its archive.
    """

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._config = config
        self._lock = Lock()  # several threads slice file groups
        self._since: str | None = None
        self._times: dict[str, str] = {}

    def of(self, requested: str, since: str) -> str:
        """Return when an archived write completed, if that was after a time; otherwise its requested time.

        Args:
            requested: requested time of the write.
            since: completion times up to this one are not looked up.

        Raises:
            CorruptTableError: the archive is damaged.
        """
        with self._lock:
            if self._since is None or since < self._since:
                instants = open_archive(self._storage, self._config).completed(since)
                self._times = {each.requested: each.completed or each.requested for each in instants}
                self._since = since
            return self._times.get(requested, requested)
