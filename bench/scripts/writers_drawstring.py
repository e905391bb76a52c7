"""drawstring on its embedded engine. usage: writers_drawstring.py DATA TABLES mor|cow INDEX [non_blocking]

`alone` is a single writer, which keeps the table lock from the begin of a write to its commit.
"""

from __future__ import annotations

import logging
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq
from embedded import create_rides
from hudi_options import KINDS, UNCOMPACTED, in_one_bucket
from writers import run

import drawstring
from drawstring import ConflictError

MODE = "hoodie.write.concurrency.mode"
OPTIMISTIC = {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL"}
NON_BLOCKING = {MODE: "NON_BLOCKING_CONCURRENCY_CONTROL"}
MODES = {"alone": {MODE: "SINGLE_WRITER"}} | dict.fromkeys(("disjoint", "apart", "overlap"), OPTIMISTIC)


class _Again(logging.Handler):
    """Counts the attempts of writes that lost against other writers."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "was in conflict and runs again" in str(record.msg)


class Peer:
    errors = (ConflictError,)

    def __init__(self, kind: str, index: str, mode: str = "") -> None:
        self._modes = dict.fromkeys(MODES, NON_BLOCKING) if mode == "non_blocking" else MODES
        self.alone = () if mode else ("alone",)
        self._type = KINDS[kind]
        self._properties = in_one_bucket(index)

    def load(self, file: str, table: str) -> None:
        made = create_rides(table, pq.read_schema(file), self._type, self._properties)
        made.bulk_insert(pq.read_table(file))

    def prepare(self, table: str, scenario: str) -> None:
        drawstring.use_allocator()
        self._table, self._options = table, self._modes[scenario] | UNCOMPACTED
        self._again = _Again()
        logger = logging.getLogger("drawstring")
        logger.handlers = [self._again]
        logger.setLevel(logging.INFO)

    def upsert(self, file: str) -> None:
        drawstring.open(self._table).upsert(pq.read_table(file), options=self._options)

    def again(self) -> int:
        return self._again.count

    def count(self, table: str) -> tuple[int, int]:
        keys = drawstring.open(table).scan(columns=["ride_id"]).to_arrow()["ride_id"]
        return len(keys), pc.count_distinct(keys).as_py()


if __name__ == "__main__":
    run(Peer(*sys.argv[3:6]))
