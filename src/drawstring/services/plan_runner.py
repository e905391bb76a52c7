"""Running a plan that stands on the timeline, of a compaction or of a clustering, while writers go on.

    lease of the instant   a second runner stays away, to the end
      under the table lock   claim: take a dead attempt back, inflight
      without it             write the files
      under the table lock   complete

What its process did not finish stays on the timeline; whoever runs it next begins anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import ConflictError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Engine
from drawstring.model.commit import WriteStat
from drawstring.model.instant import Action, Instant
from drawstring.model.result import CommitResult
from drawstring.services.progress import Progress
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_commit
from drawstring.txn.heartbeats import alive_elsewhere
from drawstring.txn.locks.service_lease import ServiceLease, service_lease
from drawstring.txn.missing_plans import NoPlanError, settle
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load

_log: Final = logging.getLogger("drawstring")


class Attempt(Protocol):
    """A plan that this process runs; its instant is inflight."""

    @property
    def operation(self) -> str:
        """What the result calls it."""

    @property
    def config(self) -> TableConfig:
        """The table as its tasks know it."""

    def write(self, engine: Engine, progress: Progress | None) -> list[WriteStat]:
        """Write the files of the plan, without the table lock."""

    def complete(self, session: LockedTable, timeline: Timeline, stats: list[WriteStat]) -> Instant:
        """Let the files take effect.

        Args:
            session: the table, locked and cleared.
            timeline: as it is under that lock.
            stats: of the files.

        Raises:
            ConflictError: somebody took the attempt back, or was there first.
        """


@dataclass(frozen=True, slots=True)
class PlanRunner:
    """Runs the plans of one service.

    Attributes:
        service: its name, for people.
        claim: brings a plan to inflight, the table being locked; None when there is nothing left to do. Told
            whether another process ran the plan before, and may only stand still.
        state: the table.
        options: of writes: codec, sizes, lock wait.
        progress: told of every piece of work that is done.
    """

    service: str
    claim: Callable[[LockedTable, str, WriteOptions, bool], Attempt | None]
    state: TableContext
    options: WriteOptions
    progress: Progress | None

    def run(self, requested: str, *, is_own: bool = False) -> CommitResult | None:
        """Run the plan of a requested time.

        Args:
            requested: of the plan.
            is_own: whether the caller has planned it just now.

        Returns:
            What was done; None when nothing was left to do.

        Raises:
            ConflictError: another process runs it or withdrew it, or another writer holds the table.
            InvalidError: there is no such plan.
        """
        state = self.state
        with service_lease(state.storage, state.clock, state.ids, requested) as lease:
            if lease is None:
                raise ConflictError(
                    f"another process runs this {self.service}: leave it to that one", instant=requested
                )
            try:
                result = self.run_leased(requested, lease)
            except NoPlanError as error:
                settle(state, self.service, requested, is_own=is_own, error=error)
                return None
            if result is None and lease.others_may_live:
                self._refuse_withdrawn(requested)
            return result

    def run_pending(
        self, config: TableConfig, *actions: Action, check: Callable[[LockedTable], None] | None = None
    ) -> CommitResult | None:
        """Run the plans on the timeline that nobody else runs; return what the last one did.

        Args:
            config: of the table.
            actions: of the service.
            check: refuses what is asked for beside them, before any of them is run; the table is locked.
        """
        state, result = self.state, None
        pending = TimelineStore(state.storage, config, state.clock).load().pending_of(*actions)
        if pending and check is not None:
            with lock_table(state, self.options.lock_wait_ms) as found:
                check(found)
        alive = alive_elsewhere(state.storage, state.clock, pending, self.options.failed_writes)
        for instant in pending:
            if instant in alive:
                _log.info("another engine runs the %s %s", self.service, instant.requested)
                continue
            with service_lease(state.storage, state.clock, state.ids, instant.requested) as lease:
                if lease is None:
                    _log.info("another process runs the %s %s", self.service, instant.requested)
                else:
                    result = self._run_if_there(instant.requested, lease) or result
        return result

    def _run_if_there(self, requested: str, lease: ServiceLease) -> CommitResult | None:
        try:
            return self.run_leased(requested, lease)
        except NoPlanError:
            _log.info("another process completed or withdrew the %s %s", self.service, requested)
            return None

    def _refuse_withdrawn(self, requested: str) -> None:
        state = self.state
        timeline = TimelineStore(state.storage, load_config(state.storage), state.clock).load()
        if requested in timeline.rolled_back:
            raise ConflictError(
                f"Another process ran this {self.service} and stands still, or died. The plan was withdrawn:"
                f" plan a new {self.service}.",
                instant=requested,
            )

    def run_leased(self, requested: str, lease: ServiceLease) -> CommitResult | None:
        """Run the plan of a requested time whose lease this process holds; see `run`."""
        watch = Stopwatch()
        with lock_table(self.state, self.options.lock_wait_ms) as found:
            attempt = self.claim(found, requested, self.options, lease.others_may_live)
        if attempt is None:
            lease.forget()
            return None
        watch.lap("plan")
        stats = attempt.write(self.state.engine, self.progress)
        watch.lap("write")
        completed = self._complete(attempt, stats, lease)
        watch.lap("commit")
        result = CommitResult.of(completed, attempt.operation, stats, watch.seconds())
        return emit_commit(self.state, attempt.config, result, watch.laps)

    def _complete(self, attempt: Attempt, stats: list[WriteStat], lease: ServiceLease) -> Instant:
        with lock_table(self.state, self.options.lock_wait_ms) as found:
            session, timeline = recover_and_load(found, self.options.failed_writes)
            lease.check()
            completed = attempt.complete(session, timeline, stats)
            lease.forget()
            return completed
