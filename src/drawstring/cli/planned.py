"""Shared parts of the compaction and clustering commands: scheduling a plan, printing its result."""

from __future__ import annotations

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.model.result import CommitResult


def check_choice(*, schedule: bool, instant: str | None) -> None:
    """Check that not both --schedule and --instant are given.

    Raises:
        InvalidError: both were given.
    """
    if schedule and instant:
        raise InvalidError(
            "--schedule and --instant exclude each other. Give one of them, or none to schedule and run."
        )


def print_scheduled(instant: str | None, nothing: str, *, as_json: bool) -> None:
    """Print the instant of a plan.

    Args:
        instant: requested time of the plan; None if there is nothing to do.
        nothing: text to print in that case.
        as_json: whether to print JSON.
    """
    if as_json:
        output.print_json({"instant": instant})
    else:
        output.print_line(f"scheduled {instant}" if instant else nothing)


def print_done(result: CommitResult, told: str, *, as_json: bool) -> None:
    """Print the result of a table service.

    Args:
        result: result of the service.
        told: description of the result.
        as_json: whether to print JSON.
    """
    if as_json:
        output.print_result(result)
    else:
        output.print_line(told)
