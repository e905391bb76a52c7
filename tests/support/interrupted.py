"""Storages on which others act while a write is at work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from drawstring.model.files import FileStatus
from drawstring.storage.faults import FaultyStorage
from drawstring.table import Table

Act = Callable[[Table], object]


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
        if path.startswith("rome/"):
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
