"""What a write finds."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.index.written import WrittenTable
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """The table before a write.

    Attributes:
        session: the table, locked.
        timeline: as it is before the write.
        time: requested time that the write is going to have.
    """

    session: LockedTable
    timeline: Timeline
    time: str

    def written_table(self, *, names_index: bool = True) -> WrittenTable:
        """Return the table as an index checks it.

        Args:
            names_index: whether the caller or the table names the index of the write.
        """
        session = self.session
        return WrittenTable(session.state.storage, session.config, session.store, self.timeline, names_index)
