"""Options about archiving: how many instants stay on the active timeline, and how old ones are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Kind, Option


@dataclass(frozen=True, slots=True)
class Archiving:
    """How long the active timeline gets.

    Attributes:
        automatic: whether every write archives.
        commits_min: writes that stay when some are archived.
        commits_max: writes that may be there before some are.
        beyond_savepoint: whether writes after a savepoint are archived.
        batch_files: files of one level of the history that become one of the next.
        file_bytes_max: size that a file of the history aims at.
        manifests_kept: older versions of the history that readers still find.
    """

    automatic: bool
    commits_min: int
    commits_max: int
    beyond_savepoint: bool
    batch_files: int
    file_bytes_max: int
    manifests_kept: int

    def __post_init__(self) -> None:
        if self.commits_min >= self.commits_max:
            raise InvalidError(
                f"hoodie.keep.max.commits is {self.commits_max} and hoodie.keep.min.commits"
                f" {self.commits_min}: the first has to be the greater one"
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
        "Newest writes that stay on the active timeline when older ones are archived; as many as a clean"
        " retains and two more, if that is more.",
        kind=Kind.NUMBER,
        default=20,
        field="commits_min",
    ),
    Option(
        "hoodie.keep.max.commits",
        "Writes on the active timeline before some are archived.",
        kind=Kind.NUMBER,
        default=30,
        field="commits_max",
    ),
    Option(
        "hoodie.archive.beyond.savepoint",
        "Whether writes after the first savepoint are archived, those that are saved left out.",
        kind=Kind.FLAG,
        default=False,
        field="beyond_savepoint",
    ),
    Option(
        "hoodie.timeline.compaction.batch.size",
        "Files of one level of the archived timeline (versions 8 and 9) that become one of the next level.",
        kind=Kind.NUMBER,
        default=10,
        minimum=2,
        field="batch_files",
    ),
    Option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        "Size that a file of the archived timeline aims at, bytes.",
        kind=Kind.NUMBER,
        default=1000 * 1024 * 1024,
        field="file_bytes_max",
    ),
    Option(
        "hoodie.timeline.manifest.retained.versions",
        "Versions of the archived timeline that stay for readers that began with them.",
        kind=Kind.NUMBER,
        default=3,
        field="manifests_kept",
    ),
)
