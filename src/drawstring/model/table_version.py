"""Rules of the table versions: everything in which one version differs from another.

    version   layout   log files are named by   a failed write's log records are     merging is told by
    2 to 6    1        their slice              taken back by command blocks         a payload class
    8         2        the write                deleted with their file              merge mode and class
    9         2        the write                deleted with their file              merge mode, properties
    10        2        the same as 9; new log files are files like base files (native log files)

No other module compares version or layout numbers. It asks the rules of its table (`TableConfig.rules`), and
where the answer takes code of a higher room, that room has a table of functions keyed by an enum from here:
`LogFileAssignment` in `filegroups.file_system_view`, `CommitEncoding` in `formats`, `ArchiveFormat` in
`timeline`. A new version is one more entry of `VERSION_RULES`, its steps in `services.upgrade`,
and a function for each value of an enum that is new. What the rules say is in the specification (Transaction
Log, File Layout Hierarchy, Table Properties) and in the upgrade handlers of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from drawstring.model.instant import Action


class CommitEncoding(Enum):
    """How the content of a completed write is encoded."""

    JSON = "JSON"
    AVRO = "Avro"


class ArchiveFormat(Enum):
    """What the archived timeline consists of."""

    LOG_FILES = "log files of Avro blocks, an entry for each state of an instant"
    HISTORY = "Parquet files and manifests, a row for each instant"


class LogFileAssignment(Enum):
    """How the log files of a file group belong to its slices."""

    BY_LOG_NAME = "a log file's name holds the base instant of its slice"
    BY_COMPLETION = "a log file belongs to the newest base file requested before its write completed"


class LogFormat(Enum):
    """The format of new log files; readers know both, and both may be in one file slice."""

    INLINE = "blocks of a format of Hudi's own, several in a file"
    NATIVE = "data, deletes or change images in a file each, of the format of base files"


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """How a timeline is stored.

    Attributes:
        number: as stored in `hoodie.timeline.layout.version`.
        has_completion_times: whether the names of completed instants hold completion times. Ranges of
            instants are in these, in requested times otherwise.
        pending_clustering_action: the action that a pending clustering is called by in file names.
        commit_encoding: of the content of completed writes; plans are Avro in all layouts.
        archive_format: of the archived timeline.
        path_key: property with the folder of the active timeline below `.hoodie`; None where that folder
            is `.hoodie` itself.
        history_key, history_default: property with the folder of the archive below that of the timeline,
            and its value where it is not stored.
        suffixes_times: whether a metadata table names what it does by itself after an instant, with a suffix
            (`metadata.instant_times`); it takes new times otherwise.
    """

    number: int
    has_completion_times: bool
    pending_clustering_action: Action
    commit_encoding: CommitEncoding
    archive_format: ArchiveFormat
    path_key: str | None
    history_key: str
    history_default: str
    suffixes_times: bool

    @property
    def has_own_clustering_action(self) -> bool:
        """Whether the name of a pending clustering differs from that of a pending overwrite."""
        return self.pending_clustering_action is Action.CLUSTERING

    def folder(self, path: str) -> str:
        """Return the folder of the active timeline, relative to the table.

        Args:
            path: what `path_key` says, or its default.
        """
        return ".hoodie" if self.path_key is None else f".hoodie/{path}"

    def word(self, action: Action) -> str:
        """Return what an action is called in file names."""
        return (self.pending_clustering_action if action is Action.CLUSTERING else action).value


@dataclass(frozen=True, slots=True)
class VersionRules:
    """What a table version prescribes.

    Attributes:
        number: as stored in `hoodie.table.version`.
        layout: of the timeline.
        is_writable: whether this release writes tables of the version, or only reads them.
        log_file_assignment: how log files belong to slices.
        names_logs_by_slice: whether a log file is named by the base instant of its slice, so that several
            writes may put blocks into it; otherwise it is named by the one write that made it.
        log_format: format of new log files.
        base_formats: formats of base files that its readers know, and that this release writes.
        log_marker: type of the marker that precedes a log file, `APPEND` or `CREATE`.
        appends_rollbacks: whether log records of a failed write are taken back by command blocks in further
            log files; otherwise its log files are deleted.
        has_partial_blocks: whether readers know log blocks with some of the columns.
        has_positions: whether readers know which base file the record positions of a log block are of.
        has_log_only_plans: whether readers know compaction plans that leave log files (hybrid compaction).
        ambiguous_partition: name of a partition folder that stands for null, for the empty text and for
            itself; None where null has a name of its own.
        prefixes_single_keys: whether a COMPLEX key generator always puts the column's name before a key of
            one column; otherwise a setting says whether it does.
        stores_partition_types: whether partition columns are stored with their types (`column:TYPE`).
        stores_merge_mode: whether merge mode and strategy id say how records merge, before a payload class.
        stores_payload_class: whether a new table stores its payload class and strategy id.
        has_merge_properties: whether a partial update mode and merge properties say more about merging.
        stores_precombine_field: whether the ordering columns are also stored as
            `hoodie.table.precombine.field`.
        stores_initial_version: whether a new table stores the version that it was made with.
        stores_bootstrap_index_type: whether the bootstrap index is stored by type; by class otherwise.
        archive_folder: what a new table stores as `hoodie.archivelog.folder`.
        always_stored: properties besides name, type and version that a whole properties file has.
        has_index_versions: whether definitions of indexes say the version of each.
        stores_meta_fields_mode: whether a mode says which meta columns records have, besides a flag.
        has_all_indexes: whether the metadata table may have statistics of partitions, secondary indexes,
            expression indexes and record indexes of each partition.
    """

    number: int
    layout: TimelineLayout
    is_writable: bool
    log_file_assignment: LogFileAssignment
    names_logs_by_slice: bool
    log_format: LogFormat
    base_formats: tuple[str, ...]
    log_marker: str
    appends_rollbacks: bool
    has_partial_blocks: bool
    has_positions: bool
    has_log_only_plans: bool
    ambiguous_partition: str | None
    prefixes_single_keys: bool
    stores_partition_types: bool
    stores_merge_mode: bool
    stores_payload_class: bool
    has_merge_properties: bool
    stores_precombine_field: bool
    stores_initial_version: bool
    stores_bootstrap_index_type: bool
    archive_folder: str
    always_stored: tuple[str, ...]
    has_index_versions: bool
    stores_meta_fields_mode: bool
    has_all_indexes: bool


LAYOUT_1: Final = TimelineLayout(
    number=1,
    has_completion_times=False,
    pending_clustering_action=Action.REPLACE_COMMIT,
    commit_encoding=CommitEncoding.JSON,
    archive_format=ArchiveFormat.LOG_FILES,
    path_key=None,
    history_key="hoodie.archivelog.folder",
    history_default="archived",
    suffixes_times=True,
)

LAYOUT_2: Final = TimelineLayout(
    number=2,
    has_completion_times=True,
    pending_clustering_action=Action.CLUSTERING,
    commit_encoding=CommitEncoding.AVRO,
    archive_format=ArchiveFormat.HISTORY,
    path_key="hoodie.timeline.path",
    history_key="hoodie.timeline.history.path",
    history_default="history",
    suffixes_times=False,
)

LAYOUTS: Final = (LAYOUT_1, LAYOUT_2)

_VERSION_6: Final = VersionRules(
    number=6,
    layout=LAYOUT_1,
    is_writable=True,
    log_file_assignment=LogFileAssignment.BY_LOG_NAME,
    names_logs_by_slice=True,
    log_format=LogFormat.INLINE,
    base_formats=("PARQUET", "ORC"),
    log_marker="APPEND",
    appends_rollbacks=True,
    has_partial_blocks=False,
    has_positions=False,
    has_log_only_plans=False,
    ambiguous_partition=None,
    prefixes_single_keys=False,
    stores_partition_types=False,
    stores_merge_mode=False,
    stores_payload_class=True,
    has_merge_properties=False,
    stores_precombine_field=True,
    stores_initial_version=False,
    stores_bootstrap_index_type=False,
    archive_folder="archived",
    always_stored=(),
    has_index_versions=False,
    stores_meta_fields_mode=False,
    has_all_indexes=False,
)

_VERSION_8: Final = VersionRules(
    number=8,
    layout=LAYOUT_2,
    is_writable=True,
    log_file_assignment=LogFileAssignment.BY_COMPLETION,
    names_logs_by_slice=False,
    log_format=LogFormat.INLINE,
    base_formats=("PARQUET", "ORC", "LANCE"),
    log_marker="CREATE",
    appends_rollbacks=False,
    has_partial_blocks=True,
    has_positions=True,
    has_log_only_plans=True,
    ambiguous_partition=None,
    prefixes_single_keys=False,
    stores_partition_types=True,
    stores_merge_mode=True,
    stores_payload_class=True,
    has_merge_properties=False,
    stores_precombine_field=True,
    stores_initial_version=True,
    stores_bootstrap_index_type=True,
    archive_folder="history",
    always_stored=("hoodie.record.merge.mode", "hoodie.timeline.path"),
    has_index_versions=False,
    stores_meta_fields_mode=False,
    has_all_indexes=True,
)

_VERSION_9: Final = replace(
    _VERSION_8,
    number=9,
    prefixes_single_keys=True,
    stores_payload_class=False,
    has_merge_properties=True,
    stores_precombine_field=False,
    has_index_versions=True,
)

_VERSION_10: Final = replace(_VERSION_9, number=10, log_format=LogFormat.NATIVE, stores_meta_fields_mode=True)

_VERSION_5: Final = replace(_VERSION_6, number=5, is_writable=False)
_VERSION_4: Final = replace(_VERSION_5, number=4, ambiguous_partition="default")

VERSION_RULES: Final[Mapping[int, VersionRules]] = {
    2: replace(_VERSION_4, number=2),
    3: replace(_VERSION_4, number=3),
    4: _VERSION_4,
    5: _VERSION_5,
    6: _VERSION_6,
    8: _VERSION_8,
    9: _VERSION_9,
    10: _VERSION_10,
}
"""The rules by version number, of every version that this release reads."""

WRITABLE_VERSIONS: Final = tuple(
    number for number, rules in sorted(VERSION_RULES.items()) if rules.is_writable
)
"""The versions that a table can have, lowest first, in order to be written to."""

NEWEST_VERSION: Final = WRITABLE_VERSIONS[-1]

DEFAULT_VERSION: Final = 9
"""The version of a new table for which none is chosen: the newest one that a release of Apache Hudi reads."""

VERSIONS_WITH_SHARED_LOGS: Final = frozenset(
    str(number) for number in WRITABLE_VERSIONS if VERSION_RULES[number].names_logs_by_slice
)
"""Versions, as properties have them, whose log files may hold blocks of several writes."""


def writable_rules(version: int) -> VersionRules | None:
    """Return the rules of a version that this release writes, None for any other."""
    rules = VERSION_RULES.get(version)
    return rules if rules is not None and rules.is_writable else None
