"""Planning of cleans from a table on storage; what is decided is in `cleaning.plan`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

from drawstring.base.clock import Clock
from drawstring.config.keys.clean import Cleaning
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.formats.metadata.clean import decode_clean
from drawstring.formats.metadata.savepoint import decode_savepoint
from drawstring.model.clean import CleanMetadata, CleanPlan, CleanPolicy, EarliestRetained
from drawstring.model.instant import Action, Instant
from drawstring.model.savepoint import Savepoint
from drawstring.services.cleaning.looks import last_look, remember_look
from drawstring.services.cleaning.plan import (
    CleanFacts,
    Retention,
    capped,
    changed_partitions,
    earliest_retained,
    files_to_delete,
    holds_archiving_up,
    is_empty_after,
    uncleaned_from,
    writes_between,
)
from drawstring.services.cleaning.reader_needs import ReaderNeeds, reader_needs
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import instant_time
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableContext

_HOUR_MS: Final = 3_600_000
_WRITES_REREAD_MAX: Final = 8
"""After so many writes without anything to delete, an empty clean lets other processes begin after them."""


@dataclass(frozen=True, slots=True)
class CleanPlanner:
    """Plans cleans of a table as of one timeline."""

    context: TableContext
    config: TableConfig
    store: TimelineStore
    timeline: Timeline
    cleaning: Cleaning

    @property
    def _counts_versions(self) -> bool:
        return self.cleaning.policy == CleanPolicy.VERSIONS

    def needed(self) -> ReaderNeeds:
        """Return what readers need now."""
        return reader_needs(self.context, self.config, self.timeline, self.cleaning)

    def plan(self, facts: CleanFacts, needed: ReaderNeeds) -> CleanPlan | None:
        """Return the plan of a clean; None if it would delete nothing and is not worth noting."""
        earliest = capped(facts, self.cleaning, self._earliest(needed.first))
        if self._counts_versions and needed.is_asked:
            # Files that readers kept from an earlier clean may be in partitions without writes since.
            plan = self._plan(facts, earliest, None, needed.first)
            return plan if plan.files else None
        partitions = changed_partitions(facts, self.cleaning, earliest)
        plan = self._plan(facts, earliest, partitions)
        noted = facts.last.uncleaned_from if facts.last else None
        if plan.files or noted != plan.uncleaned_from or self._is_worth_noting(facts, earliest, partitions):
            return plan
        remember_look(self.context.storage.spec.uri, self.timeline, self.cleaning, facts.last, plan)
        return None

    def _earliest(self, needed: str | None = None) -> Instant | None:
        cutoff = cutoff_of(self.cleaning, self.context.clock, self.config)
        return earliest_retained(self.timeline, self.cleaning, cutoff, needed)

    def facts(self) -> CleanFacts | None:
        """Return the facts for a plan; None if no file can be old."""
        if not self.timeline.writes() or not (self._counts_versions or self._earliest()):
            return None
        last = last_clean(self.store, self.timeline)
        look = last_look(self.context.storage.spec.uri, self.timeline, self.cleaning, last)
        is_known = last is not None or look is not None
        return CleanFacts(
            timeline=self.timeline,
            last=last,
            look=look,
            saved=savepoints(self.store, self.timeline),
            is_whole=is_known or open_archive(self.context.storage, self.config).is_empty(),
            commit_of=self.store.commit_metadata,
        )

    def _plan(
        self,
        facts: CleanFacts,
        earliest: Instant | None,
        partitions: set[str] | None,
        needed: str | None = None,
    ) -> CleanPlan:
        view = self.context.view(self.config, self.timeline, self.store)
        places = view.listing.partitions() if partitions is None else sorted(partitions)
        if self.cleaning.has_filter:
            places = [place for place in places if self.cleaning.covers(place)]
        earliest_time = earliest.requested if earliest else None
        base = Retention(earliest_time, needed, self.cleaning.versions_retained)
        retentions = _retention_by_partition(base, view, facts) if places else {}
        files: dict[str, tuple[str, ...]] = {}
        empty: list[str] = []
        for place in places:
            paths = files_to_delete(view.stored_groups(place), retentions.get(place, base))
            if paths:
                files[place] = tuple(paths)
                if place and is_empty_after(self.context.storage.list_files(place), set(paths)):
                    empty.append(place)
        writes = self.timeline.writes()
        return CleanPlan(
            policy=self.cleaning.policy,
            earliest=_earliest_retained(earliest),
            last_completed=writes[-1].requested,
            files=files,
            partitions_to_delete=tuple(empty),
            savepoints=tuple(sorted(facts.saved)),
            versions_retained=self.cleaning.versions_retained if self._counts_versions else None,
            uncleaned_from=self._uncleaned_from(view, earliest),
            is_filtered=self.cleaning.has_filter,
        )

    def _uncleaned_from(self, view: FileGroupView, earliest: Instant | None) -> str | None:
        if not self.cleaning.has_filter:
            return None
        return uncleaned_from(view.replaced_groups(), self.cleaning, earliest)

    def _is_worth_noting(
        self, facts: CleanFacts, earliest: Instant | None, partitions: set[str] | None
    ) -> bool:
        """Return whether a clean that deletes nothing is put on the timeline all the same.

        It spares other processes reading many writes again, which this one remembers; and archiving waits for
        cleans that come after a write that replaced file groups.
        """
        if holds_archiving_up(facts, earliest):
            return True
        if not self.cleaning.incremental or self.cleaning.has_filter or facts.look is not None:
            return False
        return partitions is None or len(writes_between(facts, earliest)) >= _WRITES_REREAD_MAX


def _retention_by_partition(base: Retention, view: FileGroupView, facts: CleanFacts) -> dict[str, Retention]:
    """Return what stays, for the partitions with replaced, savepointed or planned file groups."""
    replaced: dict[str, dict[str, str]] = defaultdict(dict)
    for (partition, file_id), time in view.replaced_groups().items():
        replaced[partition][file_id] = time
    saved: dict[str, set[str]] = defaultdict(set)
    for each in facts.saved.values():
        for partition, names in each.files.items():
            saved[partition].update(names)
    planned: dict[str, set[str]] = defaultdict(set)
    for partition, file_id in (*view.pending_compactions(), *view.pending_clusterings()):
        planned[partition].add(file_id)
    return {
        place: replace(base, saved=saved[place], replaced=replaced[place], planned=planned[place])
        for place in {*replaced, *saved, *planned}
    }


def _earliest_retained(earliest: Instant | None) -> EarliestRetained | None:
    if earliest is None:
        return None
    return EarliestRetained(earliest.requested, earliest.action, earliest.state.name)


def cutoff_of(cleaning: Cleaning, clock: Clock, config: TableConfig) -> str:
    """Return the instant time of the number of hours ago that are retained."""
    return instant_time(clock.now_ms() - cleaning.hours_retained * _HOUR_MS, config.timezone)


def last_clean(store: TimelineStore, timeline: Timeline) -> CleanMetadata | None:
    """Return the metadata of the last completed clean; empty files of crashed writers are skipped."""
    cleans = reversed(timeline.completed_of(Action.CLEAN))
    return next((decode_clean(data) for each in cleans if (data := store.read(each))), None)


def savepoints(store: TimelineStore, timeline: Timeline) -> dict[str, Savepoint]:
    """Return the savepoints of a table by the requested times of their commits."""
    return {
        instant.requested: decode_savepoint(store.read(instant))
        for instant in timeline.completed_of(Action.SAVEPOINT)
    }
