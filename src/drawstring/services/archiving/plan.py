"""The plan of archiving: the instants that may leave the active timeline (pure; specification: Timeline).

    oldest                                                                       newest
    w1  c1  w2  w3  r1  w4 | w5 ...          ... the newest that stay in any case
    <-- archived --------> ^ the bound: this instant and all later ones stay

Once a write is archived, all its files count as committed, and the rest of its metadata is no longer read. So
writes stay whose metadata is still needed: see `_bounds`. All cleans, rollbacks and restores before an
archived write are archived with it. Otherwise Hudi would misread the timeline: it takes a write that is newer
than the first active instant, of any action, and not on the timeline for pending, and reads its log files
after newer base files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from drawstring.config.keys.archive import Archiving
from drawstring.model.clean import CleanMetadata
from drawstring.model.instant import Action, Instant, time_of
from drawstring.timeline.timeline import Timeline

_READERS_OF_THE_RETAINED = 2
_ARCHIVED_WITH_WRITES = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE})


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """The facts about a table that the plan is made from.

    Attributes:
        timeline: the active timeline.
        is_merge_on_read: whether there are log files.
        retained: requested time of the first write whose files a clean would keep now, None for none.
        last: the last completed clean on the timeline.
        saved: requested times of savepoints.
        deltas_kept: number of delta commits that trigger a compaction: so many of the newest ones since the
            last compaction stay.
        needed: requested time of the first write that readers need, None for none.
        overlapping: requested time of the first write whose log files follow the base files of a compaction
            that was requested later, None for none.
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
    min_writes, max_writes = _sizes(facts, archiving)
    if len(writes) <= max_writes:
        return []
    bound = min(_bounds(facts, archiving), default=None)
    archived = [
        write
        for write in writes
        if (bound is None or write.requested < bound) and write.requested not in facts.saved
    ][: len(writes) - min_writes]
    if not archived:
        return []
    return sorted([*archived, *cleans_and_rollbacks_before(facts.timeline, archived[-1].requested)])


def cleans_and_rollbacks_before(timeline: Timeline, last: str) -> list[Instant]:
    """Return the cleans, rollbacks and restores that are archived with a write: those before it."""
    return [each for each in timeline.completed_of(*_ARCHIVED_WITH_WRITES) if each.requested < last]


def _sizes(facts: ArchiveFacts, archiving: Archiving) -> tuple[int, int]:
    """Return the least and greatest number of writes that stay; writes whose files are kept stay."""
    min_writes, max_writes = archiving.commits_min, archiving.commits_max
    if facts.retained is not None:
        needed = sum(write.requested >= facts.retained for write in facts.timeline.writes())
        needed += _READERS_OF_THE_RETAINED
        if needed > min_writes:
            return needed, max_writes + needed - min_writes
    return min_writes, max_writes


def _bounds(facts: ArchiveFacts, archiving: Archiving) -> Iterator[str]:
    """Yield the requested times of instants that stay, together with all later ones."""
    yield from _before_pending(facts)
    yield from _uncleaned(facts)
    if facts.needed is not None:
        yield _write_before(facts, facts.needed)
    if facts.saved and not archiving.beyond_savepoint:
        yield _first_unsaved(facts, facts.saved)
    if facts.is_merge_on_read:
        yield from _of_compaction(facts)
    if facts.overlapping is not None:
        yield facts.overlapping
    if archiving.waits_for_cleans and facts.last is not None and facts.last.earliest:
        yield facts.last.earliest


def _before_pending(facts: ArchiveFacts) -> Iterator[str]:
    """Keep the write before the first pending instant, so that the pending one does not look archived."""
    pending = [each.requested for each in facts.timeline.pending() if each.action is not Action.SAVEPOINT]
    if pending:
        yield _write_before(facts, min(pending))


def _write_before(facts: ArchiveFacts, time: str) -> str:
    """Return the newest write before a time, the time itself without one."""
    earlier = [write.requested for write in facts.timeline.writes() if write.requested < time]
    return earlier[-1] if earlier else time


def _uncleaned(facts: ArchiveFacts) -> Iterator[str]:
    """Keep writes that replaced file groups until these are cleaned; otherwise they would count again."""
    replacing = [w.requested for w in facts.timeline.writes() if w.action is Action.REPLACE_COMMIT]
    uncleaned_from = "" if facts.last is None else facts.last.earliest or facts.last.started
    savepointed = {*facts.saved, *(facts.last.savepoints if facts.last else ())}
    if savepointed:
        uncleaned_from = min(uncleaned_from, _first_unsaved(facts, savepointed))
    if facts.last is not None and facts.last.uncleaned_from is not None:
        uncleaned_from = min(uncleaned_from, facts.last.uncleaned_from)
    yield from [time for time in replacing if time >= uncleaned_from][:1]


def _first_unsaved(facts: ArchiveFacts, saved: Collection[str]) -> str:
    """Return the requested time of the first write with a savepoint, or that completed after one with it.

    A restore undoes the latter, and what it replaced is in the savepoint.
    """
    targets = (target for time in saved if (target := facts.timeline.write_at(time)) is not None)
    after = (first for target in targets if (first := facts.timeline.first_after(time_of(target))))
    return min((*saved, *after))


def _of_compaction(facts: ArchiveFacts) -> Iterator[str]:
    """Keep the delta commits that make a compaction due."""
    delta_commits: list[str] = []
    for write in reversed(facts.timeline.writes()):
        if write.action is Action.COMMIT:
            break
        delta_commits.append(write.requested)
    yield from delta_commits[: facts.deltas_kept][-1:]


def overlapping(timeline: Timeline) -> Iterator[Instant]:
    """Yield writes that completed after a later compaction was requested: their log files follow its files.

    Once archived they would count as completed at their requested time, and their log files would precede the
    base files. Only compactions of other engines, which do not take drawstring's lock, cause this.
    """
    compactions = [each.requested for each in timeline.writes() if each.action is Action.COMMIT]
    for write in timeline.writes():
        following = bisect_right(compactions, write.requested)
        if write.completed and following < len(compactions) and compactions[following] < write.completed:
            yield write
