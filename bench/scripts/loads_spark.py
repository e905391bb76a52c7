"""The suite `lakeloader` on Spark. usage: loads_spark.py DATA TABLE drawstring mor|cow, or JARS SYSTEM"""

from __future__ import annotations

from loads import run
from pyspark.sql import functions as F
from ride import arguments
from shapes import Shape
from spark_tables import Table, tables_of


class Peer:
    def __init__(self, table: Table) -> None:
        self.path, self._table = table.path, table
        self.load, self.upsert, self.set_columns = table.load, table.upsert, table.set_columns

    def sums(self, columns: list[str]) -> list[float]:
        row = self._table.read().agg(F.count("*"), *map(F.sum, columns)).collect()[0]
        return [row[0], *(round(float(value), 2) for value in row[1:])]


def main() -> None:
    data, folder, words = arguments()
    make = tables_of(folder, words)

    def table_of(shape: Shape) -> Peer:
        return Peer(make(shape))

    run(table_of, data, folder)


if __name__ == "__main__":
    main()
