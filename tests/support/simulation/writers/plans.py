"""Kinds of tables, and how a simulation of several writers goes; one seed draws everything."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.support.simulation.writers.storage import Weather
from tests.support.tables import BUCKETS, COW, MOR


@dataclass(frozen=True)
class Kind:
    """A kind of table that optimistic concurrency control supports."""

    table_type: str
    version: int
    properties: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        short = "cow" if self.table_type == COW else "mor"
        return f"{short}{self.version}{'-buckets' if self.properties else ''}"


_BUCKETS = tuple(BUCKETS.items())
KINDS = [
    Kind(COW, 9),
    Kind(MOR, 9),
    Kind(MOR, 6),
    Kind(MOR, 9, _BUCKETS),
    Kind(COW, 6, _BUCKETS),
]


@dataclass(frozen=True)
class Plan:
    """How a simulation goes.

    Attributes:
        kind: of table.
        seed: draws everything.
        operations: of each actor.
        has_faults: whether anything fails.
        lingers_at: part of a storage call; processes often stand still for long before it.
        merges: whether writers also merge, and upsert into new file groups.
        follows: whether a reader follows the table besides.
        restores: whether the services also make savepoints and go back to them, or to other writes.
        by_metadata: whether the table has a metadata table, by which all of them plan.
        retries: how often writes may run again after conflicts; one is drawn for each.
        indexes: whether the services also build statistics of columns while writers go on, and drop them.
    """

    kind: Kind
    seed: int
    operations: int = 5
    has_faults: bool = True
    lingers_at: str = ""
    merges: bool = False
    follows: bool = False
    restores: bool = False
    by_metadata: bool = False
    retries: tuple[str, ...] = ("0", "3", "3")
    indexes: bool = False


@dataclass
class Report:
    """What came of a simulation.

    Attributes:
        outcomes: how many operations ended how.
        faults: how many there were, by name.
        commits: how many operations took effect.
        calls: how many storage calls there were.
        digest: of all storage calls in order.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    commits: int = 0
    calls: int = 0
    digest: str = ""


def weather_of(draw: random.Random) -> Weather:
    """Draw which faults there are: none of a kind in many simulations, many in some."""

    def often(most: float) -> float:
        return draw.choice((0.0, most / 4, most))

    return Weather(
        before=often(0.004),
        after=often(0.006),
        crash=often(0.004),
        pause=often(0.004),
        jump=often(0.002),
        slow=draw.choice((0.01, 0.05, 0.2)),
    )
