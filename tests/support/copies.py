"""Tables that many tests begin with: made once in a process, and copied for each of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import ParamSpec

from drawstring.base.clock import Clock
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.storages import memory

P = ParamSpec("P")


def copied(make: Callable[P, Table]) -> Callable[P, Table]:
    """Let a function return copies of the table in memory that it made for its arguments.

    The clock of each copy goes on where that of the table was.
    """
    made: dict[str, tuple[Table, MemoryStorage, Clock]] = {}

    @wraps(make)
    def copy_of(*args: P.args, **how: P.kwargs) -> Table:
        key = repr((args, sorted(how.items())))
        if key not in made:
            table = make(*args, **how)
            if not isinstance(context_of(table).storage, MemoryStorage):
                return table
            made[key] = table, _storage_like(context_of(table).storage), copy.copy(context_of(table).clock)
        table, storage, clock = made[key]
        return Table(replace(context_of(table), storage=_storage_like(storage), clock=copy.copy(clock)))

    return copy_of


def _storage_like(storage: MemoryStorage) -> MemoryStorage:
    """Return a storage with the same files; in version 6 their times tell when instants completed."""
    like = memory()
    for status in storage.list_tree(""):
        like.put(status.path, storage.read(status.path))
        like.set_modified(status.path, status.modified_ms)
    return like
