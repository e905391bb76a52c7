"""Tell why a clean leaves files: for each file the bound of the clean that it stays for.

A clean deletes the files that no bound retains (`clean`). This module compares each slice with each bound. A
file has a row for each bound that alone would retain it:

    s1 < pending instant < s2 < s3 < policy's earliest instant retained <= s4

    s1 goes     s2 and s3 stay for the pending instant; s3 also by the policy     s4 is the latest version
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa

from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.file_system_view import FileGroupView
from drawstring.model.files import FileGroup, FileSlice, FileStatus
from drawstring.model.instant import Action
from drawstring.model.plans import CleanPolicy
from drawstring.services.clean import (
    CleanFacts,
    CleanPlanner,
    ReaderNeeds,
    capped,
    cutoff_of,
    earliest_by_policy,
    first_pending,
    savepoints,
    slices_before,
)
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext

KEPT_FILES: Final = pa.schema(
    [
        ("partition", pa.string()),
        ("file", pa.string()),
        ("size_bytes", pa.int64()),
        ("reason", pa.string()),
        ("instant", pa.string()),
        ("name", pa.string()),
    ]
)
"""Columns of the result of `kept_files`; see `KeptBy`."""


class KeptBy(StrEnum):
    """Why a clean leaves a file, with the contents of the columns `instant` and `name`."""

    LATEST = "latest version"
    """A query of the newest snapshot reads it."""
    POLICY = "policy"
    """It is younger than the policy deletes. Earliest instant retained, if there is one; the policy."""
    PENDING = "pending instant"
    """A pending write, compaction or clustering may read it. Its requested time; its action."""
    HOLD = "hold"
    """A reader holds it. First write that the reader needs; name of the hold, or the option of the window."""
    SAVEPOINT = "savepoint"
    """A savepoint has it. Instant of the savepoint."""
    COMMIT_LIMIT = "commit limit"
    """The clean covers no more commits. Earliest instant retained; the option."""
    PARTITION_FILTER = "partition filter"
    """The options leave its partition out."""
    NOT_CHECKED = "not checked"
    """An incremental clean looks only at partitions that changed since the last one. The option."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """A bound of a clean: slices that readers as of its instant, or a later one, need stay."""

    reason: KeptBy
    instant: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What a clean leaves, apart from the newest versions.

    Attributes:
        policy: the policy.
        versions: newest slices of a file group that stay; 0 under the policies by time.
        others: further bounds by instants.
        saved: savepoints by partition and name of a file.
        planned: pending plans by partition and file id, under the policy by versions.
        replaced: replacement times by partition and file id.
    """

    policy: _Bound
    versions: int
    others: Sequence[_Bound]
    saved: Mapping[tuple[str, str], Sequence[_Bound]]
    planned: Mapping[tuple[str, str], _Bound]
    replaced: Mapping[tuple[str, str], str]

    def of(self, group: FileGroup) -> Iterator[tuple[FileSlice, list[_Bound]]]:
        """Yield the slices of a file group, and the bounds that each stays for."""
        place = group.partition, group.file_id
        replaced_at = self.replaced.get(place)
        old = self._old(group, replaced_at)
        newer = [(each, _before(each, group, replaced_at)) for each in self.others]
        for number, kept in enumerate(group.slices):
            is_latest = replaced_at is None and number == len(group.slices) - 1
            if is_latest:
                yield kept, [_LATEST]
                continue
            bounds = [] if kept in old else [self.policy]
            bounds += [self.planned[place]] if place in self.planned else []
            bounds += [each for each, before in newer if kept not in before]
            names = [file.name for file in _files(kept)]
            bounds += dict.fromkeys(
                each for name in names for each in self.saved.get((group.partition, name), ())
            )
            yield kept, bounds

    def _old(self, group: FileGroup, replaced_at: str | None) -> Sequence[FileSlice]:
        if self.versions:
            return group.slices if replaced_at is not None else group.slices[: -self.versions]
        return _before(self.policy, group, replaced_at) if self.policy.instant else ()


def _before(bound: _Bound, group: FileGroup, replaced_at: str | None) -> Sequence[FileSlice]:
    return slices_before(bound.instant or "", group, replaced_at)


def _files(file_slice: FileSlice) -> list[FileStatus]:
    base = [file_slice.base.status] if file_slice.base else []
    return [*base, *(log.status for log in file_slice.logs)]


_LATEST: Final = _Bound(KeptBy.LATEST)
_FILTERED: Final = _Bound(KeptBy.PARTITION_FILTER)
_NOT_CHECKED: Final = _Bound(KeptBy.NOT_CHECKED, None, "hoodie.clean.incremental.enabled")
_LIMIT: Final = "hoodie.clean.max.commits.to.clean"


def kept_files(context: TableContext, options: WriteOptions) -> pa.Table:
    """Return the files that a clean now would leave, and why; the table is not changed.

    Args:
        context: the open table.
        options: of writes: what is retained.

    Returns:
        A row for each file and reason, with the columns `KEPT_FILES`.
    """
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    planner = CleanPlanner(context, config, store, store.load(), options.cleaning)
    facts, needed = planner.facts(), planner.needed()
    plan = None if facts is None else planner.plan(facts, needed)
    deleted = {path for paths in plan.files.values() for path in paths} if plan else set()
    view = context.view(config, planner.timeline, store)
    bounds = _bounds(planner, view, needed, facts)
    rows: list[tuple[str, str, int, str, str | None, str | None]] = []
    for partition in view.listing.partitions():
        is_covered = not options.cleaning.has_filter or options.cleaning.covers(partition)
        for group in view.stored_groups(partition):
            for kept, found in bounds.of(group):
                reasons = [*found, *(() if is_covered or found == [_LATEST] else (_FILTERED,))]
                for file in _files(kept):
                    if file.path in deleted:
                        continue
                    for each in reasons or (_NOT_CHECKED,):
                        rows.append(
                            (partition, file.name, file.size_bytes, each.reason, each.instant, each.name)
                        )
    columns = zip(*sorted(rows, key=lambda row: row[:2]), strict=True) if rows else [()] * len(KEPT_FILES)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, KEPT_FILES, strict=True)], KEPT_FILES
    )


def _bounds(
    planner: CleanPlanner, view: FileGroupView, needed: ReaderNeeds, facts: CleanFacts | None
) -> _Bounds:
    timeline, cleaning = planner.timeline, planner.cleaning
    saved: dict[tuple[str, str], list[_Bound]] = defaultdict(list)
    for time, savepoint in savepoints(planner.store, timeline).items():
        for partition, names in savepoint.files.items():
            for name in names:
                saved[partition, name].append(_Bound(KeptBy.SAVEPOINT, time))
    holds = [_Bound(KeptBy.HOLD, first, name) for first, name in needed.by_reader]
    if cleaning.policy == CleanPolicy.VERSIONS:
        policy, others = _Bound(KeptBy.POLICY, None, cleaning.policy), holds
        plans = (
            (Action.COMPACTION, view.pending_compactions()),
            (Action.CLUSTERING, view.pending_clusterings()),
        )
        planned = {
            place: _Bound(KeptBy.PENDING, time, str(action))
            for action, of_groups in plans
            for place, time in of_groups.items()
        }
        return _Bounds(policy, cleaning.versions_retained, others, saved, planned, view.replaced_groups())
    cutoff = cutoff_of(cleaning, planner.context.clock, planner.config)
    earliest = earliest_by_policy(timeline, cleaning, cutoff)
    policy = _Bound(KeptBy.POLICY, earliest.requested if earliest else None, cleaning.policy)
    others = holds
    if (pending := first_pending(timeline)) is not None:
        others.append(_Bound(KeptBy.PENDING, pending.requested, str(pending.action)))
    if facts is not None and (limit := capped(facts, cleaning, earliest)) != earliest and limit:
        others.append(_Bound(KeptBy.COMMIT_LIMIT, limit.requested, _LIMIT))
    return _Bounds(policy, 0, others, saved, {}, view.replaced_groups())
