"""Kinds of tables, and how a simulation of several writers goes; one seed draws everything."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.support.simulation.writers.storage import Weather
from tests.support.tables import BUCKETS, COW, MOR

At = tuple[str, str]
"""Partition and key of a row."""


@dataclass(frozen=True)
class Kind:
    """A kind of table, and how its writers share it.

    Attributes:
        table_type: of the table.
        version: of the table.
        name: tells it from others of the type and version.
        properties: of the table.
        options: of every write and service.
        is_ordered: whether the greatest value of a key wins, rather than the last write.
    """

    table_type: str
    version: int
    name: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    is_ordered: bool = False

    def __str__(self) -> str:
        short = "cow" if self.table_type == COW else "mor"
        return f"{short}{self.version}{'-' * bool(self.name)}{self.name}"

    @property
    def index(self) -> str:
        return dict(self.properties).get("hoodie.index.type", "")

    @property
    def is_mor(self) -> bool:
        """Whether the table has log files to compact."""
        return self.table_type == MOR

    @property
    def is_hashed(self) -> bool:
        """Whether keys say which file group they are in."""
        return self.index == "BUCKET"

    @property
    def is_global(self) -> bool:
        """Whether a key is in the table once, rather than once in each partition."""
        return self.index.startswith("GLOBAL") or self.has_record_index

    @property
    def has_record_index(self) -> bool:
        return self.index == "RECORD_INDEX"

    @property
    def can_have_metadata(self) -> bool:
        """Whether a metadata table can be built."""
        return self.version > 6

    def name_of(self, at: At) -> Any:
        """Return what tells a row from all others."""
        return at[1] if self.is_global else at


_BUCKETS = tuple(BUCKETS.items())
_LSM = (("hoodie.table.storage.layout", "lsm_tree"),)
_NON_BLOCKING = (("hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL"),)
_PREFERRING = (("hoodie.write.lock.conflict.resolution.strategy", "PreferWriterConflictResolutionStrategy"),)
_EARLY = (("hoodie.write.concurrency.early.conflict.detection.enable", "true"),)
_MOVES = (("hoodie.record.index.update.partition.path", "true"),)


def _tiered(runs: int) -> tuple[tuple[str, str], ...]:
    """Return options with which file groups with so many runs get a log file, and hardly any a base file."""
    return (
        ("drawstring.compaction.hybrid", "true"),
        ("drawstring.compaction.hybrid.log.ratio", "9"),
        ("drawstring.compaction.hybrid.space.ratio", "9"),
        ("hoodie.log.compaction.blocks.threshold", str(runs)),
    )


def _indexed(index: str) -> tuple[tuple[str, str], ...]:
    return (("hoodie.index.type", index),)


KINDS = [
    Kind(COW, 9),
    Kind(MOR, 9),
    Kind(MOR, 6),
    Kind(MOR, 9, "buckets", _BUCKETS),
    Kind(COW, 6, "buckets", _BUCKETS),
]
NON_BLOCKING = [
    Kind(MOR, 9, "nonblocking", _BUCKETS, _NON_BLOCKING),
    Kind(MOR, 9, "nonblocking-ordered", _BUCKETS, _NON_BLOCKING, is_ordered=True),
    Kind(MOR, 8, "nonblocking-ordered", _BUCKETS, _NON_BLOCKING, is_ordered=True),
    Kind(MOR, 10, "nonblocking-lsm", _BUCKETS + _LSM, _NON_BLOCKING),
]
STRATEGIES = [
    Kind(COW, 9, "preferring", options=_PREFERRING),
    Kind(MOR, 9, "preferring", options=_PREFERRING),
    Kind(COW, 6, "preferring", options=_PREFERRING),
    Kind(COW, 9, "early", options=_EARLY),
    Kind(MOR, 9, "early", options=_EARLY),
]
GLOBAL = [
    Kind(COW, 9, "global-simple", _indexed("GLOBAL_SIMPLE")),
    Kind(MOR, 9, "global-bloom", _indexed("GLOBAL_BLOOM")),
    Kind(MOR, 6, "global-simple", _indexed("GLOBAL_SIMPLE")),
    Kind(COW, 9, "record-index", _indexed("RECORD_INDEX"), _MOVES),
    Kind(MOR, 9, "record-index", _indexed("RECORD_INDEX"), _MOVES),
]
LAYOUTS = [
    Kind(MOR, 8),
    Kind(MOR, 9, "buckets-ordered", _BUCKETS, is_ordered=True),
    Kind(MOR, 10),
    Kind(MOR, 10, "lsm", _LSM),
    Kind(MOR, 10, "lsm-tiered", _BUCKETS + _LSM, _tiered(2)),
    Kind(MOR, 9, "tiered", _BUCKETS, _tiered(3)),
]
MORE_KINDS = [*NON_BLOCKING, *STRATEGIES, *GLOBAL, *LAYOUTS]
"""Kinds with rules of their own: other modes and strategies, keys of the whole table, other files."""


@dataclass(frozen=True)
class Plan:
    """How a simulation goes.

    Attributes:
        kind: of table.
        seed: draws everything.
        operations: of each actor.
        has_faults: whether anything fails.
        lingers_at: part of a storage call; processes often stand still for long before it.
        stops_at: part of a storage call; processes are often stopped for long before it.
        merges: whether writers also merge, and upsert into new file groups.
        follows: whether a reader follows the table besides.
        restores: whether the services also make savepoints and go back to them, or to other writes.
        by_metadata: whether the table has a metadata table, by which all of them plan.
        retries: how often writes may run again after conflicts; one is drawn for each.
        indexes: whether the services also build statistics of columns while writers go on, and drop them.
        favours: writes that are drawn far more often than others.
    """

    kind: Kind
    seed: int
    operations: int = 5
    has_faults: bool = True
    lingers_at: str = ""
    stops_at: str = ""
    merges: bool = False
    follows: bool = False
    restores: bool = False
    by_metadata: bool = False
    retries: tuple[str, ...] = ("0", "3", "3")
    indexes: bool = False
    favours: tuple[str, ...] = ()

    @property
    def uses_metadata(self) -> bool:
        """Whether the table has a metadata table."""
        return self.by_metadata or self.kind.has_record_index


LINGERING_AT = ("put_if_match .hoodie/.locks/2", "list_files .hoodie/.heartbeat")
"""Calls before which it matters most when a process stands still."""

STOPPED_AT = LINGERING_AT[0]
"""The put by which a write decides that it completes, and others that it does not."""

_COMPANIES: tuple[dict[str, Any], ...] = (
    {},
    {"merges": True},
    {"follows": True},
    {"restores": True},
    {"merges": True, "retries": ("1",)},
    *({"lingers_at": each} for each in LINGERING_AT),
    {"by_metadata": True},
    {"by_metadata": True, "merges": True, "follows": True},
    {"by_metadata": True, "restores": True},
    {"by_metadata": True, "indexes": True},
)


def drawn(kind: Kind, seed: int, operations: int) -> Plan:
    """Return a plan for a kind whose seed also draws who takes part, and whether anything fails."""
    draw = random.Random(f"{kind} {seed}")
    possible = [each for each in _COMPANIES if kind.can_have_metadata or "by_metadata" not in each]
    return Plan(kind, seed, operations, has_faults=draw.random() < 0.75, **draw.choice(possible))


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
