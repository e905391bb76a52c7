"""The context of an open table: storage, engine, clock and id generator."""

from __future__ import annotations

from dataclasses import dataclass, field

from drawstring.base.clock import Clock, Ids, SystemClock, SystemIds
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Engine
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class TableContext:
    """An open table.

    Attributes:
        storage: the table's files.
        engine: runs tasks.
        clock: the source of instant times.
        ids: the source of unique ids, as for file groups.
        uses_metadata: whether queries list files by the metadata table, and writes build one.
        skips_data: whether the metadata table, if queries use it, rules out files for them.
    """

    storage: Storage
    engine: Engine = field(default_factory=LocalEngine)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    uses_metadata: bool = False
    skips_data: bool = True
