"""A writer in a process of its own, which can be told to stand still at a step; run as a module.

    python -m tests.support.writer_process TABLE KEY TIME [STEP]

upserts one row with that key and time. Before change number STEP it prints what it was going to change
and waits for a line on its standard input. At the end it prints `done`, or the error.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from drawstring.table import Table
from tests.support.processes import Writer, running, work
from tests.support.rows import rides


def writer(table: str, key: str, time: int, step: int | None = None) -> AbstractContextManager[Writer]:
    """Start a process that writes a row."""
    arguments = [table, key, str(time), *([] if step is None else [str(step)])]
    return running("tests.support.writer_process", *arguments)


def main(path: str, key: str, time: str, step: str = "1000000") -> None:
    def upsert(table: Table) -> str:
        table.upsert(rides(*((key, city, int(time), float(time)) for city in ("oslo", "rome"))))
        return "done"

    work(path, step, upsert)


if __name__ == "__main__":
    main(*sys.argv[1:])
