"""A process that runs a compaction and stands still before a change; run as a module.

python -m tests.services.other_runner TABLE INSTANT STEP
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.write.other_process import ROOT, Writer


@contextmanager
def runner(table: str, instant: str, step: int) -> Iterator[Writer]:
    """Start the process; it is killed at the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.services.other_runner", table, instant, str(step)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Writer(process)
        finally:
            process.kill()


def main(path: str, instant: str, step: str) -> None:
    from drawstring.base.errors import DrawstringError
    from drawstring.engine.local import LocalEngine
    from drawstring.storage import open_storage
    from drawstring.storage.faults import FaultyStorage
    from drawstring.table import Table
    from drawstring.txn.state import TableState

    class StandsStill(FaultyStorage):
        def die(self, path: str) -> None:
            print(path, flush=True)
            sys.stdin.readline()

    storage = StandsStill(open_storage(path), int(step), failures=1)
    try:
        result = Table(TableState(storage, LocalEngine(1))).compact(instant=instant)
        print("done" if result else "nothing to do", flush=True)
    except DrawstringError as error:
        print(type(error).__name__, error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
