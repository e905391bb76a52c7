"""Several tables, one after the other, each with its own options and checkpoint.

common options ── file of a table ── options of the call     the later ones win
PREFIX/database/table                                        root, unless the file of a table names one
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.ingestion.job import IngestResult, parse_ingest_options, properties_in

_PREFIXES: Final = ("hoodie.streamer.ingestion.", "hoodie.deltastreamer.ingestion.")


@dataclass(frozen=True, slots=True)
class TableIngest:
    """One of several tables that are ingested.

    Attributes:
        name: database and name, as in `default.rides`.
        uri: its root.
        options: options of its ingestion.
    """

    name: str
    uri: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """What became of a table.

    Attributes:
        table: the table.
        result: what was ingested; None after an error.
        error: what went wrong; the batches before it are in the table.
    """

    table: TableIngest
    result: IngestResult | None = None
    error: Exception | None = None


def tables_in(
    prefix: str, common: Mapping[str, Any], own: Mapping[str, Any], folder: str | None
) -> list[TableIngest]:
    """Return the tables that options name; none if one table is ingested.

    Args:
        prefix: folder or address of the roots.
        common: options of all tables.
        own: options that win over those in the files of the tables.
        folder: has the files that no option names, as `database_table_config.properties`.

    Raises:
        InvalidError: a table has no file, or two have the same root.
    """
    given = {**common, **own}
    names = parse_ingest_options(given).tables
    if not names:
        return []
    tables = [_table(prefix, name, given, own, folder) for name in names]
    roots = [each.uri for each in tables]
    twice = sorted({each for each in roots if roots.count(each) > 1})
    if twice:
        raise InvalidError(f"Several tables have the root {twice[0]}. Give each another one.")
    return tables


def ingest_each(
    tables: Sequence[TableIngest],
    run: Callable[[TableIngest], IngestResult],
    clock: Clock,
    pause_seconds: float | None = None,
) -> Iterator[IngestOutcome]:
    """Ingest into tables; an error of one does not stop the others.

    Args:
        tables: the tables.
        run: ingests into one until its source has nothing new.
        clock: sleeps.
        pause_seconds: after which all tables are looked at again, forever; None to end.
    """
    while True:
        for table in tables:
            try:
                yield IngestOutcome(table, run(table))
            except Exception as error:  # an error of any kind is one of this table
                yield IngestOutcome(table, error=error)
        if pause_seconds is None:
            return
        clock.sleep(pause_seconds)


def _table(
    prefix: str, name: str, given: Mapping[str, Any], own: Mapping[str, Any], folder: str | None
) -> TableIngest:
    database, _, plain = name.rpartition(".")
    database = database or "default"
    wanted = {f"{each}{database}.{plain}.configfile".lower() for each in _PREFIXES}
    file = next((str(value) for key, value in given.items() if key.lower() in wanted), None)
    if file is None and folder is not None:
        file = f"{folder.rstrip('/')}/{database}_{plain}_config.properties"
    if file is None:
        raise InvalidError(
            f"Table {name} has no options of its own. Set {_PREFIXES[0]}{database}.{plain}.configFile to a"
            " file, or name the folder of these files."
        )
    options = {**given, **properties_in(file), **own}
    root = parse_ingest_options(options).target_path or f"{prefix.rstrip('/')}/{database}/{plain}"
    kept = {key: value for key, value in options.items() if not key.lower().startswith(_PREFIXES)}
    return TableIngest(f"{database}.{plain}", root, kept)
