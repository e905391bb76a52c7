"""Which partitions of the metadata table an indexing action of the table builds, or has built.

requested, not run    the partition is nowhere yet
running               it is registered as being built, and writers add their records to it
completed             it is registered as complete, or its process died just before that
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from drawstring.formats.metadata.indexing import decode_indexing
from drawstring.metadata.partitions import METADATA_FOLDER
from drawstring.model.files import join_path, parse_data_file
from drawstring.model.index_plan import IndexPlan
from drawstring.model.instant import Action, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

BUILD: Final = "drawstring.delta.commit"
"""Fact of a built partition: requested time of the delta commit of its base files."""


@dataclass(frozen=True, slots=True)
class BuildingPartitions:
    """What becomes of partitions that are registered as being built.

    Attributes:
        built: those of a completed action, whose process died before it registered them.
        running: those of a pending action.
    """

    built: frozenset[str]
    running: frozenset[str]

    @staticmethod
    def of(
        storage: Storage, store: TimelineStore, timeline: Timeline, names: Iterable[str]
    ) -> BuildingPartitions:
        """Look the partitions up in the indexing actions of a table; others were given up.

        Args:
            storage: the table's files.
            store: its timeline.
            timeline: as loaded.
            names: the partitions that are registered as being built.

        Raises:
            CorruptTableError: a plan is damaged.
        """
        wanted = {*names}
        if not wanted:
            return BuildingPartitions(frozenset(), frozenset())
        pending = {name for _, plan in pending_plans(store, timeline) for name in plan.names}
        built: set[str] = set()
        for instant in timeline.completed_of(Action.INDEXING):
            for each in decode_indexing(store.read(instant)).partitions:
                if each.name in wanted - pending and has_files(storage, each.name, each.extra.get(BUILD)):
                    built.add(each.name)
        return BuildingPartitions(frozenset(built), frozenset(wanted & pending))


def pending_plans(store: TimelineStore, timeline: Timeline) -> Iterator[tuple[Instant, IndexPlan]]:
    """Yield the pending indexing actions with their plans.

    Raises:
        CorruptTableError: a plan is damaged.
    """
    for instant in timeline.pending_of(Action.INDEXING):
        yield instant, decode_indexing(store.read_requested(instant))


def has_files(storage: Storage, partition: str, requested: str | None) -> bool:
    """Return whether a partition of the metadata table has files of a delta commit.

    Args:
        storage: the table's files.
        partition: of the metadata table.
        requested: requested time of the delta commit; None for none.
    """
    files = map(parse_data_file, storage.list_files(join_path(METADATA_FOLDER, partition)))
    return requested is not None and any(each is not None and each.instant == requested for each in files)
