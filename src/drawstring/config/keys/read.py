"""Define the options of reads and of the storage.

The options of the storage are given when a table is opened; they apply to all operations on the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.config.options.option import Kind, Option, Scope, text_of

METADATA_ENABLE: Final = "hoodie.metadata.enable"
DATA_SKIPPING: Final = "hoodie.enable.data.skipping"
USE_POSITIONS: Final = "hoodie.merge.use.record.positions"
QUERY_TYPE: Final = "hoodie.datasource.query.type"
QUERY_AS_RO: Final = "hoodie.query.as.ro.table"
BEGIN: Final = "hoodie.datasource.read.begin.instanttime"
END: Final = "hoodie.datasource.read.end.instanttime"
VALUES_FROM_PATHS: Final = "hoodie.datasource.read.extract.partition.values.from.path"
PATH_GLOB: Final = "hoodie.datasource.read.incr.path.glob"

READ_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        QUERY_TYPE,
        "What to read: the latest records, only the base files, or the changes of a range of commits.",
        Scope.READ,
        default="snapshot",
        choices=("snapshot", "read_optimized", "incremental"),
        spellings=(("realtime", "snapshot"),),
        alternatives=("hoodie.datasource.view.type",),
        field="query_type",
    ),
    Option(
        QUERY_AS_RO,
        "Whether to read only the base files: the query type read_optimized if true, snapshot if false. It is"
        " for tables of catalogs; given, it wins over the query type.",
        Scope.READ,
        Kind.FLAG,
        field="as_read_optimized",
    ),
    Option(
        "as.of.instant",
        "Time travel: read the table as of an instant, a date, or a date and time.",
        Scope.READ,
        alternatives=("drawstring.as_of",),
        field="as_of",
    ),
    Option(
        BEGIN,
        "Start of an incremental query, exclusive: an instant, or earliest. If only the end is given, the"
        " query returns the newest commit up to it.",
        Scope.READ,
        alternatives=("hoodie.datasource.read.begin.time", "drawstring.begin"),
        field="begin",
    ),
    Option(
        END,
        "End of an incremental query, inclusive; the newest commit when not given.",
        Scope.READ,
        alternatives=("hoodie.datasource.read.end.time", "drawstring.end"),
        field="end",
    ),
    Option(
        "drawstring.include_start",
        "Whether the start of an incremental query is inclusive.",
        Scope.READ,
        Kind.FLAG,
        default=False,
        field="include_start",
    ),
    Option(
        "hoodie.datasource.query.incremental.format",
        "What an incremental query returns: the changed rows as of the end of the range, or every change with"
        " the record before and after it as JSON (columns op, ts_ms, before, after).",
        Scope.READ,
        default="latest_state",
        choices=("latest_state", "cdc"),
        field="incremental_format",
    ),
    Option(
        "hoodie.read.timeline.holes.resolution.policy",
        "In table version 6, what an incremental query does if a pending write precedes completed ones: fail,"
        " stop before it, or use modification times for the range.",
        Scope.READ,
        default="FAIL",
        choices=("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
        field="holes",
    ),
    Option(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        "Whether an incremental query scans the whole table, filtering by commit time, if commits of its"
        " range are archived or their files were cleaned.",
        Scope.READ,
        Kind.FLAG,
        default=True,
        field="full_scan",
    ),
    Option(
        PATH_GLOB,
        "Which files an incremental query reads: a pattern of the end of their paths, as in /year=2026/*/*;"
        " * stands for any text, also across folders. The pattern is compared with the whole address of a"
        " file. If a folder above the table could match, begin the pattern with the name of the table's"
        " folder. All files when empty.",
        Scope.READ,
        default="",
        field="path_glob",
    ),
    Option(
        VALUES_FROM_PATHS,
        "Whether values of partition columns come from the paths of files. They always do if the paths have"
        " them; true is refused for a column that a key generator formats as a date.",
        Scope.READ,
        Kind.FLAG,
        default=False,
        field="values_from_paths",
    ),
    Option(
        "hoodie.datasource.streaming.startoffset",
        "Where a new stream starts: earliest (the whole table, then new commits), latest, or an instant,"
        " exclusive. A restarted stream continues from its checkpoint.",
        Scope.READ,
        default="earliest",
        field="start_offset",
    ),
    Option(
        "drawstring.streaming.max_commits",
        "Largest number of commits in a micro-batch.",
        Scope.READ,
        Kind.NUMBER,
        field="max_commits",
    ),
    Option(
        "drawstring.streaming.max_bytes",
        "Largest number of bytes written by the commits of a micro-batch, which has at least one commit.",
        Scope.READ,
        Kind.NUMBER,
        field="max_bytes",
    ),
    Option(
        "drawstring.streaming.on_cleaned",
        "What a stream does if commits after its checkpoint are archived or their files were cleaned: fail,"
        " continue with the whole table, or with the earliest commit that can be read.",
        Scope.READ,
        default="fail",
        choices=("fail", "snapshot", "earliest"),
        field="on_cleaned",
    ),
    Option(
        "drawstring.streaming.hold",
        "Name of a hold that advances with the stream: drawstring's cleaning and archiving retain what the"
        " stream has not read yet.",
        Scope.READ,
        field="hold",
    ),
    Option(
        "drawstring.streaming.hold_hours",
        "Hours after which the hold of an inactive stream expires.",
        Scope.READ,
        Kind.NUMBER,
        default=24,
        field="hold_hours",
    ),
    Option(
        METADATA_ENABLE,
        "Whether the names of files come from the metadata table, instead of listing the storage, and a write"
        " builds one for a table that has none. If it is damaged or lacks a write, the"
        " storage is listed, with a warning. Given when a table is opened, it holds for queries, writes and"
        " services; given to a write or a service, for that one and what follows its commit. If it is false,"
        " writes keep a metadata table that is there.",
        Scope.READ,
        Kind.FLAG,
        default=True,
        field="uses_metadata",
        is_of_writes=True,
    ),
    Option(
        DATA_SKIPPING,
        "Whether queries that use the metadata table leave out partitions and files whose statistics and"
        " indexes in it rule the condition out.",
        Scope.READ,
        Kind.FLAG,
        default=True,
        field="skips_data",
    ),
    Option(
        USE_POSITIONS,
        "Whether queries find the rows that log files change by their positions in the base file, if all log"
        " files of a file group have these; otherwise by their record keys.",
        Scope.READ,
        Kind.FLAG,
        default=True,
        field="merges_by_position",
    ),
    Option(
        "drawstring.columns",
        "Columns to read; all when not given.",
        Scope.READ,
        Kind.LIST,
        field="columns",
    ),
    Option(
        "drawstring.where",
        "SQL predicate that selects the rows to read.",
        Scope.READ,
        field="where",
    ),
)


SYNC: Final = "drawstring.storage.sync"

STORAGE_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        SYNC,
        "Whether files and folders on local disks are flushed before a change is acknowledged, so that"
        " acknowledged changes survive a power cut. Without it writes are faster, but a power cut or a crash"
        " of the machine may damage the table beyond repair; the crash of a process never does.",
        scope=Scope.STORAGE,
        kind=Kind.FLAG,
        default=True,
    ),
)
_OPTIONS: Final = {key: option for option in STORAGE_OPTIONS for key in option.keys}


def is_storage_key(key: str) -> bool:
    """Return whether a key is one of these options, which are not passed to object stores."""
    return key.lower() in _OPTIONS


def is_synced(options: Mapping[str, object]) -> bool:
    """Return whether local files have to be flushed.

    Args:
        options: storage options; other keys are ignored.

    Raises:
        InvalidError: a value is neither true nor false.
    """
    for key, value in options.items():
        text = text_of(value) if key.lower() == SYNC else None
        if text is not None:
            return bool(_OPTIONS[SYNC].parse(key, text))
    return True
