"""The main job, one step after the other, on either engine.

schedule ──bulk insert──▶ flights (merge on read) ──increment──▶ delay_by_carrier_day (copy on write)
events   ──upserts──────▶    │         │
cancelled ──delete──────▶    │         └─ time travel to before a batch
                          compaction
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from demo import check
from demo.backend import BEGINNING, Backend, checkpoint, latest_instant
from demo.landing import Landing
from demo.show import Steps
from demo.tables import DELAYS, FLIGHTS


@dataclass(frozen=True, slots=True)
class Verdict:
    """One comparison with the plain computation: what was read, how many rows, what differs."""

    what: str
    rows: int
    difference: str | None


class Pipeline:
    """Runs the job and keeps the checkpoint of the incremental query.

    Args:
        backend: the engine.
        folder: where the tables are.
        landing: the files that arrive.
        steps: shows the progress.
    """

    def __init__(self, backend: Backend, folder: Path, landing: Landing, steps: Steps) -> None:
        self._backend = backend
        self._flights = str(folder / FLIGHTS.name)
        self._landing = landing
        self._steps = steps
        self._seen = BEGINNING
        self.travel_batch = len(landing.batches) // 2 + 1
        self.travel_instant = ""

    def run(self) -> None:
        """Do everything that changes the tables."""
        self._load()
        for number, file in enumerate(self._landing.batches, 1):
            if number == self.travel_batch:
                self.travel_instant = latest_instant(self._flights)
            self._upsert(number, file)
        self._delete_cancelled()
        with self._steps.step("compact flights"):
            self._backend.compact(FLIGHTS)

    def verdicts(self, flights: pa.Table) -> list[Verdict]:
        """Read the tables and compare them with plain computations over the source rows."""
        before = check.flights_at(flights, self._landing.starts[self.travel_batch - 1])
        wanted = [
            ("flights", FLIGHTS, None, check.flights_at_last(flights)),
            ("delay_by_carrier_day", DELAYS, None, check.delays_at_last(flights)),
            (f"flights before batch {self.travel_batch}", FLIGHTS, self.travel_instant, before),
        ]
        verdicts = []
        for what, spec, as_of, expected in wanted:
            travel = f" as of {as_of}" if as_of else ""
            with self._steps.step(f"read and check {spec.name}{travel}") as step:
                rows = self._backend.read(spec, as_of)
                step.rows = rows.num_rows
                verdicts.append(Verdict(what, rows.num_rows, check.difference(spec, rows, expected)))
        return verdicts

    def _load(self) -> None:
        with self._steps.step("bulk insert the schedule", self._landing.schedule):
            self._backend.load(FLIGHTS, self._landing.schedule)
        self._feed_delays()

    def _upsert(self, number: int, file: Path) -> None:
        with self._steps.step(f"upsert batch {number} of {len(self._landing.batches)}", file):
            self._backend.upsert(FLIGHTS, file)
        self._feed_delays()

    def _feed_delays(self) -> None:
        """Bring the second table up to date with what the first one's increment touched."""
        with self._steps.step("  increment to delay_by_carrier_day") as step:
            until = checkpoint(self._flights)
            step.rows = self._backend.refresh(self._backend.changed_groups(self._seen))
            self._seen = until

    def _delete_cancelled(self) -> None:
        """Delete; an increment does not show rows that are gone, so their groups come from the feed."""
        with self._steps.step("delete the cancelled flights", self._landing.cancelled):
            self._backend.delete(FLIGHTS, self._landing.cancelled)
        with self._steps.step("  their groups to delay_by_carrier_day") as step:
            step.rows = self._backend.refresh(self._backend.groups_in(self._landing.cancelled))
            self._seen = checkpoint(self._flights)
