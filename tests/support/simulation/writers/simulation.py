"""A table with several writers, a process for its services and a reader, all at once; one seed draws it all.

faulty    every actor carries out the operations that it drew, while storage, clocks and processes fail
checked   after every commit the table holds what the operations so far lead to, one after the other
calm      no faults any more, and heartbeats and leases have expired: every actor succeeds with one more
settled   a clean leaves no pending write, validation finds no error, and the rows are still right
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field, replace

import drawstring
from drawstring.base.clock import SeededIds
from drawstring.base.errors import ConflictError, UnavailableError
from drawstring.engine.local import LocalEngine
from drawstring.model.validation import Severity
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.txn.heartbeats import HEARTBEAT_FOLDER
from drawstring.txn.table_context import TableContext
from tests.support.simulation.writers.history import History, Operation, Rows, rows_of
from tests.support.simulation.writers.operations import KEYS, SCHEMA, Operations, batch, place, service
from tests.support.simulation.writers.scheduler import Crash, Process, Scheduler, SimulatedClock
from tests.support.simulation.writers.storage import SharedStorage, Trace, Weather
from tests.support.tables import BUCKETS, COW, MOR, new_address

OPTIMISTIC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
RETENTION = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
COLUMNS = ["id", "city", "value"]
IDLE_SECONDS = (0.0, 0.5, 5.0)
HOUR_MS = 3_600_000
WRITERS = 3
VALIDATED_EVERY = 4
"""After so many operations the whole table is validated."""

ALIVE_MS = 100_000
"""Nobody may take a process for dead whose heartbeat is younger."""


@dataclass(frozen=True)
class Kind:
    """A kind of table that optimistic concurrency control supports."""

    table_type: str
    version: int
    properties: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        short = "cow" if self.table_type == COW else "mor"
        return f"{short}{self.version}{'-buckets' if self.properties else ''}"


_BUCKETS = tuple(BUCKETS.items())
KINDS = [
    Kind(COW, 9),
    Kind(MOR, 9),
    Kind(MOR, 6),
    Kind(MOR, 9, _BUCKETS),
    Kind(COW, 6, _BUCKETS),
]


@dataclass(frozen=True)
class Plan:
    """How a simulation goes.

    Attributes:
        kind: of table.
        seed: draws everything.
        operations: of each actor.
        has_faults: whether anything fails.
        lingers_at: part of a storage call; processes often stand still for long before it.
        merges: whether writers also merge, and upsert into new file groups.
    """

    kind: Kind
    seed: int
    operations: int = 5
    has_faults: bool = True
    lingers_at: str = ""
    merges: bool = False


@dataclass
class Report:
    """What came of a simulation.

    Attributes:
        outcomes: how many operations ended how.
        faults: how many there were, by name.
        commits: how many operations took effect.
        calls: how many storage calls there were.
        digest: of all storage calls in order.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    commits: int = 0
    calls: int = 0
    digest: str = ""


class Simulation:
    """One table, and all who use it.

    Args:
        plan: says what happens.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.scheduler = Scheduler(plan.seed)
        self.weather = _weather(self.scheduler.draw) if plan.has_faults else Weather()
        self.weather.lingers_at = plan.lingers_at
        self.trace = Trace()
        self.report = Report(faults=self.weather.count)
        self._lives = 0
        self._doing: dict[str, Operation] = {}
        self._beats: dict[str, tuple[Process, int]] = {}
        self._storage = MemoryStorage(new_address(), SimulatedClock(self.scheduler))
        self._create()
        config = self.looked_at().config
        self.history = History(config.timeline_folder, config.layout, self.look)

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
        return Table(TableContext(self._storage, LocalEngine(threads=1), SimulatedClock(self.scheduler)))

    def look(self) -> Rows:
        """Return the rows that the table holds."""
        return rows_of(self.looked_at().scan(COLUMNS).to_arrow())

    def _create(self) -> None:
        kind = self.plan.kind
        drawstring.create(
            self._storage.spec.uri,
            SCHEMA,
            name="sim",
            table_type=kind.table_type,
            record_key="id",
            partition_by="city",
            version=kind.version,
            properties=dict(kind.properties),
        )
        table = Table(replace(self.looked_at()._context, ids=SeededIds(self.plan.seed)))
        for keys in (range(0, KEYS, 2), range(0, KEYS, 4)):
            self.scheduler.now_ms += 1000
            table.upsert(batch({place(key): key for key in keys}))

    def _validate(self, where: str) -> None:
        findings = self.looked_at().validate().findings
        bad = [each for each in findings if each.severity is Severity.ERROR]
        assert bad == [], f"{where}: {bad}"

    # -------------------- its users

    def _live(self, operations: int, *, is_last: bool = False) -> None:
        """Let writers, a process of services and a reader carry out operations side by side."""
        names = [*(f"writer {number}" for number in range(WRITERS)), "services", "reader"]
        for number, name in enumerate(names):
            process = self._process(name)
            draw = random.Random(f"{self.plan.seed} {name} {is_last}")
            drawn = Operations(
                draw,
                is_mor=self.plan.kind.table_type == MOR,
                is_hashed=bool(self.plan.kind.properties),
                number=100 * (1 + number + WRITERS * is_last),
                merges=self.plan.merges,
            )
            actor = _Actor(self, process, drawn, draw, is_last=is_last)
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
            self._storage, self.scheduler, process, self.weather, self.trace, self._changed
        )
        clock = SimulatedClock(self.scheduler, process)
        return Table(TableContext(storage, LocalEngine(threads=1), clock, process.ids))

    def begin(self, process: Process, operation: Operation) -> None:
        """Note that a process begins with an operation."""
        operation.began = self.history.now
        self._doing[process.name] = operation

    def _changed(self, process: Process, path: str, data: bytes) -> None:
        try:
            self._check_rollback(process, path)
            self.history.note(self._doing.get(process.name), path, data)
        except Exception as error:  # which the product might take for a failure of the storage
            self.scheduler.fail(error)
            raise Crash from error

    def _check_rollback(self, process: Process, path: str) -> None:
        """Make sure that nobody rolls a write back whose process is alive."""
        folder, _, name = path.rpartition("/")
        now_ms = self.scheduler.now_ms
        if folder == HEARTBEAT_FOLDER:
            is_late = now_ms - self._beats.get(name, (process, now_ms))[1] >= ALIVE_MS
            self._beats[name] = (process, 0 if is_late else now_ms)
        time = name.partition("_")[0]
        writer, beat_ms = self._beats.get(time, (process, 0))
        if not name.endswith(".rolledback") or writer.is_dead:
            return
        if writer is process:  # it gives its write up; if it stalls then, another process goes on
            self._beats[time] = (process, 0)
            return
        is_young = now_ms - beat_ms < ALIVE_MS and process.skew_ms <= 0
        is_beating = is_young and self._storage.exists(f"{HEARTBEAT_FOLDER}/{time}")
        assert not is_beating, f"{process.name} rolls a write of {writer.name} back: {path}"

    def end(self, operation: Operation) -> None:
        """Check an operation that is over."""
        self.report.outcomes[operation.outcome] = self.report.outcomes.get(operation.outcome, 0) + 1
        self.history.judge(operation)
        if sum(self.report.outcomes.values()) % VALIDATED_EVERY == 0:
            self._validate(f"after {operation.name}")

    def _finish_plans(self) -> None:
        """Run the plans that are pending: writers are refused where a clustering waits."""
        kind = self.plan.kind
        names = (["compact"] if kind.table_type == MOR else []) + ([] if kind.properties else ["cluster"])
        self._alone(names)
        self.history.check("after the pending plans")

    def _alone(self, names: list[str]) -> None:
        """Run services one after the other, with nobody beside them."""
        process = self._process("services")

        def run() -> None:
            for name in names:
                service(name).act(self.opened(process), {**OPTIMISTIC, **RETENTION})

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


class _Actor:
    """Somebody who carries out one operation after the other; a crashed process is started again."""

    def __init__(
        self,
        simulation: Simulation,
        process: Process,
        drawn: Operations,
        draw: random.Random,
        *,
        is_last: bool,
    ) -> None:
        self._simulation = simulation
        self._process = process
        self._drawn = drawn
        self._draw = draw
        self._is_last = is_last

    def live(self, operations: int) -> None:
        for _ in range(operations):
            try:
                self._pause()
                self._read() if self._process.name == "reader" else self._act()
            except Crash:
                self._go_on()

    def _pause(self) -> None:
        seconds = self._draw.choice(IDLE_SECONDS) * self._draw.random()
        self._simulation.scheduler.wait(1 + int(1000 * seconds))

    def _go_on(self) -> None:
        """Go on as a new process, unless the simulation is over."""
        simulation = self._simulation
        if simulation.scheduler.failure is not None:
            raise Crash
        task = simulation.scheduler.current()
        assert task is not None
        self._process = task.process = simulation.reborn(self._process)

    def _act(self) -> None:
        is_service, plans = self._process.name == "services", not self._is_last
        operation = self._drawn.service(plans=plans) if is_service else self._drawn.write()
        simulation, before = self._simulation, self._process.disturbances
        options = {
            **OPTIMISTIC,
            **RETENTION,
            "hoodie.write.num.retries.on.conflict.failures": self._retries(),
        }
        simulation.begin(self._process, operation)
        try:
            result = operation.act(simulation.opened(self._process), options)
            operation.outcome = "nothing" if not result and operation.apply is not dict else "done"
        except (ConflictError, UnavailableError) as error:
            operation.outcome, operation.error = type(error).__name__, error
            self._check_error(operation)
        except Crash as error:
            operation.outcome, operation.error = "died", error
            raise
        finally:
            operation.was_disturbed = self._process.disturbances > before
            if operation.outcome and simulation.scheduler.failure is None and operation.apply is not dict:
                simulation.end(operation)

    def _check_error(self, operation: Operation) -> None:
        is_allowed = isinstance(operation.error, ConflictError) or self._process.disturbances
        assert is_allowed and not self._is_last, f"{operation.name} fails: {operation.error!r}"

    def _retries(self) -> str:
        return "3" if self._is_last else self._draw.choice(("0", "3", "3"))

    def _read(self) -> None:
        simulation = self._simulation
        began = simulation.history.now
        try:
            found = rows_of(simulation.opened(self._process).scan(COLUMNS).to_arrow())
        except UnavailableError:
            return
        simulation.history.judge_reading(found, began)


def _weather(draw: random.Random) -> Weather:
    """Draw which faults there are: none of a kind in many simulations, many in some."""

    def often(most: float) -> float:
        return draw.choice((0.0, most / 4, most))

    return Weather(
        before=often(0.004),
        after=often(0.006),
        crash=often(0.004),
        pause=often(0.004),
        jump=often(0.002),
        slow=draw.choice((0.01, 0.05, 0.2)),
    )


def simulate(plan: Plan) -> Report:
    """Run the simulation of a plan."""
    return Simulation(plan).run()
