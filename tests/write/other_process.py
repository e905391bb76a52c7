"""A writer in a process of its own, which can be told to stand still at a step; run as a module.

    python -m tests.write.other_process TABLE KEY TIME [STEP]

upserts one row with that key and time. Before change number STEP it prints what it was going to change
and waits for a line on its standard input. At the end it prints `done`, or the error.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Writer:
    """A running process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

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
def writer(table: str, key: str, time: int, step: int | None = None) -> Iterator[Writer]:
    """Start a process; it is killed at the end if it still runs."""
    arguments = [table, key, str(time), *([] if step is None else [str(step)])]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.write.other_process", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Writer(process)
        finally:
            process.kill()


def main(path: str, key: str, time: str, step: str = "1000000") -> None:
    from drawstring.base.errors import DrawstringError
    from drawstring.engine.local import LocalEngine
    from drawstring.storage import open_storage
    from drawstring.storage.faults import FaultyStorage
    from drawstring.table import Table
    from drawstring.txn.state import TableState
    from tests.write.test_operations import rides

    class StandsStill(FaultyStorage):
        def die(self, path: str) -> None:
            print(path, flush=True)
            sys.stdin.readline()

    storage = StandsStill(open_storage(path), int(step), failures=1)
    # One thread, so that the steps come in the same order every time.
    table = Table(TableState(storage, LocalEngine(1)))
    rows = rides(*((key, city, int(time), float(time)) for city in ("oslo", "rome")))
    try:
        table.upsert(rows)
        print("done", flush=True)
    except DrawstringError as error:
        print(type(error).__name__, error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
