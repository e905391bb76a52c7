"""Savepoints and restores of the services of a simulation."""

from __future__ import annotations

import random
from collections.abc import Callable

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Action
from drawstring.table import Table
from tests.support.simulation.writers.history import Operation

BACK_MAX = 3
"""A restore without a savepoint goes back by up to so many writes."""


def savepoint(draw: random.Random) -> Operation:
    """Make a savepoint of the newest write."""
    return _tried("savepoint", lambda table, options: table.savepoints.create(options=options))


def restore(draw: random.Random) -> Operation:
    """Go back to the newest savepoint; without one, or for a change, to one of the last writes."""
    prefers_savepoint, back = draw.random() < 0.7, draw.randint(1, BACK_MAX)

    def act(table: Table, options: dict[str, str]) -> None:
        saved, writes = _saved(table), [each.requested for each in table.timeline.writes()]
        recent = writes[-1 - back] if len(writes) > back else writes[0]
        table.savepoints.restore(saved[-1] if saved and prefers_savepoint else recent, options=options)

    return _tried("restore", act)


def delete_savepoint(draw: random.Random) -> Operation:
    """Delete the oldest savepoint."""

    def act(table: Table, options: dict[str, str]) -> None:
        for saved in _saved(table)[:1]:
            table.savepoints.delete(saved, options=options)

    return _tried("delete_savepoint", act)


OPERATIONS: dict[str, Callable[[random.Random], Operation]] = {
    "savepoint": savepoint,
    "restore": restore,
    "delete_savepoint": delete_savepoint,
}

WEIGHTED = ("savepoint", "savepoint", "restore", "restore", "delete_savepoint")
"""Their names, as often as they are drawn."""


def _tried(name: str, act: Callable[[Table, dict[str, str]], object]) -> Operation:
    """Return an operation that may find that it cannot be done: a clean was there first, or a savepoint."""

    def tried(table: Table, options: dict[str, str]) -> None:
        try:
            act(table, options)
        except InvalidError:
            return

    return Operation(name, tried)


def _saved(table: Table) -> list[str]:
    return [each.requested for each in table.timeline.completed_of(Action.SAVEPOINT)]
