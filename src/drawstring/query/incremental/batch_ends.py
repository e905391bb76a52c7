"""Possible ends of a batch of a followed table, and the commits whose changes are lost to cleaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.cdc_query import ChangePlanner
from drawstring.query.incremental.commit_ranges import CommitRange, archived_writes
from drawstring.query.incremental.incremental_query import superseded_groups
from drawstring.query.incremental.listed_files import ListedFiles


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of a batch, which contains at least one commit in any case.

    Attributes:
        commits: maximum number of commits; None for no bound.
        bytes: maximum number of bytes that the commits wrote; None for no bound.
    """

    commits: int | None = None
    bytes: int | None = None


def ends(
    facts: TableFacts, commit_range: CommitRange, limits: Limits
) -> Iterator[tuple[str, Sequence[Instant]]]:
    """Yield the possible ends of a batch: the one that the limits give, then every later commit.

    Commits with the same time stay in one batch, and a commit without changes does not end a batch. Commit
    metadata is read only as far as the caller iterates.

    Args:
        facts: the table.
        commit_range: commits after the last batch.
        limits: bounds of the batch.

    Yields:
        The time of the end, and the writes since the previous end.
    """
    end: str | None = None
    writes_since: list[Instant] = []
    unassigned: list[Instant] = []
    commits = size = 0
    for time, same_time in groupby(sorted(commit_range.writes, key=time_of), time_of):
        writes = list(same_time)
        changing = [commit for commit in map(facts.store.commit_metadata, writes) if commit.changes_records]
        commits += len(changing)
        size += sum(stat.size_bytes for commit in changing for stat in commit.stats)
        unassigned += writes
        if not changing:
            continue
        if end is not None and _is_over(limits, commits, size):
            yield end, writes_since
            writes_since = []
        writes_since, unassigned, end = writes_since + unassigned, [], time
    if end is not None:
        yield end, writes_since


def _is_over(limits: Limits, commits: int, size: int) -> bool:
    over_commits = limits.commits is not None and commits > limits.commits
    return over_commits or (limits.bytes is not None and size > limits.bytes)


class LostFileGroups:
    """Tracks, for a growing range of commits, the file groups whose changes are lost.

    The changes of a file group are lost when a file that a commit wrote is deleted and no later commit of the
    range wrote a base file of the group or replaced the group.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._listed = ListedFiles(facts.view.listing)
        self._groups: set[tuple[str, str]] = set()

    def after(self, writes: Sequence[Instant]) -> bool:
        """Add writes to the range and return whether any changes are lost."""
        for write in writes:
            commit = self._facts.store.commit_metadata(write)
            self._groups -= superseded_groups(commit)
            self._groups.update(
                (stat.partition, stat.file_id)
                for stat in commit.stats
                if self._listed.find(stat.partition, stat.path) is None
            )
        return bool(self._groups)


@dataclass(frozen=True, slots=True)
class Loss:
    """Commits of a range whose changes are lost.

    Attributes:
        until: time of the last of them.
        left: the writes after it.
    """

    until: str
    left: tuple[Instant, ...]


def loss_of(facts: TableFacts, commit_range: CommitRange, *, changes: bool) -> Loss | None:
    """Return the lost commits of a range, None when none are lost.

    Args:
        facts: the table.
        commit_range: the range.
        changes: whether the query returns every change, rather than the rows as of the end of the range.
    """
    writes = sorted(commit_range.writes, key=time_of)
    lost = _without_changes(facts, writes) if changes else _without_files(facts, writes)
    if lost:
        return Loss(time_of(writes[lost - 1]), tuple(writes[lost:]))
    if not commit_range.reaches_archive:
        return None
    return Loss(
        max(map(time_of, archived_writes(facts, commit_range)), default=commit_range.start), tuple(writes)
    )


def _without_changes(facts: TableFacts, writes: Sequence[Instant]) -> int:
    """Return the number of writes up to the last one whose changes cannot be read."""
    planner = ChangePlanner(facts)
    for position in reversed(range(len(writes))):
        try:
            planner.tasks(writes[position])
        except InvalidError:
            return position + 1
    return 0


def _without_files(facts: TableFacts, writes: Sequence[Instant]) -> int:
    """Return the number of writes up to the last one with deleted files that no later write superseded."""
    listed = ListedFiles(facts.view.listing)
    superseded: set[tuple[str, str]] = set()
    for position in reversed(range(len(writes))):
        commit = facts.store.commit_metadata(writes[position])
        for stat in commit.stats:
            is_listed = listed.find(stat.partition, stat.path) is not None
            if not is_listed and (stat.partition, stat.file_id) not in superseded:
                return position + 1
        superseded |= superseded_groups(commit)
    return 0


def only(commit_range: CommitRange, writes: tuple[Instant, ...]) -> CommitRange:
    """Return a range that contains only the given writes."""
    return replace(commit_range, writes=writes, archived=(), reaches_archive=False, skips_superseded=True)
