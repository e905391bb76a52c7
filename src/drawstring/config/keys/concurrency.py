"""Options of concurrency control: what several writers of a table may do at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from drawstring.config.options.option import Kind, Option


class ConcurrencyMode(StrEnum):
    """How the writers of a table share it (`WriteConcurrencyMode` in Hudi)."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"


_HUDI: Final = "org.apache.hudi.client.transaction."
_PREFER_WRITER: Final = "PreferWriterConflictResolutionStrategy"
_BY_FILE_GROUP: Final = "SimpleConcurrentFileWritesConflictResolutionStrategy"
_BY_BUCKET: Final = "BucketIndexConcurrentFileWritesConflictResolutionStrategy"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Settings of concurrency control.

    Attributes:
        mode: one of `ConcurrencyMode`; None where the options do not say.
        retries_max: how often a write that lost against another writer runs again.
        resolves_schemas: whether a schema that another writer changed meanwhile is a conflict.
        conflict_strategy: Hudi's class that decides on conflicts.
        detects_early: whether a write gives way to live writers before it writes a file.
        prefers_writers: whether clusterings give way to writes; otherwise a write runs again after a plan of
            one.
    """

    mode: str | None
    retries_max: int
    resolves_schemas: bool
    conflict_strategy: str
    detects_early: bool
    prefers_writers: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefers_writers", self.conflict_strategy.endswith(_PREFER_WRITER))


CONCURRENCY_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.write.concurrency.mode",
        "SINGLE_WRITER: a write keeps the table lock from its begin to its commit;"
        " OPTIMISTIC_CONCURRENCY_CONTROL: writers work side by side and hold the lock only to begin and to"
        " commit; a write that conflicts with another one runs again; NON_BLOCKING_CONCURRENCY_CONTROL: the"
        " same, but log files of several writers in one bucket are no conflict (MERGE_ON_READ tables with a"
        " simple bucket index, version 8 or later). By default OPTIMISTIC_CONCURRENCY_CONTROL;"
        " SINGLE_WRITER where hoodie.clean.failed.writes.policy=EAGER is given.",
        choices=tuple(ConcurrencyMode),
        field="mode",
    ),
    Option(
        "hoodie.write.num.retries.on.conflict.failures",
        "How often a write that works beside others runs again after a conflict. The last two attempts (of"
        " two or three, the last) go first: no other writer of drawstring commits in the partitions where"
        " they wrote until they are done.",
        kind=Kind.NUMBER,
        default=3,
        minimum=0,
        field="retries_max",
    ),
    Option(
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        "Whether a write that changes the schema of the table conflicts with another change of the schema"
        " that was committed after it began.",
        kind=Kind.FLAG,
        default=True,
        field="resolves_schemas",
    ),
    Option(
        "hoodie.write.lock.conflict.resolution.strategy",
        "Who gives way in a conflict. SimpleConcurrentFileWrites and BucketIndexConcurrentFileWrites mean the"
        " same here: of two writes the one that commits second, and a write gives way to a clustering that"
        " was planned since it began. PreferWriter: that clustering gives way (version 8 or later), and so"
        " does one whose file groups are being written to. Give the same to all writers and services.",
        default=f"{_HUDI}{_BY_FILE_GROUP}",
        choices=tuple(
            f"{package}{name}"
            for name in (_BY_FILE_GROUP, _BY_BUCKET, _PREFER_WRITER)
            for package in (_HUDI, "")
        ),
        field="conflict_strategy",
    ),
    Option(
        "hoodie.write.concurrency.early.conflict.detection.enable",
        "Whether a write looks, before it writes to a file group, at the markers of live writers that were"
        " pending when it began, and gives way to one that has begun a file of this file group: it runs again"
        " when that one is done. Otherwise conflicts show at the commit only.",
        kind=Kind.FLAG,
        default=False,
        field="detects_early",
    ),
)
