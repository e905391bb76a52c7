"""Archiving with a metadata table: the order in which both timelines become shorter, as in Hudi 1.2.0.

table             only instants that completed before the last compaction of the metadata table
metadata table    only instants before the first instant of the table, and before its own last compaction

So whoever reads log files of the metadata table finds their instants on one of the active timelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.keys.services import Archiving
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.instant import Action, Instant, is_build, time_of
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableContext


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be archived of a table and of its metadata table.

    Attributes:
        instants: of the table, oldest first.
        own: of the metadata table, oldest first.
    """

    instants: Sequence[Instant]
    own: Sequence[Instant] = ()

    def has(self, other: Choice) -> bool:
        """Return whether all that was chosen before is still to be archived."""
        return {*self.instants} >= {*other.instants} and {*self.own} >= {*other.own}


def choice_with_metadata(
    context: TableContext, archiving: Archiving, timeline: Timeline, chosen: Sequence[Instant]
) -> Choice:
    """Return what is to be archived of a table that has a metadata table.

    Args:
        context: the table.
        archiving: how many instants stay.
        timeline: of the table.
        chosen: instants of the table that could be archived without a metadata table, oldest first.
    """
    try:
        own = MetadataWriter.of(context.storage, context.clock, context.ids).store.load()
    except (CorruptTableError, InvalidError, UnsupportedError):
        return Choice(chosen)  # it is damaged: the next write switches it off
    last = _last_compaction(own)
    return Choice(_before(last, chosen), _old_instants(own, timeline, archiving, last))


def _last_compaction(own: Timeline) -> str:
    return max((each.requested for each in own.completed_of(Action.COMMIT)), default="")


def _before(last: str, chosen: Sequence[Instant]) -> list[Instant]:
    return list(takewhile(lambda each: time_of(each) <= last, chosen))


def _old_instants(own: Timeline, timeline: Timeline, archiving: Archiving, last: str) -> list[Instant]:
    """Return the instants of the metadata table to archive, oldest first."""
    completed = [each for each in own.instants if each.is_completed]
    if len(own.writes()) <= archiving.commits_max + 1:
        return []
    first = min((each.requested for each in timeline.instants), default="")
    surplus = completed[: -(archiving.commits_min + 1)]
    leaving = list(takewhile(lambda each: each.requested < min(first, last), surplus))
    # A partition that was built again supersedes files that older instants name: these may not stay longer.
    oldest = min((time_of(each) for each in completed if each not in leaving), default="")
    has_later = any(is_build(each.requested) and time_of(each) > oldest for each in leaving)
    return [] if has_later else leaving
