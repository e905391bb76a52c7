"""Cleaning as it stands on the timeline: what may go, and what went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class CleanPolicy(StrEnum):
    """What a clean keeps."""

    COMMITS = "KEEP_LATEST_COMMITS"
    VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    HOURS = "KEEP_LATEST_BY_HOURS"


@dataclass(frozen=True, slots=True)
class EarliestRetained:
    """The first instant whose files a clean keeps (HoodieActionInstant)."""

    requested: str
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """A clean as requested on the timeline (HoodieCleanerPlan, version 2).

    Attributes:
        policy: name of the policy.
        earliest: the first instant retained; None where versions are counted.
        last_completed: requested time of the newest write when it was planned.
        files: paths to delete, relative to the table, by partition.
        partitions_to_delete: partitions that go as a whole.
        savepoints: requested times that were saved then.
    """

    policy: str
    earliest: EarliestRetained | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions_to_delete: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()

    @property
    def file_count(self) -> int:
        """How many files it deletes."""
        return sum(len(paths) for paths in self.files.values())


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """What a clean did in one partition (HoodieCleanPartitionMetadata); file names without folder."""

    deleted: tuple[str, ...]
    failed: tuple[str, ...] = ()
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """A completed clean (HoodieCleanMetadata).

    Attributes:
        started: the clean's requested time.
        millis: how long it took.
        policy: name of the policy.
        earliest: requested time of the first instant retained, empty where versions are counted.
        last_completed: requested time of the newest write when it was planned.
        partitions: what was done, by partition.
        savepoints: requested times that were saved then.
    """

    started: str
    millis: int
    policy: str
    earliest: str
    last_completed: str
    partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    savepoints: tuple[str, ...] = ()

    @property
    def took_something(self) -> bool:
        """Whether anything went; cleans that found nothing are noted to spare the next one work."""
        return any(each.deleted or each.is_gone for each in self.partitions.values())
