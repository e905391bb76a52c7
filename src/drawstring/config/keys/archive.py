"""Options of archiving: the length of the active timeline, and the files of the archived one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Kind, Option

_MIN: Final = 20
_MAX: Final = 30


@dataclass(frozen=True, slots=True)
class Archiving:
    """Settings of archiving.

    Attributes:
        automatic: whether every write archives.
        asked_min: writes that are to remain on the active timeline after archiving, None if not given.
        asked_max: writes on the active timeline before archiving is to start, None if not given.
        beyond_savepoint: whether writes after a savepoint are archived.
        waits_for_cleans: whether writes whose files the last clean retained stay on the timeline.
        commits_min, commits_max: the two bounds; one that is given alone raises the other.
        batch_files: files of one level of the archived timeline that are merged into one of the next level.
        file_bytes_max: target size in bytes of a file of the archived timeline.
        manifests_kept: older versions of the archived timeline that are retained for readers.
    """

    automatic: bool
    asked_min: int | None
    asked_max: int | None
    beyond_savepoint: bool
    batch_files: int
    file_bytes_max: int
    manifests_kept: int
    waits_for_cleans: bool = False
    commits_min: int = field(init=False)
    commits_max: int = field(init=False)

    def __post_init__(self) -> None:
        commits_min = _MIN if self.asked_min is None else self.asked_min
        commits_max = commits_min + _MAX - _MIN if self.asked_max is None else self.asked_max
        if self.asked_min is None:
            commits_max = max(commits_max, commits_min + 1)
        object.__setattr__(self, "commits_min", commits_min)
        object.__setattr__(self, "commits_max", commits_max)
        if commits_min >= commits_max:
            raise InvalidError(
                f"hoodie.keep.max.commits is {commits_max}, which is not greater than"
                f" hoodie.keep.min.commits ({commits_min}). Change one of them."
            )


ARCHIVE_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.archive.automatic",
        "Whether a write moves old instants into the archived timeline after its commit.",
        kind=Kind.FLAG,
        default=True,
        field="automatic",
    ),
    Option(
        "hoodie.keep.min.commits",
        "Newest writes that remain on the active timeline after archiving, 20 when not given; at least two"
        " more than a clean retains.",
        kind=Kind.NUMBER,
        field="asked_min",
    ),
    Option(
        "hoodie.keep.max.commits",
        "Writes on the active timeline before archiving starts; when not given 10 more than remain. Given"
        " alone, it is at least one more than remain.",
        kind=Kind.NUMBER,
        field="asked_max",
    ),
    Option(
        "hoodie.archive.beyond.savepoint",
        "Whether writes after the first savepoint are archived, except the savepoints themselves.",
        kind=Kind.FLAG,
        default=False,
        field="beyond_savepoint",
    ),
    Option(
        "hoodie.archive.block.on.latest.clean.ectr",
        "Whether writes stay on the timeline from the earliest one on that the last clean retained.",
        kind=Kind.FLAG,
        default=False,
        field="waits_for_cleans",
    ),
    Option(
        "hoodie.timeline.compaction.batch.size",
        "Files of one level of the archived timeline (versions 8 and 9) that are merged into one of the"
        " next.",
        kind=Kind.NUMBER,
        default=10,
        minimum=2,
        field="batch_files",
    ),
    Option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        "Target size of a file of the archived timeline, bytes.",
        kind=Kind.NUMBER,
        default=1000 * 1024 * 1024,
        field="file_bytes_max",
    ),
    Option(
        "hoodie.timeline.manifest.retained.versions",
        "Versions of the archived timeline that are retained for running readers.",
        kind=Kind.NUMBER,
        default=3,
        field="manifests_kept",
    ),
)
