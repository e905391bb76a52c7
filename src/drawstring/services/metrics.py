"""A listener that records events as OpenTelemetry metrics, for exporters to Prometheus, OTLP and others.

    from opentelemetry.metrics import get_meter
    drawstring.add_listener(drawstring.MeterListener(get_meter("drawstring")))

drawstring does not import OpenTelemetry; the caller passes a meter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from drawstring.model.result import Event

_COUNTED: Final = (
    ("records", "{record}", "Records in new files, copied ones included."),
    ("inserts", "{record}", "Records inserted."),
    ("updates", "{record}", "Records updated."),
    ("deletes", "{record}", "Records deleted."),
    ("files", "{file}", "Files written."),
    ("bytes_written", "By", "Bytes written."),
    ("files_deleted", "{file}", "Files deleted by cleaning."),
    ("instants_archived", "{instant}", "Instants that left the active timeline."),
)


class Counter(Protocol):
    """OpenTelemetry's counter."""

    def add(self, amount: int, attributes: Mapping[str, str]) -> None:
        """Add an amount."""
        ...


class Histogram(Protocol):
    """OpenTelemetry's histogram."""

    def record(self, amount: float, attributes: Mapping[str, str]) -> None:
        """Record a value."""
        ...


class Meter(Protocol):
    """OpenTelemetry's meter."""

    def create_counter(self, name: str, unit: str, description: str) -> Counter:
        """Return a new counter."""
        ...

    def create_histogram(self, name: str, unit: str, description: str) -> Histogram:
        """Return a new histogram."""
        ...


class MeterListener:
    """A listener that counts events by table and operation.

    Metrics: `drawstring.actions`, one counter for each count of an `Event` (`drawstring.records`, ...),
    and histograms `drawstring.seconds` and, by attribute `stage`, `drawstring.stage.seconds`.

    Args:
        meter: of OpenTelemetry.
    """

    def __init__(self, meter: Meter) -> None:
        self._actions = meter.create_counter("drawstring.actions", "{action}", "Writes and services.")
        self._counters = {
            name: meter.create_counter(f"drawstring.{name}", unit, text) for name, unit, text in _COUNTED
        }
        self._seconds = meter.create_histogram("drawstring.seconds", "s", "Duration of an action.")
        self._stages = meter.create_histogram("drawstring.stage.seconds", "s", "Duration of a stage.")

    def __call__(self, event: Event) -> None:
        """Count an event."""
        attributes = {"table": event.name, "operation": event.operation}
        self._actions.add(1, attributes)
        for name, counter in self._counters.items():
            if amount := getattr(event, name):
                counter.add(amount, attributes)
        self._seconds.record(event.seconds, attributes)
        for stage, seconds in event.stages.items():
            self._stages.record(seconds, {**attributes, "stage": stage})
