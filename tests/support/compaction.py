"""Tables with log files, and their compaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drawstring.base.clock import SystemClock
from drawstring.formats.metadata.commit import encode_compaction_plan
from drawstring.model.instant import Action, Instant
from drawstring.services.compaction import plan_compaction
from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import MOR, create, store_of

FIRST = [(key, city, 1, 1.0) for city in ("oslo", "rome") for key in "abc"]
NEWER = [("a", "rome", 2, 2.0), ("b", "rome", 0, 0.0), ("a", "oslo", 1, 5.0)]
MERGED = sorted([("a", "rome", 2, 2.0), ("a", "oslo", 1, 5.0), *(row for row in FIRST if row[0] != "a")])


def logged(version: int = 9, **how: Any) -> Table:
    """Create a table whose rows `MERGED` are in base files and log files."""
    table = create(**{"table_type": MOR, "version": version, **how})
    table.upsert(rides(*FIRST))
    table.upsert(rides(*NEWER))
    return table


def schedule(table: Table) -> Instant:
    """Put a compaction on the timeline as another engine does, and leave it there."""
    store = store_of(table, SystemClock())
    plan = plan_compaction(table.inspect.files())
    return store.request(Action.COMPACTION, store.new_time(store.load()), encode_compaction_plan(plan))


def once(action: Callable[[], Any]) -> Callable[[int, int], None]:
    """Return a progress function that does something when the first file group is done."""
    left = [action]

    def progress(done: int, of: int) -> None:
        if left:
            left.pop()()

    return progress
