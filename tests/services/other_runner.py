"""A process that runs a compaction and stands still before a change; run as a module.

python -m tests.services.other_runner TABLE INSTANT STEP
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from drawstring.table import Table
from tests.write.other_process import Writer, running, work


def runner(table: str, instant: str, step: int) -> AbstractContextManager[Writer]:
    """Start the process."""
    return running("tests.services.other_runner", table, instant, str(step))


def main(path: str, instant: str, step: str) -> None:
    def compact(table: Table) -> str:
        return "done" if table.compact(instant=instant) else "nothing to do"

    work(path, step, compact)


if __name__ == "__main__":
    main(*sys.argv[1:])
