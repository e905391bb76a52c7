"""The landing zone: Parquet files that arrive one after the other, as a feed of events would leave them.

schedule.parquet     every flight, before it departs
batch_01.parquet ..  departures and landings in the order in which they happened, full rows; among them
                     late events (wrong, and older than what is known: they must lose) and duplicates
cancelled.parquet    the flights that never departed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demo.source import MINUTE
from demo.tables import EVENT_TIME, FLIGHT_SCHEMA

LATE_SHARE = 0.03
DUPLICATE_SHARE = 0.02
DAY = 24 * 60 * MINUTE
LATE_DAYS = 10
"""How far back late events go."""
AFTER_DEPARTURE = ("dep_time", "dep_delay")
AFTER_LANDING = ("arr_time", "arr_delay", "air_time")


@dataclass(frozen=True, slots=True)
class Landing:
    """The files, and where the event times of one batch end and the next one's begin.

    Attributes:
        schedule, batches, cancelled: files.
        starts: event time (microseconds) at which each batch begins.
        events, late, duplicates: rows in all batches, and how many of them are of these kinds.
    """

    schedule: Path
    batches: tuple[Path, ...]
    cancelled: Path
    starts: tuple[int, ...]
    events: int
    late: int
    duplicates: int


def scheduled(flights: pa.Table) -> pa.Table:
    """Return the rows as known a day before departure."""
    return _rows(flights, "scheduled", pc.subtract(flights["due_at"], DAY), AFTER_DEPARTURE + AFTER_LANDING)


def departed(flights: pa.Table) -> pa.Table:
    """Return the rows as known at departure."""
    return _rows(flights, "departed", flights["departed_at"], AFTER_LANDING)


def landed(flights: pa.Table) -> pa.Table:
    """Return the rows as known after landing."""
    return _rows(flights, "landed", flights["landed_at"], ())


def stage(flights: pa.Table, folder: Path, batches: int) -> Landing:
    """Write the landing zone of some flights.

    Args:
        flights: as `source.read_flights` gives them.
        folder: where the files go; it is made.
        batches: how many micro-batches the events are cut into.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flown = flights.filter(pc.is_valid(flights["departed_at"]))
    arrived = flown.filter(pc.is_valid(flown["landed_at"]))
    events = pa.concat_tables([departed(flown), landed(arrived)])
    starts = _starts(events, batches)
    rng = np.random.default_rng(2013)
    files, late, duplicates = [], 0, 0
    for number, batch in enumerate(_cut(events, starts), 1):
        until = starts[number] if number < len(starts) else None
        wrong = _late_events(rng, arrived, until, int(batch.num_rows * LATE_SHARE))
        again = batch.take(rng.integers(0, batch.num_rows, int(batch.num_rows * DUPLICATE_SHARE)))
        rows = pa.concat_tables([batch, wrong, again])
        files.append(_write(rows.take(rng.permutation(rows.num_rows)), folder / f"batch_{number:02}.parquet"))
        late, duplicates = late + wrong.num_rows, duplicates + again.num_rows
    never = flights.filter(pc.is_null(flights["departed_at"]))
    cancelled = _rows(never, "cancelled", never["due_at"], AFTER_DEPARTURE + AFTER_LANDING)
    return Landing(
        schedule=_write(scheduled(flights), folder / "schedule.parquet"),
        batches=tuple(files),
        cancelled=_write(cancelled, folder / "cancelled.parquet"),
        starts=starts,
        events=events.num_rows + late + duplicates,
        late=late,
        duplicates=duplicates,
    )


def _rows(flights: pa.Table, status: str, event_time: pa.ChunkedArray, unknown: tuple[str, ...]) -> pa.Table:
    """Return full rows of the table, null where the event does not tell yet."""
    columns = []
    for field in FLIGHT_SCHEMA:
        if field.name == "status":
            column = pa.repeat(pa.scalar(status), flights.num_rows)
        elif field.name == "event_time":
            column = event_time.cast(EVENT_TIME)
        elif field.name in unknown:
            column = pa.nulls(flights.num_rows, field.type)
        else:
            column = flights[field.name].cast(field.type)
        columns.append(column)
    return pa.table(columns, schema=FLIGHT_SCHEMA)


def _starts(events: pa.Table, batches: int) -> tuple[int, ...]:
    """Cut the events into spans of equal numbers of rows; events of one moment stay together."""
    times = np.sort(events["event_time"].cast(pa.int64()).to_numpy())
    return tuple(int(time) for time in np.unique(times[np.arange(batches) * len(times) // batches]))


def _cut(events: pa.Table, starts: tuple[int, ...]) -> Iterator[pa.Table]:
    number = np.searchsorted(starts, events["event_time"].cast(pa.int64()).to_numpy(), side="right")
    for batch in range(1, len(starts) + 1):
        yield events.filter(pa.array(number == batch))


def _late_events(rng: np.random.Generator, arrived: pa.Table, until: int | None, count: int) -> pa.Table:
    """Return first reports of departures, with a wrong delay, of flights that have just landed."""
    end = until if until is not None else pc.max(arrived["landed_at"]).as_py() + 1
    landed_at = arrived["landed_at"]
    arrived = arrived.filter(pc.and_(pc.less(landed_at, end), pc.greater(landed_at, end - LATE_DAYS * DAY)))
    count = min(count, arrived.num_rows)
    rows = departed(arrived.take(rng.choice(arrived.num_rows, count, replace=False)))
    earlier = pc.subtract(rows["event_time"].cast(pa.int64()), MINUTE).cast(EVENT_TIME)
    wrong = pc.add(rows["dep_delay"], pa.scalar(1000, pa.int32()))
    for name, column in (("event_time", earlier), ("dep_delay", wrong)):
        rows = rows.set_column(rows.schema.get_field_index(name), FLIGHT_SCHEMA.field(name), column)
    return rows


def _write(rows: pa.Table, file: Path) -> Path:
    pq.write_table(rows, file, row_group_size=64_000)
    return file
