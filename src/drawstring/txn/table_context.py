"""What an open table consists of: where it is, who runs its tasks, where time comes from."""

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
        storage: its files.
        engine: runs its tasks.
        clock: gives instants their times.
        ids: gives file groups their names.
    """

    storage: Storage
    engine: Engine = field(default_factory=LocalEngine)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
