"""Options of reads that drawstring carries out."""

from __future__ import annotations

from typing import Final

from drawstring.config.options.option import Kind, Option, Scope

READ_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.datasource.query.type",
        "What to read: all records as of now, base files only, or what changed.",
        Scope.READ,
        default="snapshot",
        choices=("snapshot", "read_optimized", "incremental"),
        field="query_type",
    ),
    Option(
        "as.of.instant",
        "Read the table as it was at an instant, a date or a date and time.",
        Scope.READ,
        alternatives=("drawstring.as_of",),
        field="as_of",
    ),
    Option(
        "hoodie.datasource.read.begin.instanttime",
        "Start of an incremental query, exclusive: an instant, or earliest. With an end alone, the newest"
        " commit up to it.",
        Scope.READ,
        alternatives=("hoodie.datasource.read.begin.time", "drawstring.begin"),
        field="begin",
    ),
    Option(
        "hoodie.datasource.read.end.instanttime",
        "End of an incremental query, inclusive; the newest commit when not given.",
        Scope.READ,
        alternatives=("hoodie.datasource.read.end.time", "drawstring.end"),
        field="end",
    ),
    Option(
        "drawstring.include_start",
        "Whether commits of the very start of an incremental query are in it.",
        Scope.READ,
        Kind.FLAG,
        default=False,
        field="include_start",
    ),
    Option(
        "hoodie.datasource.query.incremental.format",
        "What an incremental query returns: rows as the range left them, or every change with the record"
        " before and after it as JSON (columns op, ts_ms, before, after).",
        Scope.READ,
        default="latest_state",
        choices=("latest_state", "cdc"),
        field="incremental_format",
    ),
    Option(
        "hoodie.read.timeline.holes.resolution.policy",
        "In table version 6, what an incremental query does about a pending write before completed ones: an"
        " error, stop before it, or take the range in modification times.",
        Scope.READ,
        default="FAIL",
        choices=("FAIL", "BLOCK", "USE_TRANSITION_TIME"),
        field="holes",
    ),
    Option(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        "Whether an incremental query reads the whole table by commit times when commits of its range were"
        " archived or their files cleaned away.",
        Scope.READ,
        Kind.FLAG,
        default=True,
        field="full_scan",
    ),
    Option(
        "hoodie.datasource.streaming.startoffset",
        "Where a new stream starts: earliest (all that the table holds, then what is new), latest, or an"
        " instant, exclusive. A restarted one goes on from its checkpoint.",
        Scope.READ,
        default="earliest",
        field="start_offset",
    ),
    Option(
        "drawstring.streaming.max_commits",
        "Most commits in a micro-batch.",
        Scope.READ,
        Kind.NUMBER,
        field="max_commits",
    ),
    Option(
        "drawstring.streaming.max_bytes",
        "Most bytes that the commits of a micro-batch wrote; one commit is in it in any case.",
        Scope.READ,
        Kind.NUMBER,
        field="max_bytes",
    ),
    Option(
        "drawstring.streaming.on_cleaned",
        "What a stream does when commits after its checkpoint were archived or cleaned away: end in an error,"
        " go on with the whole table, or with the earliest commit that can be read.",
        Scope.READ,
        default="fail",
        choices=("fail", "snapshot", "earliest"),
        field="on_cleaned",
    ),
    Option(
        "drawstring.streaming.hold",
        "Name of a hold that moves on with the stream: drawstring's cleaning and archiving leave what it has"
        " not seen alone.",
        Scope.READ,
        field="hold",
    ),
    Option(
        "drawstring.streaming.hold_hours",
        "Hours after which the hold of a stream ends that does not come back.",
        Scope.READ,
        Kind.NUMBER,
        default=24,
        field="hold_hours",
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
        "SQL predicate of the rows to read.",
        Scope.READ,
        field="where",
    ),
)
