"""The options of a read as typed fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from drawstring.base.errors import InvalidError
from drawstring.config.keys.read import (
    BEGIN,
    DATA_SKIPPING,
    END,
    METADATA_ENABLE,
    QUERY_TYPE,
    READ_OPTIONS,
    USE_POSITIONS,
)
from drawstring.config.options.option import Given, Scope
from drawstring.config.options.registry import OPTION_OF_KEY, check_names, fields_of, parse_options


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The parsed options of a read.

    Attributes:
        query_type: `snapshot`, `read_optimized` or `incremental`.
        as_of: instant, date or date and time of a time travel query, None for the latest records.
        begin, end: range of an incremental query, exclusive and inclusive.
        include_start: whether `begin` is inclusive.
        incremental_format: `latest_state` or `cdc`.
        holes: `FAIL`, `BLOCK` or `USE_TRANSITION_TIME`.
        full_scan: whether an incremental query may fall back to a full table scan.
        path_glob: pattern of the paths that an incremental query reads; empty for all.
        values_from_paths: whether the values of partition columns come from paths only.
        start_offset: where a new stream starts.
        max_commits, max_bytes: bounds of a micro-batch, None for no bound.
        on_cleaned: `fail`, `snapshot` or `earliest`.
        hold, hold_hours: name of a stream's hold, None for none, and hours until it expires.
        columns: columns to read, None for all.
        where: SQL predicate, None for all rows.
        uses_metadata: whether the metadata table is read instead of listing the storage.
        skips_data: whether the metadata table, if it is read, rules out files.
        merges_by_position: whether log records are merged by their positions in base files.
    """

    query_type: str
    as_of: str | None
    begin: str | None
    end: str | None
    include_start: bool
    incremental_format: str
    holes: str
    full_scan: bool
    path_glob: str
    values_from_paths: bool
    start_offset: str
    max_commits: int | None
    max_bytes: int | None
    on_cleaned: str
    hold: str | None
    hold_hours: int
    columns: tuple[str, ...] | None
    where: str | None
    uses_metadata: bool
    skips_data: bool
    merges_by_position: bool

    @property
    def of_table(self) -> Mapping[str, bool]:
        """The options with which the table is opened; see `table_options`."""
        return {
            METADATA_ENABLE: self.uses_metadata,
            DATA_SKIPPING: self.skips_data,
            USE_POSITIONS: self.merges_by_position,
        }

    @property
    def is_cdc(self) -> bool:
        """Whether the read returns changes (CDC), rather than rows."""
        return self.incremental_format == "cdc"

    @classmethod
    def parse(cls, given: Given) -> Self:
        """Parse options under Hudi's keys.

        Args:
            given: texts or Python values by key.

        Raises:
            InvalidError: a key is unknown, a value is not valid, or options contradict each other.
            UnsupportedError: a value is not supported by this release.
        """
        fields = fields_of(READ_OPTIONS, parse_options(given, Scope.READ))
        only_base = fields.pop("as_read_optimized")
        if only_base is not None:
            fields["query_type"] = "read_optimized" if only_base else "snapshot"
        options = cls(**fields)
        _check_read(options)
        return options


def options_in_session(session: Given, given: Given) -> ReadOptions:
    """Parse the options of a read in a session that has settings of its own.

    As in Hudi, a range that the session sets counts only if the query is incremental.

    Args:
        session: the settings, by Hudi's keys.
        given: the options of the read, which win over the settings.

    Raises:
        InvalidError: as of `ReadOptions.parse`.
        UnsupportedError: as of `ReadOptions.parse`.
    """
    options = {**session, **{key.lower(): value for key, value in given.items()}}
    query_type = parse_options(options, Scope.READ).get(OPTION_OF_KEY[QUERY_TYPE])
    if query_type is None or query_type[1] != "incremental":
        idle = {key for name in (BEGIN, END) for key in OPTION_OF_KEY[name].keys if key in session}
        options = {key: value for key, value in options.items() if key not in idle}
    return ReadOptions.parse(options)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of queries with which a table is opened.

    Attributes:
        uses_metadata: whether the metadata table is read instead of listing the storage.
        skips_data: whether the metadata table, if it is read, rules out files.
        merges_by_position: whether queries merge log records by their positions in base files.
    """

    uses_metadata: bool
    skips_data: bool
    merges_by_position: bool


def table_options(given: Given) -> TableOptions:
    """Parse the options of queries among those with which a table is opened.

    Args:
        given: texts or Python values by key.

    Raises:
        InvalidError: an option is unknown, or belongs to single queries.
    """
    parsed = parse_options(given, Scope.READ)
    check_names(given, takes_metadata=False)
    of_table = (METADATA_ENABLE, DATA_SKIPPING, USE_POSITIONS)
    others = [key for option, (key, _) in parsed.items() if option.key not in of_table]
    if others:
        raise InvalidError(
            f"{others[0]} cannot be given when a table is opened, only {', '.join(of_table)} can. Give it"
            " to the query."
        )
    fields = fields_of(READ_OPTIONS, parsed)
    return TableOptions(
        *(bool(fields[name]) for name in ("uses_metadata", "skips_data", "merges_by_position"))
    )


def _check_read(options: ReadOptions) -> None:
    incremental = options.query_type == "incremental"
    if incremental and options.as_of:
        raise InvalidError(
            "as.of.instant cannot be used with an incremental query. Set the end of the query instead."
        )
    if not incremental and (options.begin or options.end):
        raise InvalidError(
            f"Begin and end times cannot be used with a {options.query_type} query. Set "
            "hoodie.datasource.query.type=incremental, or drop them."
        )

    if incremental and options.is_cdc and (options.columns or options.where):
        raise InvalidError(
            "A change query (CDC) has columns of its own. Drop drawstring.columns and drawstring.where."
        )
