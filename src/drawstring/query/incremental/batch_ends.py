"""Where a batch of a followed table may end, and which commits of it are gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.cdc_query import ChangePlanner
from drawstring.query.incremental.commit_ranges import CommitRange, archived_writes
from drawstring.query.incremental.incremental_query import settled_groups
from drawstring.query.incremental.listed_files import ListedFiles


@dataclass(frozen=True, slots=True)
class Limits:
    """How much goes into a batch; one commit does in any case.

    Attributes:
        commits: most commits; None for no bound.
        bytes: most bytes that the commits wrote; None for no bound.
    """

    commits: int | None = None
    bytes: int | None = None


def ends(facts: TableFacts, found: CommitRange, limits: Limits) -> Iterator[tuple[str, Sequence[Instant]]]:
    """Yield where a batch may end: where the limits say, and at every later commit.

    Commits of one time are never parted, and commits that change nothing do not end a batch. No more commits
    are looked at than are asked for.

    Yields:
        The end, and the writes since the end before.
    """
    end: str | None = None
    since: list[Instant] = []
    waiting: list[Instant] = []
    commits = size = 0
    for time, together in groupby(sorted(found.writes, key=time_of), time_of):
        writes = list(together)
        changing = [each for each in map(facts.store.commit_metadata, writes) if each.changes_records]
        commits += len(changing)
        size += sum(stat.size_bytes for each in changing for stat in each.stats)
        waiting += writes
        if not changing:
            continue
        if end is not None and _is_over(limits, commits, size):
            yield end, since
            since = []
        since, waiting, end = since + waiting, [], time
    if end is not None:
        yield end, since


def _is_over(limits: Limits, commits: int, size: int) -> bool:
    over_commits = limits.commits is not None and commits > limits.commits
    return over_commits or (limits.bytes is not None and size > limits.bytes)


class Gone:
    """Which file groups lack files that commits of a growing range wrote and no later one made up for.

    Args:
        facts: the table.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        self._listed = ListedFiles(facts.view.listing)
        self._groups: set[tuple[str, str]] = set()

    def after(self, writes: Sequence[Instant]) -> bool:
        """Take more writes into the range and tell whether something is gone."""
        for write in writes:
            commit = self._facts.store.commit_metadata(write)
            self._groups -= settled_groups(commit)
            self._groups.update(
                (stat.partition, stat.file_id)
                for stat in commit.stats
                if self._listed.find(stat.partition, stat.path) is None
            )
        return bool(self._groups)


@dataclass(frozen=True, slots=True)
class Loss:
    """Commits of a range whose changes are gone: the time of the last of them, and those left."""

    until: str
    left: tuple[Instant, ...]


def loss_of(facts: TableFacts, found: CommitRange, *, changes: bool) -> Loss | None:
    """Return what is gone of a range, None when nothing is.

    Args:
        facts: the table.
        found: the range.
        changes: whether every change is wanted, rather than the rows as the range left them.
    """
    writes = sorted(found.writes, key=time_of)
    gone = _not_planned(facts, writes) if changes else _not_there(facts, writes)
    if gone:
        return Loss(time_of(writes[gone - 1]), tuple(writes[gone:]))
    if not found.reaches_archive:
        return None
    return Loss(max(map(time_of, archived_writes(facts, found)), default=found.start), tuple(writes))


def _not_planned(facts: TableFacts, writes: Sequence[Instant]) -> int:
    """Return how many writes there are up to the last whose changes are gone."""
    planner = ChangePlanner(facts)
    for at in reversed(range(len(writes))):
        try:
            planner.tasks(writes[at])
        except InvalidError:
            return at + 1
    return 0


def _not_there(facts: TableFacts, writes: Sequence[Instant]) -> int:
    """Return how many writes there are up to the last that files are gone of and no later one made up for."""
    listed = ListedFiles(facts.view.listing)
    settled: set[tuple[str, str]] = set()
    for at in reversed(range(len(writes))):
        commit = facts.store.commit_metadata(writes[at])
        for stat in commit.stats:
            is_there = listed.find(stat.partition, stat.path) is not None
            if not is_there and (stat.partition, stat.file_id) not in settled:
                return at + 1
        settled |= settled_groups(commit)
    return 0


def only(found: CommitRange, writes: tuple[Instant, ...]) -> CommitRange:
    """Return a range of some of the writes."""
    return replace(found, writes=writes, archived=(), reaches_archive=False, skips_superseded=True)
