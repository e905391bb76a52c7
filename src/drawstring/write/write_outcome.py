"""The result of a write: what it committed, for the table services that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.model.commit import WriteStat
from drawstring.model.result import CommitResult
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableContext


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """A finished write; its table lock is released.

    Attributes:
        context: the table.
        config: configuration of the table.
        options: options of the write.
        result: result for the caller; without an instant if nothing was committed.
        timeline: timeline after the write.
        stats: statistics of its files.
        merges_files: whether small files that it wrote may be merged (`append`).
    """

    context: TableContext
    config: TableConfig
    options: WriteOptions
    result: CommitResult
    timeline: Timeline
    stats: Sequence[WriteStat] = ()
    merges_files: bool = False

    @property
    def store(self) -> TimelineStore:
        """A new timeline store of the table."""
        return TimelineStore(self.context.storage, self.config, self.context.clock)
