"""The result of a write: what it committed, for the table services that follow."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.model.commit import WriteStat
from drawstring.model.result import CommitResult
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableContext

_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Committed:
    """A write that is over; its table lock is released.

    Attributes:
        state: the table.
        config: of the table.
        options: of the write.
        result: what the caller of the write gets; without an instant where nothing was committed.
        timeline: as the write leaves it.
        stats: of its files.
        merges_files: whether the small files that it wrote may be merged (`append`).
    """

    state: TableContext
    config: TableConfig
    options: WriteOptions
    result: CommitResult
    timeline: Timeline
    stats: Sequence[WriteStat] = ()
    merges_files: bool = False

    @property
    def store(self) -> TimelineStore:
        """A fresh look at the table's timeline."""
        return TimelineStore(self.state.storage, self.config, self.state.clock)
