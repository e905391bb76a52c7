"""Random histories of a table, of which an index of the metadata table is checked at each step."""

from __future__ import annotations

import random

import pyarrow as pa

import drawstring

PARTS = ("p0", "p1", "p2", "p3")
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("part", pa.string()),
        ("price", pa.float64()),
        ("ts", pa.int64()),
    ]
)
QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}


class History:
    """Random changes of a table.

    Args:
        table: with the columns of `SCHEMA`.
        index: `hoodie.index.type` of many of its writes.
        seed: of the changes.
    """

    def __init__(self, table: drawstring.Table, index: str, seed: int) -> None:
        self.table = table
        self.index = index
        self.rng = random.Random(seed)
        self.time = 10_000

    def rows(self, ids: list[int], by_key: bool) -> pa.Table:
        """Return a row for each id; a key has one partition, or any."""
        self.time += 1
        rows = [
            {
                "id": each,
                "name": f"n{self.time}",
                "part": PARTS[each % 4] if by_key else self.rng.choice(PARTS),
                "price": 1.0,
                "ts": self.time if self.rng.random() < 0.8 else 1,
            }
            for each in ids
        ]
        return pa.Table.from_pylist(rows, SCHEMA)

    def step(self) -> str:
        """Change the table, and return what was done."""
        operation = self.rng.choice(
            ["upsert"] * 4
            + ["delete"] * 3
            + [
                "insert",
                "bulk_insert",
                "insert_overwrite",
                "delete_partition",
                "insert_overwrite_table",
                "compact",
                "cluster",
                "clean",
            ]
        )
        some = self.rng.sample(range(40), self.rng.randrange(1, 12))
        is_global = self.index != "RECORD_LEVEL_INDEX"
        moves = {"hoodie.record.index.update.partition.path": self.rng.choice(["true", "false"])}
        others = ["GLOBAL_SIMPLE"] if is_global else ["SIMPLE", "BLOOM"]
        kind = {"hoodie.index.type": self.rng.choice([self.index, self.index, *others])}
        match operation:
            case "upsert":
                self.table.upsert(self.rows(some, not is_global), options=QUIET | kind | moves)
            case "delete":
                columns = ["id", "part"]
                self.table.delete(self.rows(some, True).select(columns), options=QUIET | kind)
            case "insert" | "bulk_insert":
                fresh = [self.time * 10 + at for at in range(3)]
                getattr(self.table, operation)(self.rows(fresh, True), options=QUIET)
            case "insert_overwrite" | "insert_overwrite_table":
                fresh = [self.time * 10 + at for at in range(3)]
                getattr(self.table, operation)(self.rows(fresh, True), options=QUIET)
            case "delete_partition":
                self.table.delete_partition(self.rng.choice(PARTS), options=QUIET)
            case "compact":
                if self.table.config.is_merge_on_read:
                    self.table.services.compact()
            case "cluster":
                self.table.services.cluster()
            case "clean":
                self.table.services.clean(options={"hoodie.clean.commits.retained": "1"})
        return operation
