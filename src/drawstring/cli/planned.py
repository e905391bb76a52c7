"""Shared part of the compaction and clustering commands: plan the service or run it, and print the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.bar import progress_bar
from drawstring.model.result import CommitResult


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a service in its output.

    Attributes:
        running: title of the progress bar, before the name of the table.
        nothing: line when there is nothing to do.
        done: returns the line for a result.
    """

    running: str
    nothing: str
    done: Callable[[CommitResult], str]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call of a service that can be planned and run.

    Attributes:
        plan: plans it.
        run: runs a plan, or plans and runs.
        given: keyword arguments of `plan` and `run`.
        words: words of the service.
    """

    plan: Callable[..., str | None]
    run: Callable[..., CommitResult]
    given: Mapping[str, Any]
    words: Words

    def carry_out(self, table_name: str, instant: str | None, *, schedule: bool, as_json: bool) -> None:
        """Plan or run the service, and print the result.

        Args:
            table_name: name of the table.
            instant: requested time of the plan to run; None for all.
            schedule: whether to plan only.
            as_json: whether to print JSON.

        Raises:
            InvalidError: both --schedule and --instant were given.
        """
        if schedule and instant:
            raise InvalidError(
                "--schedule and --instant exclude each other. Give one of them, or none to schedule and run."
            )
        if schedule:
            self._print_plan(self.plan(**self.given), as_json)
            return
        with progress_bar(table_name) as began:
            result = self.run(instant, progress=began(f"{self.words.running} {table_name}"), **self.given)
        if as_json:
            output.print_result(result)
        else:
            output.print_line(self.words.done(result) if result else self.words.nothing)

    def _print_plan(self, planned: str | None, as_json: bool) -> None:
        if as_json:
            output.print_json({"instant": planned})
        else:
            output.print_line(f"scheduled {planned}" if planned else self.words.nothing)
