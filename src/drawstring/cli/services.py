"""`drawstring services`: do what is due on many tables, once or for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.clock import SystemClock
from drawstring.base.errors import DrawstringError, UnavailableError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, named_values, open_table
from drawstring.cli.bar import progress_bar
from drawstring.model.result import ArchiveResult, CleanResult
from drawstring.services.duties import Done

Paths = Annotated[str, Parameter(help="Roots of the tables.")]
Watch = Annotated[bool, Parameter(negative="", help="Go on, round after round, until interrupted.")]
Every = Annotated[float, Parameter(help="Seconds between the rounds of --watch.")]


def services(
    *paths: Paths,
    watch: Watch = False,
    every: Every = 60.0,
    hoodie: HudiOptions = (),
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Compact, cluster, clean and archive tables as it is due, and run what others planned.

    A table that fails is told of and left to the next round; without --watch exit code 2 says so.
    """
    given = named_values(hoodie)

    def look_after_all() -> int:
        failures = 0
        for path in paths:
            for done in _looked_after(path, given, option):
                failures += done.error is not None
                _tell(path, done, as_json)
        return failures

    if watch:
        _for_ever(look_after_all, every)
    elif failures := look_after_all():
        raise UnavailableError(f"{failures} services failed: see what each says")


def _for_ever(work: Callable[[], int], every: float) -> None:
    clock = SystemClock()
    try:
        while True:
            work()
            clock.sleep(every)
    except KeyboardInterrupt:
        return


def _looked_after(path: str, given: dict[str, str], option: tuple[str, ...]) -> Iterator[Done]:
    """Do what is due on one table, while a bar on standard error, if that is a terminal, counts."""
    with progress_bar(path) as began:
        try:
            table = open_table(path, option)
            yield from table.run_services(lambda duty: began(f"{duty} of {path}"), **given)
        except (DrawstringError, OSError) as error:
            yield Done("open", error=error)


def _tell(path: str, done: Done, as_json: bool) -> None:
    if as_json:
        result = asdict(done.result) if done.result else None
        error = str(done.error) if done.error else None
        output.print_json({"table": path, "service": done.duty, "result": result, "error": error})
    else:
        output.console().print(f"{path}: {done.duty}: {_told(done)}", highlight=False, markup=False)


def _told(done: Done) -> str:
    match done.result:
        case None:
            return f"failed: {done.error}"
        case CleanResult():
            return f"{done.result.files} files deleted in {done.result.seconds:.1f} s"
        case ArchiveResult():
            return f"{done.result.instants} instants in {done.result.seconds:.1f} s"
        case result:
            size = output.size_text(result.bytes_written)
            return f"{result.records_written} rows in {result.files} files ({size}), {result.seconds:.1f} s"
