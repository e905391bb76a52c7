"""The suite `tpch` without Spark. usage: lineitem_local.py DATA TABLE SYSTEM [ARGS]"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.dataset as ds
from lineitem import Facts, run
from lineitem_queries import BETWEEN, NARROW, Q1, Q3, Q6, TOTALS, answer
from local_tables import Condition, Table, table_of
from ride import arguments
from shapes import LINEITEM

FOUND = ["l_comment"]
RANGE = ["l_orderkey", "l_quantity", "l_version"]


class Peer:
    def __init__(self, table: Table, facts: Facts) -> None:
        self._table, self._facts = table, facts
        self.compact: Callable[[], None] | None = getattr(table, "compact", None)
        self.load, self.upsert = table.load, table.upsert

    def narrow(self) -> list[float]:
        return answer(TOTALS, lineitem=self._table.batches(NARROW))

    def everything(self) -> int:
        return sum(batch.num_rows for batch in self._table.batches(None))

    def q1(self) -> list[float]:
        return answer(Q1, lineitem=self._table.relation())

    def q3(self) -> list[float]:
        return answer(Q3, lineitem=self._table.relation(), orders=ds.dataset(self._facts.orders))

    def q6(self) -> list[float]:
        return answer(Q6, lineitem=self._table.relation())

    def point(self) -> int:
        where: Condition = [
            (name, "=", value) for name, value in zip(LINEITEM.key, self._facts.point, strict=True)
        ]
        return int(self._table.rows(FOUND, where).num_rows)

    def between(self) -> list[float]:
        first, last = self._facts.range
        found: pa.Table = self._table.rows(RANGE, [("l_orderkey", ">=", first), ("l_orderkey", "<=", last)])
        return answer(BETWEEN, lineitem=found)


def main() -> None:
    data, folder, words = arguments()
    facts = Facts.load(data)
    run(Peer(table_of(folder, LINEITEM, words), facts), facts, folder)


if __name__ == "__main__":
    main()
