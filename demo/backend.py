"""What the pipeline asks of an engine. `on_spark` and `on_local` do it with PySpark and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

import drawstring
from demo.tables import TableSpec

BEGINNING = "0" * 17
"""A checkpoint before every commit."""

Groups = Any
"""Distinct (carrier, month, day), as the engine holds them."""


class Backend(Protocol):
    """One engine, working on tables in one folder."""

    label: str

    def load(self, spec: TableSpec, file: Path) -> None:
        """Create a table with the rows of a file."""

    def upsert(self, spec: TableSpec, file: Path) -> None:
        """Upsert the rows of a file."""

    def delete(self, spec: TableSpec, file: Path) -> None:
        """Delete the rows of a file."""

    def changed_groups(self, since: str) -> Groups:
        """Return the groups of the flights that changed after a checkpoint."""

    def groups_in(self, file: Path) -> Groups:
        """Return the groups of the flights in a file."""

    def refresh(self, groups: Groups) -> int:
        """Compute groups anew from the flights, put them into the table of delays; return how many."""

    def compact(self, spec: TableSpec) -> None:
        """Merge the log files of a table into new base files."""

    def read(self, spec: TableSpec, as_of: str | None = None) -> pa.Table:
        """Return the rows of a table, now or as of an instant."""

    def close(self) -> None:
        """Stop the engine."""


def checkpoint(path: str) -> str:
    """Return the time up to which a table is known now: the completion of its newest commit."""
    writes = drawstring.open(path).timeline.writes()
    return max((write.completed or write.requested for write in writes), default=BEGINNING)


def latest_instant(path: str) -> str:
    """Return the newest commit of a table, for time travel to it."""
    write = drawstring.open(path).timeline.latest_write()
    return write.requested if write else BEGINNING
