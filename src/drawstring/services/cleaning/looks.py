"""What plans of cleans found to be clean, remembered in this process.

A plan that would delete nothing leaves no trace on storage as a rule, and the next one of the process
begins after the writes that this one looked at. Only a plan that had to begin without such memory notes what
it found by a clean without deletions, for other processes.

A clean without deletions is also noted where archiving waits for it. No reader needs one: it costs twelve
flushes, which a loop of small commits would pay again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.keys.clean import Cleaning
from drawstring.model.clean import CleanMetadata, CleanPlan
from drawstring.model.instant import Instant
from drawstring.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class _Look:
    """A plan that found nothing to delete.

    Attributes:
        cleaning: what was retained.
        newest: the newest write then: a restored table, or another one at the address, does not have it.
        clean: requested time of the last clean then; empty for none.
        found: the clean that would have noted it.
    """

    cleaning: Cleaning
    newest: Instant
    clean: str
    found: CleanMetadata


_LOOKS: Final[dict[str, _Look]] = {}
_LOOKS_MAX: Final = 1024


def last_look(
    uri: str, timeline: Timeline, cleaning: Cleaning, last: CleanMetadata | None
) -> CleanMetadata | None:
    """Return what the last plan of this process found, as a clean; None if it is of no use any more.

    Args:
        uri: address of the table.
        timeline: of the table.
        cleaning: what is retained.
        last: the last clean on the timeline, which may have been archived since the plan.
    """
    look = _LOOKS.get(uri)
    if look is None or look.cleaning != cleaning or timeline.write_at(look.newest.requested) != look.newest:
        return None
    return look.found if last is None or last.started == look.clean else None


def remember_look(
    uri: str, timeline: Timeline, cleaning: Cleaning, last: CleanMetadata | None, plan: CleanPlan
) -> None:
    """Remember a plan that would delete nothing.

    Args:
        uri: address of the table.
        timeline: of the table.
        cleaning: what is retained.
        last: the last clean on the timeline.
        plan: the plan.
    """
    newest = timeline.latest_write()
    by_versions = plan.earliest is None
    if newest is None or (by_versions and newest.completed is None and timeline.pending()):
        return  # without completion times a pending write will look as old as it is
    if uri not in _LOOKS and len(_LOOKS) >= _LOOKS_MAX:
        _LOOKS.clear()
    found = CleanMetadata(
        started=timeline.latest_time() or "",
        millis=0,
        policy=plan.policy,
        earliest=plan.earliest.requested if plan.earliest else "",
        last_completed=plan.last_completed,
        savepoints=plan.savepoints,
        versions_retained=plan.versions_retained,
        uncleaned_from=plan.uncleaned_from,
        is_filtered=plan.is_filtered,
    )
    _LOOKS[uri] = _Look(cleaning, newest, last.started if last else "", found)
