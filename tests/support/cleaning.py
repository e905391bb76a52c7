"""Tables with file versions that a clean deletes, and what cleans deleted."""

from __future__ import annotations

from typing import Any

from drawstring.formats.metadata.plans import decode_clean
from drawstring.model.instant import Action
from drawstring.model.plans import CleanMetadata
from drawstring.table import Table
from tests.support.rows import held, rides
from tests.support.tables import WITHOUT_COMPACTION, store_of

KEEP_2 = {"hoodie.clean.commits.retained": "2"}
NEVER = {"hoodie.clean.automatic": "false", **WITHOUT_COMPACTION}
VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


def cleans(table: Table) -> list[CleanMetadata]:
    store = store_of(table)
    return [decode_clean(store.read(i)) for i in table.timeline.instants if i.action is Action.CLEAN]


def deleted(table: Table) -> list[str]:
    return sorted(
        name for each in cleans(table) for part in each.partitions.values() for name in part.deleted
    )


def written(table: Table, rounds: int = 6, **options: Any) -> list[list[tuple[Any, ...]]]:
    """Upsert the same two keys in rome again and again (oslo is written once); return the rows by round."""
    table.upsert(
        rides(("far", "oslo", 1, 1.0), ("a", "rome", 0, 0.0), ("b", "rome", 0, 0.0)), options=options
    )
    states = [held(table)]
    for number in range(1, rounds):
        table.upsert(rides(("a", "rome", number, float(number))), options=options)
        if table.config.is_merge_on_read:
            table.services.compact(options=options)
        states.append(held(table))
    return states
