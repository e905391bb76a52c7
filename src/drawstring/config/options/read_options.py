"""Options of one read as typed fields, parsed once at the edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from drawstring.base.errors import InvalidError
from drawstring.config.keys.read import READ_OPTIONS
from drawstring.config.options.option import Given, Scope
from drawstring.config.options.registry import fields_of, parse_options


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a read was told.

    Attributes:
        query_type: `snapshot`, `read_optimized` or `incremental`.
        as_of: instant, date or date-time of a time travel, None for now.
        begin, end: of an incremental query, exclusive and inclusive.
        include_start: whether `begin` is inclusive.
        incremental_format: `latest_state` or `cdc`.
        holes: `FAIL`, `BLOCK` or `USE_TRANSITION_TIME`.
        full_scan: whether an incremental query may read the whole table.
        start_offset: where a new stream starts.
        max_commits, max_bytes: of a micro-batch, None for no bound.
        on_cleaned: `fail`, `snapshot` or `earliest`.
        hold, hold_hours: name of a stream's hold, None for none, and how long it lasts.
        columns: columns to read, None for all.
        where: SQL predicate, None for all rows.
    """

    query_type: str
    as_of: str | None
    begin: str | None
    end: str | None
    include_start: bool
    incremental_format: str
    holes: str
    full_scan: bool
    start_offset: str
    max_commits: int | None
    max_bytes: int | None
    on_cleaned: str
    hold: str | None
    hold_hours: int
    columns: tuple[str, ...] | None
    where: str | None

    @property
    def is_cdc(self) -> bool:
        """Whether changes are asked for, rather than rows."""
        return self.incremental_format == "cdc"

    @classmethod
    def parse(cls, given: Given) -> Self:
        """Return the options that texts (or Python values) under Hudi's keys say.

        Raises:
            InvalidError: an unknown key, a value that makes no sense, or a contradiction.
            UnsupportedError: something that this release does not carry out.
        """
        options = cls(**fields_of(READ_OPTIONS, parse_options(given, Scope.READ)))
        _check_read(options)
        return options


def _check_read(options: ReadOptions) -> None:
    incremental = options.query_type == "incremental"
    if incremental and options.as_of:
        raise InvalidError("as.of.instant does not go with an incremental query: set its end instead")
    if not incremental and (options.begin or options.end):
        raise InvalidError(
            f"begin and end times do not go with a {options.query_type} query: set "
            "hoodie.datasource.query.type=incremental, or leave them out"
        )

    if incremental and options.is_cdc and (options.columns or options.where):
        raise InvalidError(
            "a change query has columns of its own: leave out drawstring.columns and drawstring.where"
        )
