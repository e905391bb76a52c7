"""A process that is about to change a file in an object store and waits for a line; run as a module.

    python -m tests.write.stopped_process TABLE OPTIONS VERB PLACE

VERB is what it does, PLACE a pattern of the path before whose first change it waits, having printed the path.
Its leases are short, so that others need not wait long when it is stopped.
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial

from drawstring.base.errors import DrawstringError
from drawstring.engine.local import LocalEngine
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.txn.locks import table_lock
from drawstring.txn.locks.storage_lock import LeaseLock
from drawstring.txn.table_context import TableContext
from tests.support.faulty_storage import FaultyStorage
from tests.support.methods import method
from tests.support.rows import rides

LEASE_MS = 1_500
KEEP_FEW = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.clean.commits.retained": "2",
}


class WaitsBefore(FaultyStorage):
    """Waits for a line before the first change of a file whose path matches."""

    def __init__(self, inner: Storage, place: str) -> None:
        super().__init__(inner, sys.maxsize)
        self._place: re.Pattern[str] | None = re.compile(place)

    def before_change(self, path: str) -> None:
        if self._place is not None and self._place.fullmatch(path):
            self._place = None
            print(path, flush=True)
            sys.stdin.readline()
        super().before_change(path)


def main(uri: str, options: str, verb: str, place: str) -> None:
    table_lock.LeaseLock = partial(LeaseLock, lease_ms=LEASE_MS, renew_seconds=0.3)  # type: ignore[misc, assignment]
    storage = WaitsBefore(open_storage(uri, json.loads(options)), place)
    table = Table(TableContext(storage, LocalEngine(1)))
    try:
        if verb == "upsert":
            table.upsert(rides(("z", "rome", 1, 1.0), ("a", "rome", 2, 2.0)), options=KEEP_FEW)
        else:
            method(table, verb)(options=KEEP_FEW)
        print("done", flush=True)
    except DrawstringError as error:
        print(type(error).__name__, error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
