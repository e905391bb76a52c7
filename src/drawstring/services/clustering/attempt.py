"""The attempt of a clustering: claimed under the table lock, its files written without it, completed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Final

from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    InvalidError,
    LostRaceError,
    UnsupportedError,
)
from drawstring.config.keys.failed_writes import FailedWrites
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.metadata.base_file_compaction import base_files_in, base_files_of
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.model.clustering import ClusteringPlan
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.hashing import is_resizing
from drawstring.model.instant import Action, Instant, State
from drawstring.schema.meta import RECORD_KEY
from drawstring.services.clustering.plan import (
    BINARY_COPY,
    SINGLE_FILE_SORT,
    SORT_AND_SIZE,
)
from drawstring.services.clustering.resizing import (
    ResizeGroup,
    confirm_rings,
    save_rings,
)
from drawstring.services.clustering.resizing_plan import RESIZE
from drawstring.services.clustering.rivals import in_the_way
from drawstring.services.clustering.row_order import RowOrder
from drawstring.services.clustering.task import ClusterGroup
from drawstring.services.progress import Progress, watched
from drawstring.services.service_files import file_settings
from drawstring.timeline.claims import Fence
from drawstring.timeline.timeline import Timeline
from drawstring.txn.live_work import refuse_live_writers
from drawstring.txn.missing_plans import NoPlanError
from drawstring.txn.planned_instants import start_plan
from drawstring.txn.rollback.unschedule import rollback_inflight_plan, unschedule_clustering
from drawstring.txn.transaction import LockedTable, check_marked, recover_and_load

_RUNNABLE: Final = frozenset(
    name.rpartition(".")[2].removeprefix("Spark").removeprefix("Java")
    for name in (SORT_AND_SIZE, SINGLE_FILE_SORT, BINARY_COPY, RESIZE)
)
_BYTES_MAX: Final = 1 << 62
_log = logging.getLogger("drawstring")


class LostClusteringError(LostRaceError):
    """A clustering gave way to a write; the table can be clustered by a new plan."""


@dataclass(frozen=True, slots=True)
class ClusteringAttempt:
    """A run of a clustering by this process.

    Attributes:
        instant: inflight.
        plan: the clustering plan.
        task: writes the base files of a group.
        schema_json: the table schema as Avro JSON.
        fence: the claim on an instant that another process tried first.
        gives_way_to: tells the live writers, to which the clustering gives way; None if it does not.
    """

    instant: Instant
    plan: ClusteringPlan
    task: ClusterGroup | ResizeGroup
    schema_json: str
    fence: Fence | None = None
    gives_way_to: FailedWrites | None = None

    @property
    def operation(self) -> str:
        """Name of the operation in the result."""
        return "cluster"

    @property
    def config(self) -> TableConfig:
        """Settings of the table that the tasks use."""
        task = self.task.rows if isinstance(self.task, ResizeGroup) else self.task
        return task.settings.config

    def write(self, engine: Engine, progress: Progress | None) -> list[WriteStat]:
        """Write the files of each group."""
        groups = list(enumerate(self.plan.groups))
        return [stat for each in watched(engine, self.task, groups, progress) for stat in each]

    def complete(self, locked: LockedTable, timeline: Timeline, stats: list[WriteStat]) -> Instant:
        """Replace the old file groups by the new ones, unless the old ones were written to meanwhile.

        Raises:
            LostClusteringError: they were, or they are being written to and writers are preferred.
            ConflictError: another process rolled the attempt back.
        """
        storage, requested = locked.context.storage, self.instant.requested
        if others := in_the_way(locked, timeline, self.instant, self.plan, self.gives_way_to):
            unschedule_clustering(locked.rollback_context(), self.instant)
            raise LostClusteringError(
                f"Another writer wrote to file groups of this clustering while it ran: {others}. The plan was"
                " taken off the timeline, and the table is as if it had not run. Cluster the table again.",
                instant=requested,
            )
        check_marked(storage, requested, stats)
        if is_resizing(self.plan):
            save_rings(locked, self.plan, timeline, requested)
        metadata = _metadata(self.plan, stats, self.schema_json)
        try:
            completed = locked.commit_instant(self.instant, metadata, self.fence)
        except ConflictError as error:
            if (overtaken := self._overtaken(locked)) is not None:
                raise overtaken from error
            raise
        if is_resizing(self.plan):
            confirm_rings(storage, self.plan, timeline, requested)
        return completed

    def _overtaken(self, locked: LockedTable) -> LostClusteringError | None:
        """Return the error of an attempt that lost the lock to a write to its file groups; None otherwise."""
        timeline = locked.store.load()
        if timeline.find(self.instant.requested) != self.instant:
            return None
        if not (others := in_the_way(locked, timeline, self.instant, self.plan, None)):
            return None
        return LostClusteringError(
            "Another writer wrote to file groups of this clustering while its process stood still, just"
            f" before it completed: {others}. Nothing of it counts. Cluster the table again: that takes the"
            " plan off the timeline.",
            instant=self.instant.requested,
        )


def claim_clustering(
    locked: LockedTable, requested: str, options: WriteOptions, others_may_live: bool
) -> ClusteringAttempt | None:
    """Move a clustering to inflight, after deleting the files of a dead attempt; None if it is outdated.

    If another process that may only have stalled ran it, the plan is unscheduled and not run again: file
    groups that the stalled process still writes would count next to those of the new attempt.
    """
    locked, timeline = recover_and_load(locked, options.failed_writes)
    instant = timeline.find(requested)
    if instant is None:
        raise NoPlanError.of("clustering", requested)
    if instant.action.completed_action is not Action.REPLACE_COMMIT:
        raise InvalidError("There is no clustering with this time on the timeline.", instant=requested)
    if instant.is_completed:
        return None
    plan = decode_clustering_plan(locked.store.read_requested(instant))
    _check_runnable(plan, instant)
    refuse_live_writers(locked.context.storage, locked.context.clock, (instant,), options.failed_writes)
    gives_way_to = options.failed_writes if options.concurrency.prefers_writers else None
    others = in_the_way(locked, timeline, instant, plan, gives_way_to)
    if others_may_live or others:
        reason = f"its file groups were written to: {others}" if others else "its process stalled or died"
        _log.info("Unscheduling the clustering %s: %s.", requested, reason)
        unschedule_clustering(locked.rollback_context(), instant, options.failed_writes)
        return None
    settings, schema_json = file_settings(locked, timeline, requested, options)
    task = _task(locked, timeline, plan, options, settings)
    fence = rollback_inflight_plan(locked.rollback_context(), instant)
    if isinstance(fence, Instant):
        return None
    inflight = start_plan(locked, Instant(requested, Action.CLUSTERING, State.REQUESTED), fence)
    return ClusteringAttempt(inflight, plan, task, schema_json, fence, gives_way_to)


def _check_runnable(plan: ClusteringPlan, instant: Instant) -> None:
    name = plan.strategy.rpartition(".")[2].removeprefix("Spark").removeprefix("Java")
    if name not in _RUNNABLE:
        raise UnsupportedError(
            f"The plan of this clustering requires {plan.strategy}, which this release does not have. Run it"
            " with the engine that scheduled it.",
            instant=instant.requested,
        )
    base_files = base_files_of(plan)
    if base_files is not None and base_files != base_files_in(plan.groups):
        raise CorruptTableError(
            "The plan of a base-file compaction lists other files than the clustering that contains it."
            f" Unschedule it (rollback of {instant.requested}), and plan again.",
            instant=instant.requested,
        )


def _task(
    locked: LockedTable,
    timeline: Timeline,
    plan: ClusteringPlan,
    options: WriteOptions,
    settings: FileSettings,
) -> ClusterGroup | ResizeGroup:
    clustering, config = options.clustering, locked.config
    is_single_file = plan.strategy == SINGLE_FILE_SORT
    order = RowOrder.of(plan.parameters, clustering)
    order.check(settings.full_schema)
    if config.has_sorted_files:
        order = RowOrder((RECORD_KEY,))
    task = ClusterGroup(
        replace(settings, base_file_bytes_max=_BYTES_MAX if is_single_file else clustering.target_file_bytes),
        InstantRange.of(timeline),
        order,
        plan.keeps_commit_times,
        locked.context.ids,
    )
    if not is_resizing(plan):
        return task
    fields = options.bucket_hash_fields or config.bucket_hash_fields or config.record_key_fields
    return ResizeGroup(task, fields)


def _metadata(plan: ClusteringPlan, stats: list[WriteStat], schema_json: str) -> CommitMetadata:
    replaced: dict[str, list[str]] = {}
    for group in plan.groups:
        for each in group.slices:
            replaced.setdefault(each.partition, []).append(each.file_id)
    return CommitMetadata(
        stats=tuple(stats),
        operation=WriteOperation.CLUSTER,
        extra={"schema": schema_json},
        replaced={partition: tuple(ids) for partition, ids in replaced.items()},
    )
