"""`drawstring run-services`: run the due table services of many tables, once or continuously."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.clock import SystemClock
from drawstring.base.counted import counted
from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, named_values, open_table
from drawstring.cli.bar import progress_bar
from drawstring.model.explanation import size_text
from drawstring.model.result import ArchiveResult, CleanResult, CommitResult
from drawstring.services.maintenance_tasks import TaskOutcome

_log: Final = logging.getLogger("drawstring")

Paths = Annotated[str, Parameter(help="Roots of the tables.")]
Watch = Annotated[bool, Parameter(negative="", help="Repeat until interrupted.")]
Every = Annotated[
    float, Parameter(validator=Number(gte=1), help="Seconds between the rounds of --watch, at least 1.")
]


def run_services(
    *paths: Paths,
    watch: Watch = False,
    every: Every = 60.0,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Run the due table services (compact, cluster, expire, clean, archive) and the scheduled plans.

    Partitions expire if hoodie.partition.ttl.inline is set. A failure is reported and retried in the next
    round; without --watch, the exit code is 2. With --json each round prints one list, which is empty if
    nothing was due.
    """
    if not paths:
        raise InvalidError("No tables were given. Give their paths: drawstring run-services PATH...")
    given = named_values(option)

    def run_round() -> int:
        outcomes = []
        for path in paths:
            idle = not watch
            for done in _outcomes(path, given, storage_option):
                idle = False
                outcomes.append((path, done))
                if not as_json:
                    _say(f"{path}: {done.task}: {_told(done)}")
            if idle and not as_json:
                _say(f"{path}: nothing was due")
        if as_json:
            output.print_json([_fields(path, done) for path, done in outcomes])
        return sum(done.error is not None for _, done in outcomes)

    if watch:
        if not as_json:
            _say(f"running services of {counted(len(paths), 'table')} every {every:g} s, until interrupted")
        _repeat(run_round, every)
    elif failures := run_round():
        raise UnavailableError(f"{counted(failures, 'service')} failed. See the error of each above.")


def _repeat(work: Callable[[], int], every: float) -> None:
    clock = SystemClock()
    try:
        while True:
            work()
            clock.sleep(every)
    except KeyboardInterrupt:
        return


def _outcomes(path: str, given: dict[str, str], storage_option: tuple[str, ...]) -> Iterator[TaskOutcome]:
    """Run the due services of one table, with a progress bar on standard error if that is a terminal."""
    with progress_bar(path) as began:
        try:
            table = open_table(path, storage_option)
            yield from table.run_services(progress=lambda task: began(f"{task} of {path}"), options=given)
        except (DrawstringError, OSError) as error:
            yield TaskOutcome("open", error=error)
        except Exception as error:  # of any kind: the other tables must not wait for it
            _log.exception("The services of %s failed unexpectedly.", path)
            yield TaskOutcome("open", error=error)


def _fields(path: str, done: TaskOutcome) -> dict[str, output.Value]:
    return {
        "table": path,
        "service": done.task,
        "result": output.result_fields(done.result) if done.result else None,
        "error": output.error_fields(done.error) if done.error else None,
        "instant": done.instant,
        "left_to": done.left_to,
    }


def _say(text: str) -> None:
    output.print_line(text)


def _told(done: TaskOutcome) -> str:
    if done.left_to is not None:
        return f"{done.instant} is left to another process, which runs it ({done.left_to})"
    match done.result:
        case None:
            return f"failed: {_reason(done.error)}"
        case CommitResult(operation="delete_partition"):
            return f"old partitions dropped at instant {done.result.instant}"
        case CleanResult():
            return f"{counted(done.result.files, 'file')} deleted in {done.result.seconds:.1f} s"
        case ArchiveResult():
            return f"{counted(done.result.instants, 'instant')} in {done.result.seconds:.1f} s"
        case result:
            size = size_text(result.bytes_written)
            written = f"{counted(result.records_written, 'row')} in {counted(result.files, 'file')}"
            return f"{written} ({size}), {result.seconds:.1f} s"


def _reason(error: Exception | None) -> str:
    """Return the message of an error, with the class name for unexpected errors."""
    expected = isinstance(error, DrawstringError | OSError)
    return str(error) if expected else f"{type(error).__name__}: {error}"
