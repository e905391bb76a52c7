"""Clean plans and completed cleans, as stored on the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class CleanPolicy(StrEnum):
    """The rule by which a clean retains file slices (hoodie.clean.policy)."""

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
        earliest: the first instant retained; None under `KEEP_LATEST_FILE_VERSIONS`.
        last_completed: requested time of the newest write when the clean was planned.
        files: paths to delete, relative to the table, by partition.
        partitions_to_delete: partitions that are deleted entirely.
        savepoints: requested times of the savepoints when the clean was planned.
        versions_retained: slices of a file group that stay under `KEEP_LATEST_FILE_VERSIONS`.
        uncleaned_from: requested time of the first write that replaced file groups of partitions which the
            clean leaves out; None for none.
        is_filtered: whether a filter left partitions out.
    """

    policy: str
    earliest: EarliestRetained | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions_to_delete: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()
    versions_retained: int | None = None
    uncleaned_from: str | None = None
    is_filtered: bool = False

    @property
    def file_count(self) -> int:
        """The number of files that the clean deletes."""
        return sum(len(paths) for paths in self.files.values())


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """The result of a clean in one partition (HoodieCleanPartitionMetadata); file names without folder."""

    deleted: tuple[str, ...]
    failed: tuple[str, ...] = ()
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """A completed clean (HoodieCleanMetadata).

    Attributes:
        started: the clean's requested time.
        millis: duration in milliseconds.
        policy: name of the policy.
        earliest: requested time of the first instant retained, empty under `KEEP_LATEST_FILE_VERSIONS`.
        last_completed: requested time of the newest write when the clean was planned.
        partitions: results by partition.
        savepoints: requested times of the savepoints when the clean was planned.
        versions_retained: slices of a file group that stayed under `KEEP_LATEST_FILE_VERSIONS`; None if
            unknown, as in the cleans of other engines.
        uncleaned_from, is_filtered: as in `CleanPlan`.
    """

    started: str
    millis: int
    policy: str
    earliest: str
    last_completed: str
    partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    savepoints: tuple[str, ...] = ()
    versions_retained: int | None = None
    uncleaned_from: str | None = None
    is_filtered: bool = False

    @property
    def took_something(self) -> bool:
        """Whether anything was deleted; empty cleans are recorded, too, so that the next one scans less."""
        return any(each.deleted or each.is_gone for each in self.partitions.values())
