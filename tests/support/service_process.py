"""A process that runs a compaction, or a clustering, and stands still before a change; run as a module.

python -m tests.support.service_process TABLE INSTANT STEP SERVICE
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from drawstring.table import Table
from tests.support.processes import Writer, running, work


def runner(table: str, instant: str, step: int, service: str = "compact") -> AbstractContextManager[Writer]:
    """Start the process."""
    return running("tests.support.service_process", table, instant, str(step), service)


def main(path: str, instant: str, step: str, service: str) -> None:
    def run(table: Table) -> str:
        verb = table.services.cluster if service == "cluster" else table.services.compact
        return "done" if verb(instant=instant) else "nothing to do"

    work(path, step, run)


if __name__ == "__main__":
    main(*sys.argv[1:])
