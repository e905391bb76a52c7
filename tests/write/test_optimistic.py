"""Writers side by side under optimistic concurrency control."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.base.errors import DrawstringError
from drawstring.table import Table
from tests.support.interleavings import OPTIMISTIC, Act, interleave
from tests.support.rows import rides
from tests.support.tables import BUCKETS, COW, MOR, create

KINDS = [(COW, 9, {}), (MOR, 9, {}), (MOR, 6, {}), (MOR, 9, BUCKETS), (COW, 6, BUCKETS)]
kinds = pytest.mark.parametrize(
    ("table_type", "version", "how"), KINDS, ids=["cow9", "mor9", "mor6", "mor9-buckets", "cow6-buckets"]
)
OLD = rides(*((key, city, 1, 1.0) for city in ("oslo", "rome") for key in "abc"))


def upsert(*rows: tuple[Any, ...]) -> Act:
    return lambda table, options: table.upsert(rides(*rows), options=options)


ACTS: dict[str, Act] = {
    "upsert": upsert(("a", "rome", 2, 2.0), ("new", "rome", 2, 2.0)),
    "elsewhere": upsert(("a", "oslo", 3, 3.0), ("n", "bern", 3, 3.0)),
    "same keys": upsert(("a", "rome", 3, 3.0), ("new", "rome", 3, 3.0)),
    "new key": upsert(("new", "rome", 4, 4.0)),
    "delete": lambda table, options: table.delete(rides(("a", "rome", 5, 0.0)), options=options),
    "update": lambda table, options: table.update("fare < 1.5", {"fare": 7.0}, options=options),
    "append": lambda table, options: table.insert(rides(("i", "rome", 6, 6.0)), options=options),
    "overwrite": lambda table, options: table.insert_overwrite(rides(("o", "rome", 7, 7.0)), options=options),
    "drop": lambda table, options: table.delete_partition("rome", options=options),
    "cluster": lambda table, options: table.cluster(options=options),
    "compact": lambda table, options: table.compact(options=options),
    "clean": lambda table, options: table.clean(retain_commits=1, options=options),
    "archive": lambda table, options: table.archive(options=options),
}


def prepared(table_type: str, version: int, how: dict[str, str]) -> Table:
    table = create(table_type=table_type, version=version, properties=how)
    table.upsert(OLD)
    table.upsert(rides(("b", "rome", 2, 1.0), ("c", "oslo", 2, 1.0)))
    return table


PAIRS = [
    ("upsert", "same keys"),
    ("upsert", "elsewhere"),
    ("new key", "upsert"),
    ("upsert", "delete"),
    ("update", "append"),
    ("update", "upsert"),
    ("upsert", "overwrite"),
    ("overwrite", "upsert"),
    ("upsert", "drop"),
    ("upsert", "clean"),
    ("upsert", "compact"),
    ("upsert", "cluster"),
]
EVERY = 13
"""Of so many storage calls one is tried; `make sim` tries all."""


def is_possible(table_type: str, how: dict[str, str], act: str) -> bool:
    return not (act == "compact" and table_type == COW) and not (act == "cluster" and how)


@kinds
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_what_two_writers_leave_is_what_one_after_the_other_leaves(
    table_type: str, version: int, how: dict[str, str], first: str, second: str
) -> None:
    if not is_possible(table_type, how, second):
        with pytest.raises(DrawstringError):
            ACTS[second](prepared(table_type, version, how), OPTIMISTIC)
        return
    offset = (len(first) + len(second) + version) % EVERY
    outcomes = interleave(
        prepared(table_type, version, how), ACTS[first], ACTS[second], every=EVERY, offset=offset
    )
    assert outcomes
