"""What is told of writes and services: a line in the log, and an event to whoever listens."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import drawstring
from drawstring.base.errors import InvalidError
from tests.support.compaction import FIRST, NEWER
from tests.support.rows import held, rides
from tests.support.tables import MOR, create


@pytest.fixture
def events() -> Iterator[list[drawstring.Event]]:
    heard: list[drawstring.Event] = []
    drawstring.add_listener(heard.append)
    yield heard
    drawstring.remove_listener(heard.append)


def test_every_write_and_service_is_told_with_its_figures_and_stages(events: list[drawstring.Event]) -> None:
    table = create(table_type=MOR)
    written = table.upsert(rides(*FIRST))
    table.upsert(rides(*NEWER))
    table.services.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})
    table.services.compact()
    table.delete_partition("rome")
    told = [event.operation for event in events]
    assert told == ["upsert", "upsert", "compact", "delete_partition"]
    first, _, compacted, _ = events
    assert (first.table, first.name, first.instant) == (table.uri, "rides", written.instant)
    assert (first.records, first.inserts, first.files) == (6, 6, 2)
    assert first.bytes_written == written.bytes_written > 0
    assert list(first.stages) == ["plan", "write", "commit"]
    assert sum(first.stages.values()) == pytest.approx(first.seconds, abs=0.05)
    assert (compacted.records, compacted.files, compacted.instant) == (
        6,
        2,
        table.timeline.writes()[2].requested,
    )


def test_cleaning_and_archiving_by_a_write_are_told_too(events: list[drawstring.Event]) -> None:
    table = create()
    keep_few = {
        "hoodie.clean.commits.retained": 1,
        "hoodie.keep.min.commits": 2,
        "hoodie.keep.max.commits": 3,
    }
    for turn in range(8):
        table.upsert(rides(("a", "rome", turn, 1.0)), options=keep_few)
    assert {event.operation for event in events} == {"upsert", "clean", "archive"}
    assert sum(event.files_deleted for event in events) > 3
    assert sum(event.instants_archived for event in events) > 3


def test_the_log_has_a_line_for_people(caplog: pytest.LogCaptureFixture) -> None:
    table = create()
    with caplog.at_level(logging.INFO, "drawstring.events"):
        instant = table.upsert(rides(*FIRST)).instant
    (line,) = (each.message for each in caplog.records if each.name == "drawstring.events")
    assert line.startswith(f"upsert of rides at {instant}: 6 records, 6 inserted, 2 files, ")
    assert line.endswith(")") and " s (plan " in line and ", commit " in line


def test_a_write_that_fails_tells_nothing(events: list[drawstring.Event]) -> None:
    table = create()
    with pytest.raises(InvalidError):
        table.upsert(rides(*FIRST).drop_columns(["id"]))
    assert events == []


def test_a_listener_that_fails_fails_no_write(
    events: list[drawstring.Event], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: drawstring.Event) -> None:
        raise ZeroDivisionError("no")

    drawstring.add_listener(broken)
    try:
        table = create()
        table.upsert(rides(*FIRST))
    finally:
        drawstring.remove_listener(broken)
        drawstring.remove_listener(broken)
    assert held(table) == sorted(FIRST)
    assert "A listener failed on the event upsert of rides: no" in caplog.text


class Instrument:
    """Sums of what was counted or recorded, by attributes."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, ...], float] = {}

    def add(self, amount: float, attributes: Mapping[str, str]) -> None:
        key = tuple(attributes.values())
        self.sums[key] = self.sums.get(key, 0) + amount

    record = add


class Meter:
    """What `MeterListener` needs of OpenTelemetry's meter."""

    def __init__(self) -> None:
        self.made: dict[str, Instrument] = {}

    def create_counter(self, name: str, unit: str, description: str) -> Instrument:
        return self.made.setdefault(name, Instrument())

    create_histogram = create_counter


def test_a_meter_counts_by_table_and_operation() -> None:
    meter: Any = Meter()
    listener = drawstring.MeterListener(meter)
    drawstring.add_listener(listener)
    try:
        table = create()
        for _ in range(2):
            table.upsert(rides(*FIRST))
    finally:
        drawstring.remove_listener(listener)
    upserts = ("rides", "upsert")
    assert meter.made["drawstring.actions"].sums == {upserts: 2}
    assert meter.made["drawstring.records"].sums[upserts] == 12
    assert meter.made["drawstring.inserts"].sums[upserts] == 6
    stages = meter.made["drawstring.stage.seconds"].sums
    assert set(stages) == {(*upserts, stage) for stage in ("plan", "write", "commit")}
    assert sum(stages.values()) == pytest.approx(meter.made["drawstring.seconds"].sums[upserts], abs=0.1)
