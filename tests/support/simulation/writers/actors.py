"""Those who use the table of a simulation: writers, a process for its services, and readers."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

from drawstring.base.errors import ConflictError, LostRaceError, UnavailableError
from tests.support.simulation.writers.history import COLUMNS, Operation, rows_of
from tests.support.simulation.writers.operations import RETRIES, Operations, options_of
from tests.support.simulation.writers.scheduler import Crash, Process

if TYPE_CHECKING:
    from tests.support.simulation.writers.simulation import Simulation

IDLE_SECONDS = (0.0, 0.5, 5.0)


class Actor:
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
                self._turn()
            except Crash:
                self._go_on()

    def _turn(self) -> None:
        if self._process.name == "reader":
            self._read()
        elif self._process.name == "follower":
            self._follow()
        else:
            self._act()

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
        retries = self._retries()
        options = {**options_of(simulation.plan.kind), RETRIES: retries}
        simulation.begin(self._process, operation)
        try:
            result = operation.act(simulation.opened(self._process), options)
            operation.outcome = "nothing" if not result and operation.apply is not dict else "done"
        except (ConflictError, UnavailableError) as error:
            operation.outcome, operation.error = type(error).__name__, error
            self._check_error(operation, goes_first=retries != "0" and not is_service)
        except Crash as error:
            operation.outcome, operation.error = "died", error
            raise
        finally:
            operation.was_disturbed = self._process.disturbances > before
            if operation.outcome and simulation.scheduler.failure is None and operation.apply is not dict:
                simulation.end(operation)

    def _check_error(self, operation: Operation, *, goes_first: bool) -> None:
        plan = self._simulation.plan
        may_lose = not goes_first or plan.has_faults or plan.restores or plan.stops_at
        assert may_lose or not isinstance(operation.error, LostRaceError), (
            f"{operation.name} loses its last attempt: {operation.error}"
        )
        is_allowed = isinstance(operation.error, ConflictError) or self._process.disturbances
        assert is_allowed and not self._is_last, f"{operation.name} fails: {operation.error!r}"

    def _retries(self) -> str:
        return "3" if self._is_last else self._draw.choice(self._simulation.plan.retries)

    def _read(self) -> None:
        simulation = self._simulation
        began = simulation.history.now
        try:
            found = rows_of(simulation.opened(self._process).scan(COLUMNS).to_arrow(), simulation.plan.kind)
        except UnavailableError:
            return
        simulation.history.judge_reading(found, began)

    def _follow(self) -> None:
        simulation = self._simulation
        with suppress(UnavailableError):
            simulation.follower.go_on(simulation.opened(self._process))
