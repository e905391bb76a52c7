"""What two writers of a table do at the same time."""

from __future__ import annotations

from typing import Any

from drawstring.table import Table
from tests.support.copies import copied
from tests.support.interleavings import Act
from tests.support.rows import rides
from tests.support.tables import create

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
    "cluster": lambda table, options: table.services.cluster(options=options),
    "compact": lambda table, options: table.services.compact(options=options),
    "clean": lambda table, options: table.services.clean(retain_commits=1, options=options),
    "archive": lambda table, options: table.services.archive(options=options),
}


@copied
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
