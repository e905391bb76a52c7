"""What the commands of compaction and clustering have in common: a plan is scheduled, or run under a bar."""

from __future__ import annotations

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.model.result import CommitResult


def check_choice(*, schedule: bool, instant: str | None) -> None:
    """Refuse --schedule beside --instant.

    Raises:
        InvalidError: both were given.
    """
    if schedule and instant:
        raise InvalidError("--schedule and --instant exclude each other: give one of them, or none for both")


def print_scheduled(instant: str | None, nothing: str, *, as_json: bool) -> None:
    """Print the time of a plan.

    Args:
        instant: the time, None where there is nothing to do.
        nothing: what people are told then.
        as_json: whether machines read it.
    """
    if as_json:
        output.print_json({"instant": instant})
    else:
        output.print_line(f"scheduled {instant}" if instant else nothing)


def print_done(result: CommitResult, told: str, *, as_json: bool) -> None:
    """Print what was done.

    Args:
        result: of the service.
        told: the same for people.
        as_json: whether machines read it.
    """
    if as_json:
        output.print_result(result)
    else:
        output.print_line(told)
