"""A table with several writers, a process for its services and a reader, all at once; one seed draws it all.

faulty    every actor carries out the operations that it drew, while storage, clocks and processes fail
checked   after every commit the table holds what the operations so far lead to, one after the other
calm      no faults any more, and heartbeats and leases have expired: every actor succeeds with one more
settled   a clean leaves no pending write, validation finds no error, and the rows are still right

With `follows` a reader follows the table, and what it saw has to add up to the table. With `restores` the
services make savepoints and go back to them, which undoes operations that were acknowledged.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import drawstring
from drawstring.base.clock import Clock, Ids, SeededIds, SystemIds
from drawstring.engine.local import LocalEngine
from drawstring.metadata.partitions.column_stats import ColumnStatsMaintainer
from drawstring.metadata.table import METADATA_FOLDER
from drawstring.model.files import FileStatus, parse_data_file
from drawstring.model.result import Severity
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from drawstring.txn.table_context import TableContext
from tests.support.built_statistics import built, kept
from tests.support.metadata_tables import listed
from tests.support.record_indexes import indexed_places, places
from tests.support.simulation.writers.actors import Actor
from tests.support.simulation.writers.follower import Follower
from tests.support.simulation.writers.history import History, Operation
from tests.support.simulation.writers.operations import (
    INDEX,
    KEYS,
    SCHEMA,
    Operations,
    batch,
    options_of,
    place,
    service,
)
from tests.support.simulation.writers.plans import Plan, Report, weather_of
from tests.support.simulation.writers.scheduler import Crash, Process, Scheduler, SimulatedClock
from tests.support.simulation.writers.storage import SharedStorage, Trace, Weather
from tests.support.storages import data_files
from tests.support.tables import new_address

HOUR_MS = 3_600_000
WRITERS = 3
VALIDATED_EVERY = 4
"""After so many operations the whole table is validated."""

ALIVE_MS = 100_000
"""Nobody may take a process for dead whose heartbeat is younger."""

FOR_HUDI = b"drawstring"
"""Content of the heartbeat of a process of which a lock or a lease tells whether it lives."""


class Simulation:
    """One table, and all who use it.

    Args:
        plan: says what happens.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.scheduler = Scheduler(plan.seed)
        self.weather = weather_of(self.scheduler.draw) if plan.has_faults else Weather()
        self.weather.lingers_at, self.weather.stops_at = plan.lingers_at, plan.stops_at
        self.trace = Trace()
        self.report = Report(faults=self.weather.count)
        self._lives = 0
        self._doing: dict[str, Operation] = {}
        self._beats: dict[str, tuple[Process, int]] = {}
        self._storage = MemoryStorage(new_address(), SimulatedClock(self.scheduler))
        self._create()
        self.history = History(self.looked_at, plan.kind)
        self.follower = Follower(self.history, plan.kind, plan.seed)

    def run(self) -> Report:
        """Let everybody do what they drew, then settle the table.

        Raises:
            AssertionError: something is wrong; the message begins with the seed.
        """
        try:
            self._live(self.plan.operations)
            self.weather.end()
            self.scheduler.now_ms += HOUR_MS
            self._finish_plans()
            self._live(1, is_last=True)
            self._settle()
        except Exception as error:  # one that an operation may not raise is as bad as wrong rows
            text = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{self.plan.kind}, seed {self.plan.seed}: {text}") from error
        calls = "\n".join(" ".join(call) for call in self.trace.calls)
        self.report.digest = hashlib.sha256(calls.encode()).hexdigest()
        self.report.calls = len(self.trace.calls)
        self.report.commits = self.history.now
        return self.report

    # -------------------- the table

    def looked_at(self) -> Table:
        """Return the table for a look at one moment: nobody else does anything meanwhile."""
        return self._table(self._storage, SimulatedClock(self.scheduler), SystemIds())

    def _table(self, storage: Storage, clock: Clock, ids: Ids) -> Table:
        uses_metadata = self.plan.uses_metadata
        return Table(TableContext(storage, LocalEngine(threads=1), clock, ids, uses_metadata))

    def _create(self) -> None:
        kind = self.plan.kind
        drawstring.create(
            self._storage.spec.uri,
            SCHEMA,
            name="sim",
            table_type=kind.table_type,
            record_key="id",
            partition_by="city",
            ordering="value" if kind.is_ordered else (),
            version=kind.version,
            properties=dict(kind.properties),
        )
        table = Table(replace(context_of(self.looked_at()), ids=SeededIds(self.plan.seed)))
        for keys in (range(0, KEYS, 2), range(0, KEYS, 4)):
            self.scheduler.now_ms += 1000
            table.upsert(batch({place(key): key for key in keys}), options=dict(kind.options))

    def _validate(self, where: str) -> None:
        findings = self.looked_at().services.validate().findings
        if any(each.check == "restore" for each in findings):
            return  # one is on its way
        bad = [each for each in findings if each.severity is Severity.ERROR]
        assert bad == [], f"{where}: {bad}"

    # -------------------- its users

    def _live(self, operations: int, *, is_last: bool = False) -> None:
        """Let writers, a process of services and a reader carry out operations side by side."""
        names = [*(f"writer {number}" for number in range(WRITERS)), "services", "reader"]
        names += ["follower"] if self.plan.follows else []
        for number, name in enumerate(names):
            process = self._process(name)
            draw = random.Random(f"{self.plan.seed} {name} {is_last}")
            drawn = Operations(draw, self.plan, number=100 * (1 + number + WRITERS * is_last))
            actor = Actor(self, process, drawn, draw, is_last=is_last)
            self.scheduler.spawn(process, lambda actor=actor: actor.live(operations))  # type: ignore[misc]
        self.scheduler.run()

    def _process(self, name: str) -> Process:
        """Return a new process of an actor."""
        self._lives += 1
        return Process(name, SeededIds(self.plan.seed * 1_000_003 + self._lives))

    def reborn(self, process: Process) -> Process:
        """Return the process that goes on in place of a crashed one, on the same machine."""
        return replace(self._process(process.name), skew_ms=process.skew_ms)

    def opened(self, process: Process) -> Table:
        """Open the table in a process."""
        storage = SharedStorage(
            self._storage, self.scheduler, process, self.weather, self.trace, self._changed, self._removed
        )
        clock = SimulatedClock(self.scheduler, process)
        return self._table(storage, clock, process.ids)

    def begin(self, process: Process, operation: Operation) -> None:
        """Note that a process begins with an operation."""
        operation.began = self.history.now
        self._doing[process.name] = operation

    def _changed(self, process: Process, path: str, data: bytes) -> None:
        with self._failing():
            self._check_rollback(process, path, data)
            self.history.note(self._doing.get(process.name), path, data)

    def _removed(self, path: str) -> None:
        with self._failing():
            folder, _, name = path.rpartition("/")
            if folder == HEARTBEAT_FOLDER and name in self._beats:  # the write ended, whatever comes late
                self._beats[name] = (self._beats[name][0], 0)
            self.history.note_removal(path)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """End the simulation with an error that the product might take for a failure of the storage."""
        try:
            yield
        except Exception as error:
            self.scheduler.fail(error)
            raise Crash from error

    def _check_rollback(self, process: Process, path: str, data: bytes) -> None:
        """Make sure that nobody rolls a write back whose process is alive.

        A restore undoes writes that are complete, whose heartbeats may be there for another moment. With
        services the lease on the plan decides: their heartbeats are for Hudi. The metadata table has times of
        its own, which may be those of writes.
        """
        if path.startswith(f"{METADATA_FOLDER}/"):
            return
        folder, _, name = path.rpartition("/")
        now_ms = self.scheduler.now_ms
        if folder == HEARTBEAT_FOLDER and data != FOR_HUDI:
            is_late = now_ms - self._beats.get(name, (process, now_ms))[1] >= ALIVE_MS
            self._beats[name] = (process, 0 if is_late else now_ms)
        time = re.split("[._]", name)[0]
        if (
            name.endswith(".requested") and time in self._beats
        ):  # of those that chose one time, this one has it
            self._beats[time] = (process, self._beats[time][1])
        writer, beat_ms = self._beats.get(time, (process, 0))
        if not name.endswith(".rolledback") or writer.is_dead or self.history.may_undo(time):
            return
        if writer is process:  # it gives its write up; if it stalls then, another process goes on
            self._beats[time] = (process, 0)
            return
        is_young = now_ms - beat_ms < ALIVE_MS
        is_beating = is_young and self._storage.exists(f"{HEARTBEAT_FOLDER}/{time}")
        assert not is_beating, f"{process.name} rolls a write of {writer.name} back: {path}"
        self._beats[time] = (process, 0)  # whoever finds the rollback begun may finish it

    def end(self, operation: Operation) -> None:
        """Check an operation that is over."""
        self.report.outcomes[operation.outcome] = self.report.outcomes.get(operation.outcome, 0) + 1
        self.history.judge(operation)
        if sum(self.report.outcomes.values()) % VALIDATED_EVERY == 0:
            self._validate(f"after {operation.name}")

    def _finish_plans(self) -> None:
        """Run the plans that are pending: writers are refused where a clustering waits."""
        kind = self.plan.kind
        names = (["compact"] if kind.is_mor else []) + ([] if kind.is_hashed else ["cluster"])
        self._alone(names)
        self.history.check("after the pending plans")

    def _alone(self, names: list[str]) -> None:
        """Run services one after the other, with nobody beside them."""
        process = self._process("services")

        def run() -> None:
            for name in names:
                service(name).act(self.opened(process), options_of(self.plan.kind))

        self.scheduler.spawn(process, run)
        self.scheduler.run()

    def _settle(self) -> None:
        """Clean the table, and look at what is left."""
        self._validate("at the end")
        self.scheduler.now_ms += HOUR_MS
        self._alone(["clean"])
        pending = self.looked_at().timeline.pending_writes()
        assert pending == (), f"{pending} are pending after a clean"
        self.history.check("after a last clean")
        self._validate("after a last clean")
        if self.plan.uses_metadata:
            self._compare_lists()
        if self.plan.kind.has_record_index:
            found, held = indexed_places(self.looked_at()), places(self.looked_at())
            assert found == held, f"indexed only: {found - held}, held only: {held - found}"
        if self.plan.indexes:
            self._compare_statistics()
        if self.plan.follows:
            self.follower.go_on(self.looked_at())
            self.follower.check_all()

    def _compare_lists(self) -> None:
        """Compare what the metadata table lists with the storage.

        Processes that stood still while they were rolled back may have left files that do not count.
        """
        table = self.looked_at()
        stored = (parse_data_file(FileStatus(path, 0)) for path in data_files(self._storage))
        late = table.timeline.rolled_back
        counted = {file.status.path for file in stored if file is not None and file.instant not in late}
        found = listed(table)
        assert found == counted, f"listed only: {found - counted}, stored only: {counted - found}"

    def _compare_statistics(self) -> None:
        """Compare the statistics that are kept, if any, with the files."""
        self._alone(["indexes.run"])
        table = self.looked_at()
        if INDEX in {each.name for each in table.indexes.list() if each.is_complete}:
            self.report.outcomes["indexed"] = 1
            found = kept(table, INDEX)
            wanted = built(table, ColumnStatsMaintainer())
            assert found == wanted, f"kept only: {found.keys() - wanted}, built only: {wanted.keys() - found}"


def simulate(plan: Plan) -> Report:
    """Run the simulation of a plan."""
    return Simulation(plan).run()
