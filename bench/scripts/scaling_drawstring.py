"""drawstring on its embedded engine. usage: scaling_drawstring.py DATA TABLES mor|cow INDEX"""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from hudi_options import KINDS, UNCOMPACTED, in_one_bucket
from scaling import KEY, ORDERING, PARTITION, run

import drawstring


class Peer:
    def __init__(self, kind: str, index: str) -> None:
        self._type = KINDS[kind]
        self._properties = in_one_bucket(index)

    def load(self, file: str, table: str) -> None:
        made = drawstring.create(
            table,
            pq.read_schema(file),
            name="scaling",
            table_type=self._type,
            record_key=[KEY],
            partition_by=[PARTITION],
            ordering=[ORDERING],
            properties=self._properties,
        )
        made.bulk_insert(pq.read_table(file))

    def upsert(self, file: str, table: str) -> None:
        drawstring.open(table).upsert(pq.read_table(file), options=UNCOMPACTED)

    def count(self, table: str) -> int:
        return drawstring.open(table).scan(columns=[KEY]).to_arrow().num_rows


if __name__ == "__main__":
    drawstring.use_allocator()
    run(Peer(*sys.argv[3:5]))
