"""Which instants may leave the active timeline (specification: Timeline, archived). Pure.

    oldest                                                                       newest
    w1  c1  w2  w3  r1  w4 | w5 ...          ... the newest that stay in any case
    <-- archived --------> ^ the bound: nothing from here on may go

Once a write is archived its files count as committed, whatever they are, and what else it said is forgotten.
So no write goes that somebody still asks: see `_bounds`. Cleans, rollbacks and restores go with the writes
after them, all of them: Hudi takes a write for pending that is newer than the first active instant, whichever
that is, and not on the timeline, and reads its log files over newer base files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from drawstring.config.keys.archive import Archiving
from drawstring.model.clean import CleanMetadata
from drawstring.model.instant import Action, Instant
from drawstring.timeline.timeline import Timeline

_READERS_OF_THE_RETAINED = 2
_GO_ALONG = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE})


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """What planning knows of the table.

    Attributes:
        timeline: the active timeline.
        is_merge_on_read: whether there are log files.
        retained: requested time of the first write whose files a clean keeps now, None for none.
        needed: requested time of the first write that readers need, None for none.
        overlapping: requested time of the first write whose log files follow the base files of a compaction
            that was requested later, None for none.
        last: the last completed clean on the timeline.
        saved: requested times of savepoints.
        deltas_kept: newest delta commits since the last compaction that it is triggered by.
    """

    timeline: Timeline
    is_merge_on_read: bool
    retained: str | None
    last: CleanMetadata | None
    saved: Collection[str]
    deltas_kept: int
    needed: str | None = None
    overlapping: str | None = None


def plan_archive(facts: ArchiveFacts, archiving: Archiving) -> list[Instant]:
    """Return the instants to archive, oldest first; none while the timeline is short enough."""
    writes = facts.timeline.writes()
    least, most = _sizes(facts, archiving)
    if len(writes) <= most:
        return []
    bound = min(_bounds(facts, archiving), default=None)
    going = [
        write
        for write in writes
        if (bound is None or write.requested < bound) and write.requested not in facts.saved
    ][: len(writes) - least]
    if not going:
        return []
    return sorted([*going, *going_along(facts.timeline, going[-1].requested)])


def going_along(timeline: Timeline, last: str) -> list[Instant]:
    """Return the cleans, rollbacks and restores before the newest archived write."""
    return [each for each in timeline.completed_of(*_GO_ALONG) if each.requested < last]


def _sizes(facts: ArchiveFacts, archiving: Archiving) -> tuple[int, int]:
    """Return how many writes stay at least and at most: those whose files are kept stay."""
    least, most = archiving.commits_min, archiving.commits_max
    if facts.retained is not None:
        needed = sum(write.requested >= facts.retained for write in facts.timeline.writes())
        needed += _READERS_OF_THE_RETAINED
        if needed > least:
            return needed, most + needed - least
    return least, most


def _bounds(facts: ArchiveFacts, archiving: Archiving) -> Iterator[str]:
    """Yield requested times of instants that stay, each with all after it."""
    yield from _before_pending(facts)
    yield from _uncleaned(facts)
    if facts.needed is not None:
        yield _write_before(facts, facts.needed)
    if facts.saved and not archiving.beyond_savepoint:
        yield min(facts.saved)
    if facts.is_merge_on_read:
        yield from _of_compaction(facts)
    if facts.overlapping is not None:
        yield facts.overlapping


def _before_pending(facts: ArchiveFacts) -> Iterator[str]:
    """Keep the write before the first pending instant: what comes after it must not look archived."""
    pending = [each.requested for each in facts.timeline.pending() if each.action is not Action.SAVEPOINT]
    if pending:
        yield _write_before(facts, min(pending))


def _write_before(facts: ArchiveFacts, time: str) -> str:
    """Return the newest write before a time, the time itself without any: what follows is on the timeline."""
    before = [write.requested for write in facts.timeline.writes() if write.requested < time]
    return before[-1] if before else time


def _uncleaned(facts: ArchiveFacts) -> Iterator[str]:
    """Keep the writes that replaced file groups until these are gone, or they would come back."""
    replacing = [w.requested for w in facts.timeline.writes() if w.action is Action.REPLACE_COMMIT]
    since = "" if facts.last is None else facts.last.earliest or facts.last.started
    held = {*facts.saved, *(facts.last.savepoints if facts.last else ())}
    if held:
        since = min(since, min(held))
    yield from [time for time in replacing if time >= since][:1]


def _of_compaction(facts: ArchiveFacts) -> Iterator[str]:
    """Keep the delta commits that make a compaction due."""
    since: list[str] = []
    for write in reversed(facts.timeline.writes()):
        if write.action is Action.COMMIT:
            break
        since.append(write.requested)
    yield from since[: facts.deltas_kept][-1:]


def overlapping(timeline: Timeline) -> Iterator[Instant]:
    """Yield the writes that completed after a compaction had begun: their log files follow its base files.

    Once archived they count as completed when they were requested, and these log files would come before.
    Only other engines' compactions, which know nothing of drawstring's lock, make such.
    """
    compactions = [each.requested for each in timeline.writes() if each.action is Action.COMMIT]
    for write in timeline.writes():
        after = bisect_right(compactions, write.requested)
        if write.completed and after < len(compactions) and compactions[after] < write.completed:
            yield write
