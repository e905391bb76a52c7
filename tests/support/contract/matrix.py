"""Every index with every operation that goes with it: for other readers and writers of the same tables."""

from __future__ import annotations

from tests.support.contract.cells import OPERATIONS, Cell, operations_of
from tests.support.contract.kinds import Kind
from tests.support.contract.steps import NUMBERS, Item, Pace, Step

KINDS = (
    Kind("simple", "cow", "6", "event", "hive", "full"),
    Kind("simple", "parquet", "9", "commit", "hive", "full"),
    Kind("bloom", "cow", "9", "event", "hive", "full"),
    Kind("bloom", "avro", "6", "event", "hive", "full"),
    Kind("global_simple", "cow", "9", "commit", "hive", "full"),
    Kind("global_simple", "avro", "8", "event", "hive", "full"),
    Kind("global_bloom", "cow", "8", "event", "hive", "full"),
    Kind("global_bloom", "parquet", "9", "event", "hive", "full"),
    Kind("bucket", "cow", "9", "event", "none", "full"),
    Kind("bucket", "avro", "8", "commit", "hive", "full"),
    Kind("consistent", "parquet", "9", "event", "hive", "full"),
    Kind("log", "avro", "6", "event", "hive", "full"),
    Kind("global_log", "parquet", "9", "event", "hive", "full"),
)


def cells() -> list[Cell]:
    """Return the kinds with the operations of their histories.

    Of two kinds with the same index each does every other operation, and what the other one cannot.
    """
    found = []
    for kind in KINDS:
        same = [each for each in KINDS if each.index == kind.index]
        others = {name for each in same if each != kind for name in operations_of(each)}
        names = [
            name
            for name in operations_of(kind)
            if name not in others or OPERATIONS.index(name) % 2 == same.index(kind)
        ]
        found.append(Cell(kind, tuple(names)))
    return found


def step_of(operation: str, number: int) -> Step:
    """Return a step that meets records that are there, brings new ones, and has some of them twice."""
    drawn = [
        (number, 0, Pace.NEWER, False),
        (number + 1, 1, Pace.NEWER, False),
        (number + 2, 2, Pace.NEWER, True),
        (number + 3, 0, Pace.TIE, False),
        (number + 1, 1, Pace.TIE, False),
        (number + 4, 2, Pace.NEWER, False),
    ]
    items = tuple(Item(at % (NUMBERS + 2), *rest) for at, *rest in drawn)
    return Step(operation, items, wide=operation == "upsert", apart=bool(number % 2))
