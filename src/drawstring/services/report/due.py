"""Which table services are due, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drawstring.config.options.write_options import WriteOptions
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.query.facts import TableFacts
from drawstring.services.clustering.after_commit import commits_since_clustering
from drawstring.services.compaction.strategies import deltas_since_compaction, is_due


@dataclass(frozen=True, slots=True)
class DueService:
    """A service of a table.

    Attributes:
        service: its name.
        is_due: whether it would do something now, or is planned and not done.
        why: the figures that say so.
    """

    service: str
    is_due: bool
    why: str


def due_services(
    facts: TableFacts, slices: Sequence[FileSlice], options: WriteOptions, now: str
) -> tuple[DueService, ...]:
    """Return the services of a table.

    Args:
        facts: the table.
        slices: its latest slices.
        options: say when services are due.
        now: the instant time of the question.
    """
    return (*_of_options(facts, slices, options, now), *_pending(facts))


def _of_options(
    facts: TableFacts, slices: Sequence[FileSlice], options: WriteOptions, now: str
) -> Iterator[DueService]:
    timeline, writes = facts.timeline, len(facts.timeline.writes())
    if facts.config.is_merge_on_read:
        deltas = len(deltas_since_compaction(timeline))
        logs = sum(len(each.logs) for each in slices)
        due_at = options.compaction.commits
        why = f"{deltas} delta commits since the last one, due at {due_at}; {logs} log files"
        yield DueService("compaction", bool(logs) and is_due(timeline, options.compaction, now), why)
    retained = options.cleaning.commits_retained
    yield DueService("clean", writes > retained, f"{writes} commits, {retained} are retained")
    most = options.archiving.commits_max
    yield DueService("archive", writes > most, f"{writes} commits in the active timeline, at most {most}")
    since = commits_since_clustering(facts.store)
    is_asked = options.clustering.inline or options.clustering.background
    after = (
        options.clustering.inline_commits
        if options.clustering.inline
        else options.clustering.background_commits
    )
    asked = f"due at {after}" if is_asked else "not asked for by the options"
    yield DueService(
        "clustering", is_asked and since >= after, f"{since} commits since the last one, {asked}"
    )
    small = options.sizing.small_file_limit_bytes
    bases = [each.base.status.size_bytes for each in slices if each.base]
    few = sum(size < small for size in bases)
    partitions = {each.partition for each in slices if each.base and each.base.status.size_bytes < small}
    why = f"{few} of {len(bases)} base files in {len(partitions)} partitions are below {small >> 20} MiB"
    yield DueService("merge of small files", few > len(partitions), why)


def _pending(facts: TableFacts) -> Iterator[DueService]:
    for instant in facts.timeline.pending():
        if instant.action is not Action.SAVEPOINT:
            state = instant.state.name.lower()
            yield DueService(str(instant.action), True, f"{state} at {instant.requested} and not completed")
