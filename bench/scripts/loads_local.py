"""The suite `lakeloader` without Spark. usage: loads_local.py DATA TABLE SYSTEM [ARGS]"""

from __future__ import annotations

from pathlib import Path

from loads import run
from local_tables import sums_of, table_of
from ride import arguments
from shapes import Shape


class Peer:
    def __init__(self, folder: str, shape: Shape, words: list[str]) -> None:
        self.path = str(Path(folder, shape.name))
        self._table = table_of(self.path, shape, words)
        self.load, self.upsert = self._table.load, self._table.upsert
        self.set_columns = self._table.set_columns

    def sums(self, columns: list[str]) -> list[float]:
        return sums_of(self._table, columns)


def main() -> None:
    data, folder, words = arguments()
    Path(folder).mkdir()
    run(lambda shape: Peer(folder, shape, words), data, folder)


if __name__ == "__main__":
    main()
