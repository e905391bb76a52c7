"""Storages on which others act while a write is at work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from drawstring.model.files import PARTITION_METADATA, FileStatus
from drawstring.storage.faults import FaultyStorage
from drawstring.table import Table
from tests.support.interleavings import OPTIMISTIC
from tests.support.rows import rides

Act = Callable[[Table], object]


def upserting(*rows: tuple[Any, ...], options: Mapping[str, str] = OPTIMISTIC) -> Act:
    """Return the upsert of some rides."""
    return lambda table: table.upsert(rides(*rows), options=options)


class Interrupted(FaultyStorage):
    """Lets others act when a data file is written.

    Args:
        table: for the others.
        act: what they do.
        times: how often.
    """

    def __init__(self, table: Table, act: Act, times: int = 1) -> None:
        super().__init__(table._context.storage, 1 << 60)
        self._table, self._act, self._times = table, act, times

    def let_others_act(self) -> None:
        if self._times:
            self._times -= 1
            self._act(self._table)

    def _change(self, path: str) -> None:
        if path.startswith("rome/") and not path.endswith(PARTITION_METADATA):
            self.let_others_act()
        super()._change(path)


class Preceded(Interrupted):
    """Lets others act when data files are listed."""

    def list_files(self, folder: str) -> list[FileStatus]:
        if folder == "rome":
            self.let_others_act()
        return super().list_files(folder)

    def _change(self, path: str) -> None:
        FaultyStorage._change(self, path)


def on(storage: Interrupted) -> Table:
    """Return the table on a storage on which others act."""
    return Table(replace(storage._table._context, storage=storage))
