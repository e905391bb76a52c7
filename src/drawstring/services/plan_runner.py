"""The runner of pending plans: compactions and clusterings, while writers go on.

    lease of the instant   keeps other runners away until the end, and restores
      under the table lock   claim: delete the files of a dead attempt, move the instant to inflight
      without it             write the files, with a heartbeat that Hudi's writers and services look at
      under the table lock   complete

If its process dies, the plan stays on the timeline, and the next runner starts again. If another process
takes the plan off the timeline all the same (Hudi's restore looks at no lease), the run ends with a conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import ConflictError, CorruptTableError, DrawstringError
from drawstring.config.keys.concurrency import FailedWritesPolicy
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.filegroups.write.markers import flush_files
from drawstring.model.commit import WriteStat
from drawstring.model.instant import Action, Instant
from drawstring.model.result import CommitResult
from drawstring.services.progress import Progress
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_commit
from drawstring.txn.heartbeat import Heartbeat, alive_elsewhere, runs_elsewhere
from drawstring.txn.locks.service_lease import ServiceLease, service_lease
from drawstring.txn.locks.table_lock import conflict_if_lost
from drawstring.txn.plan_transitions import NoPlanError, check_archived, check_requested_time
from drawstring.txn.rollback.restore import rollback_of
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import (
    LockedTable,
    lock_table,
    recover_and_load,
)
from drawstring.write.retry import await_begun

_log: Final = logging.getLogger("drawstring")


class Attempt(Protocol):
    """One run of a plan by this process; its instant is inflight."""

    @property
    def operation(self) -> str:
        """Name of the operation in the result."""

    @property
    def config(self) -> TableConfig:
        """Settings of the table that the tasks use."""

    def write(self, engine: Engine, progress: Progress | None) -> list[WriteStat]:
        """Write the files of the plan, without the table lock."""

    def complete(self, locked: LockedTable, timeline: Timeline, stats: list[WriteStat]) -> Instant:
        """Complete the instant, so that the files take effect.

        Args:
            locked: the locked table, after recovery.
            timeline: as read under that lock.
            stats: of the files.

        Raises:
            ConflictError: another process rolled the attempt back, or completed the instant first.
        """


@dataclass(frozen=True, slots=True)
class PlanRunner:
    """Runs the plans of one service.

    Attributes:
        service: name of the service, for messages.
        claim: moves a plan to inflight under the table lock; returns None if nothing is left to do. Its last
            argument says whether another process, which may only have stalled, ran the plan before.
        context: the open table.
        options: of writes: codec, sizes, lock wait.
        progress: called with the progress of the run.
    """

    service: str
    claim: Callable[[LockedTable, str, WriteOptions, bool], Attempt | None]
    context: TableContext
    options: WriteOptions
    progress: Progress | None

    def run(self, requested: str, *, is_own: bool = False) -> CommitResult | None:
        """Run the plan with a requested time.

        Args:
            requested: requested time of the plan.
            is_own: whether the caller has just planned it.

        Returns:
            The result; None if nothing was left to do.

        Raises:
            ConflictError: another process runs or unscheduled the plan, or another writer holds the table.
            InvalidError: there is no such plan.
        """
        context = self.context
        if not is_own and not self._is_listed(requested):
            return None
        with service_lease(context.storage, context.clock, context.ids, requested) as lease:
            if lease is None:
                raise self._running(requested)
            result = self.run_listed(requested, lease, is_own=is_own)
            if result is None and lease.others_may_live:
                self._refuse_unscheduled(requested)
            return result

    def _is_listed(self, requested: str) -> bool:
        """Return whether an instant is on the timeline; False for a plan that was completed and archived.

        Raises:
            InvalidError: the table has no record of it; it has no lease either then.
        """
        check_requested_time(requested)
        timeline = self._timeline()
        if timeline.find(requested) is not None:
            return True
        error = NoPlanError.of(self.service, requested, timeline)
        check_archived(self.context, self.service, requested, is_own=False, error=error)
        return False

    def _timeline(self) -> Timeline:
        context = self.context
        return TimelineStore(context.storage, load_config(context.storage), context.clock).load()

    def _running(self, requested: str) -> ConflictError:
        context, plan = self.context, self._timeline().find(requested)
        return runs_elsewhere(context, self.service, requested, plan, "Wait until it is done.")

    def run_listed(self, requested: str, lease: ServiceLease, *, is_own: bool) -> CommitResult | None:
        """Run a plan that was on the timeline, and whose lease this process holds; see `run`."""
        try:
            return self.run_leased(requested, lease)
        except NoPlanError as error:
            check_archived(self.context, self.service, requested, is_own=is_own, error=error)
            return None

    def run_pending(
        self, config: TableConfig, *actions: Action, check: Callable[[LockedTable], None] | None = None
    ) -> CommitResult | None:
        """Run the pending plans that no other process runs; return the result of the last one.

        Args:
            config: the table's settings.
            actions: of the service.
            check: checks the options of the caller under the table lock, before any plan runs.
        """
        context, result = self.context, None
        pending = TimelineStore(context.storage, config, context.clock).load().pending_of(*actions)
        if pending and check is not None:
            with lock_table(context, self.options.locking) as locked:
                check(locked)
        alive = alive_elsewhere(context.storage, context.clock, pending, self.options.failed_writes)
        for instant in pending:
            if instant in alive:
                _log.info("Another engine runs the %s %s.", self.service, instant.requested)
                continue
            with service_lease(context.storage, context.clock, context.ids, instant.requested) as lease:
                if lease is None:
                    _log.info("Another process runs the %s %s.", self.service, instant.requested)
                else:
                    result = self._run_if_pending(instant.requested, lease) or result
        return result

    def _run_if_pending(self, requested: str, lease: ServiceLease) -> CommitResult | None:
        try:
            return self.run_leased(requested, lease)
        except NoPlanError:
            _log.info("Another process completed or unscheduled the %s %s.", self.service, requested)
            return None

    def _refuse_unscheduled(self, requested: str) -> None:
        if requested in self._timeline().rolled_back:
            raise ConflictError(
                f"Another process ran this {self.service} and stalled or died. The plan was unscheduled: plan"
                f" a new {self.service}.",
                instant=requested,
            )

    def run_leased(self, requested: str, lease: ServiceLease) -> CommitResult | None:
        """Run a plan whose lease this process holds; see `run`."""
        watch = Stopwatch()
        with ExitStack() as ends:
            with lock_table(self.context, self.options.locking) as locked:
                attempt = self.claim(locked, requested, self.options, lease.others_may_live)
                if attempt is None:
                    lease.forget()
                    return None
                self._beat(requested, ends)
            watch.lap("plan")
            ends.enter_context(self._conflict_if_rolled_back(requested))
            with conflict_if_lost(lease):
                stats = attempt.write(self.context.engine, self.progress)
                flush_files(self.context.storage, stats)
                await_begun(self.context, self.options, requested=requested)
            watch.lap("write")
            completed = self._complete(attempt, stats, lease)
            watch.lap("commit")
        result = CommitResult.of(completed, attempt.operation, stats, watch.seconds())
        return emit_commit(self.context, attempt.config, result, watch.laps)

    def _complete(self, attempt: Attempt, stats: list[WriteStat], lease: ServiceLease) -> Instant:
        with lock_table(self.context, self.options.locking) as locked:
            locked, timeline = recover_and_load(locked, self.options.failed_writes)
            lease.check()
            completed = attempt.complete(locked, timeline, stats)
            lease.forget()
            return completed

    def _beat(self, requested: str, ends: ExitStack) -> None:
        """Beat until the end of the run; the caller holds the table lock, and has found nobody else alive."""
        failed = self.options.failed_writes
        if failed.spares_writers or failed.policy == FailedWritesPolicy.LAZY:
            context = self.context
            heartbeat = Heartbeat(context.storage, context.clock, requested, failed, is_leased=True)
            ends.callback(heartbeat.stop)
            heartbeat.start()

    @contextmanager
    def _conflict_if_rolled_back(self, requested: str) -> Iterator[None]:
        """Blame a run that failed on the restore or rollback that took its plan or its files away.

        Raises:
            ConflictError: one did.
        """
        try:
            yield
        except (CorruptTableError, FileNotFoundError, ConflictError) as error:
            try:
                rolled_back = self._rolled_back_error(requested, is_known=isinstance(error, ConflictError))
            except (DrawstringError, OSError):
                raise error from None
            if rolled_back is not None:
                raise rolled_back from error
            raise

    def _rolled_back_error(self, requested: str, *, is_known: bool) -> ConflictError | None:
        """Return an error that names who took a plan off the timeline.

        Args:
            requested: requested time of the plan.
            is_known: whether the error of the run tells what happened, unless it was a restore.
        """
        context = self.context
        store = TimelineStore(context.storage, load_config(context.storage), context.clock)
        timeline = store.load()
        if timeline.find(requested) is not None:  # pending, or completed by another process
            return None
        undo = rollback_of(store, timeline, requested)
        if is_known and (undo is None or undo.action is not Action.RESTORE):
            return None
        what = "Another process" if undo is None else f"The {undo.action} {undo.requested} of another process"
        return ConflictError(
            f"{what} took this {self.service} off the timeline while it ran, with its files. Nothing of it"
            f" counts, and no row is lost by that. Plan a new {self.service} if it is still due.",
            table=context.storage.spec.uri,
            instant=requested,
        )
