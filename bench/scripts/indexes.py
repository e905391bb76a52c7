"""The writes that the indexes are compared on; standard library only, for every peer's environment runs it.

First the rides and their batches of updates with some new rows, then batches of new rows alone, as upserts
too: every key is looked for. Then some are deleted by key.

A peer is an object with `write(operation, file)` and `keys()`: how many rows there are, and how many keys.
"""

from __future__ import annotations

from typing import Protocol

from ride import Workload, size, step


class Peer(Protocol):
    def write(self, operation: str, file: str) -> None: ...
    def keys(self) -> tuple[int, int]: ...


def run(peer: Peer, work: Workload) -> None:
    """Write, and see that every key is there once."""
    step("bulk_insert", peer.write, "bulk_insert", work.file("base"))
    batches = range(1, work.facts["size"]["batches"] + 1)
    for name, file in (("upsert", "batch"), ("new_rows", "new")):
        for number in batches:
            step(f"{name}_{number}", peer.write, "upsert", work.file(f"{file}_{number}"))
    step("delete", peer.write, "delete", work.file("deletes"))
    step("size", size, work.table)
    rides = work.facts["size"]
    gone = max(1, rides["rows"] // 100)
    expected = rides["rows"] + 2 * len(batches) * rides["inserts"] - gone
    rows, keys = peer.keys()
    assert rows == keys == expected, f"{rows} rows with {keys} keys: {expected} expected"
