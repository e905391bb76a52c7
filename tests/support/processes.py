"""Processes that work on a table, and stand still before one of their changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drawstring.base.errors import DrawstringError
from drawstring.engine.local import LocalEngine
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.txn.table_context import TableContext
from tests.support.faulty_storage import FaultyStorage

ROOT = Path(__file__).parents[2]


class Writer:
    """A running process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def says(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def running(module: str, *arguments: str) -> Iterator[Writer]:
    """Start a process that runs a module; it is killed at the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Writer(process)
        finally:
            process.kill()


class StandsStill(FaultyStorage):
    """A storage that says what it is going to change at a step, and waits for a line."""

    def die(self, path: str) -> None:
        print(path, flush=True)
        sys.stdin.readline()


def work(path: str, step: str, what: Callable[[Table], str]) -> None:
    """Do something to a table, stand still at a step, and print what came of it or the error."""
    storage = StandsStill(open_storage(path), int(step), failures=1)
    # One thread, so that the steps come in the same order every time.
    table = Table(TableContext(storage, LocalEngine(1)))
    try:
        print(what(table), flush=True)
    except DrawstringError as error:
        print(type(error).__name__, error, flush=True)
