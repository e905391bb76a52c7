"""What is known of an instant beyond its file: what it undid, and whether a process works on it."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.model.instant import Instant


@dataclass(frozen=True, slots=True)
class InstantStatus:
    """An instant of the timeline for people who look for what became of a write.

    Attributes:
        instant: the instant.
        undone: requested times of what a rollback or restore undoes or undid, by its plan.
        is_worked_on: whether a live process works on it while it is pending; None once it is completed, and
            for actions that are done under the table lock.
    """

    instant: Instant
    undone: tuple[str, ...] = ()
    is_worked_on: bool | None = None
