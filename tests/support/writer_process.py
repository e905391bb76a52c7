"""A writer in a process of its own, which can be told to stand still at a step; run as a module.

    python -m tests.support.writer_process TABLE KEY TIME STEP MODE

upserts one row with that key and time, in that mode of concurrency control. Before change number STEP it
prints what it was going to change and waits for a line on its standard input. At the end it prints `done`, or
the error.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from drawstring.table import Table
from tests.support.processes import Writer, running, work
from tests.support.rows import rides

NEVER = 1_000_000
DEFAULT_MODE = "OPTIMISTIC_CONCURRENCY_CONTROL"


def writer(
    table: str, key: str, time: int, step: int = NEVER, mode: str = DEFAULT_MODE
) -> AbstractContextManager[Writer]:
    """Start a process that writes a row."""
    return running("tests.support.writer_process", table, key, str(time), str(step), mode)


def main(path: str, key: str, time: str, step: str, mode: str) -> None:
    def upsert(table: Table) -> str:
        rows = rides(*((key, city, int(time), float(time)) for city in ("oslo", "rome")))
        table.upsert(rows, options={"hoodie.write.concurrency.mode": mode})
        return "done"

    work(path, step, upsert)


if __name__ == "__main__":
    main(*sys.argv[1:])
