"""Options of reads that drawstring carries out."""

from __future__ import annotations

from typing import Final

from drawstring.config.option import Kind, Option, Scope

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
        "Start of an incremental query, exclusive: an instant, or earliest.",
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
