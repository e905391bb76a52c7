"""The suite `tpch` on Spark. usage: lineitem_spark.py DATA TABLE drawstring mor|cow, or JARS SYSTEM"""

from __future__ import annotations

from lineitem import Facts, run
from lineitem_queries import BETWEEN, Q1, Q3, Q6, TOTALS, numbers
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from ride import arguments
from shapes import LINEITEM
from spark_tables import Table, tables_of
from sparks import bare


class Peer:
    def __init__(self, table: Table, facts: Facts) -> None:
        self._table, self._facts = table, facts
        self.compact = table.compact
        self.load, self.upsert = table.load, table.upsert
        bare(table.spark, facts.orders).createOrReplaceTempView("orders")

    def narrow(self) -> list[float]:
        return self._answer(TOTALS)

    def everything(self) -> int:
        """Read all columns of all rows into one number, of which every peer has to have them."""
        row = self._table.read().agg(F.count("*"), F.sum(F.hash("*").cast("long"))).collect()[0]
        assert row[1] is not None
        return int(row[0])

    def q1(self) -> list[float]:
        return self._answer(Q1)

    def q3(self) -> list[float]:
        return self._answer(Q3)

    def q6(self) -> list[float]:
        return self._answer(Q6)

    def point(self) -> int:
        pairs = zip(LINEITEM.key, self._facts.point, strict=True)
        conditions: list[Column] = [F.col(name) == value for name, value in pairs]
        return len(self._table.read().where(conditions[0] & conditions[1]).select("l_comment").collect())

    def between(self) -> list[float]:
        return self._answer(
            BETWEEN, self._table.read().where(F.col("l_orderkey").between(*self._facts.range))
        )

    def _answer(self, query: str, rows: DataFrame | None = None) -> list[float]:
        shown = self._table.read() if rows is None else rows
        shown.createOrReplaceTempView("lineitem")
        return numbers(self._table.spark.sql(query).collect())


def main() -> None:
    data, folder, words = arguments()
    facts = Facts.load(data)
    run(Peer(tables_of(folder, words)(LINEITEM), facts), facts, folder)


if __name__ == "__main__":
    main()
