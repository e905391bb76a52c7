"""Load the state of a table for queries, check that it is readable, and find the table of an address.

`load_facts` returns the state of a table as one load sees it. `check_readable` checks that this release can
read the data files. `table_above` finds the table of an address: the address is its root, a partition
folder in it, or a pattern of these. `table_summary` returns what notebooks and terminals show of a table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa

from drawstring.base.clock import Clock
from drawstring.base.errors import (
    ConflictError,
    DrawstringError,
    MissingFileError,
    NoTableError,
    UnavailableError,
    UnsupportedError,
)
from drawstring.base.text_format import Grid
from drawstring.config.table_config import KeyGeneratorType, TableConfig
from drawstring.filegroups.file_system_view import FileGroupView, table_view
from drawstring.metadata.file_listing import MetadataListing, listing_by_metadata
from drawstring.metadata.table import MetadataTable
from drawstring.model.partition_scope import PartitionScope, is_pattern
from drawstring.schema.fields import stored_columns
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.timeline.change_detection import ATTEMPTS_MAX
from drawstring.timeline.properties import PROPERTIES_PATH, load_config
from drawstring.timeline.schema import check_timeline, table_schema, with_history
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableContext


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The state of a table as one load sees it.

    Attributes:
        storage: storage of the table.
        config: table configuration (hoodie.properties).
        timeline: the active timeline.
        store: reads and changes the timeline.
        view: the file groups.
        schema: the columns without meta columns.
        uses_metadata: whether the file groups come from the metadata table, if there is one.
        skips_data: whether queries use the other partitions of the metadata table.
        scope: the partitions that queries read; None for all.
        merges_by_position: whether queries merge log records by position, if all of a slice have them.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    store: TimelineStore
    view: FileGroupView
    schema: pa.Schema
    uses_metadata: bool = True
    skips_data: bool = True
    scope: PartitionScope | None = None
    merges_by_position: bool = False

    @property
    def metadata(self) -> MetadataTable | None:
        """The metadata table, if queries skip data by it and it knows every write."""
        listing = self.view.listing
        return listing.metadata if self.skips_data and isinstance(listing, MetadataListing) else None

    @property
    def listing(self) -> str:
        """Where names of files come from: `storage` or `metadata table`."""
        listing = self.view.listing
        by_metadata = isinstance(listing, MetadataListing) and listing.metadata is not None
        return "metadata table" if by_metadata else "storage"

    @property
    def full_schema(self) -> pa.Schema:
        """The columns that a query sees: meta columns first, if the table has them."""
        return stored_columns(self.schema, has_meta=self.config.populate_meta_fields)

    def scoped(self, paths: Sequence[str]) -> Sequence[str]:
        """Return those of some partitions that queries read."""
        return paths if self.scope is None else self.scope.of(paths)

    def as_of(self, requested: str) -> TableFacts:
        """Return this state with the schema that the table had at a requested time."""
        schema = table_schema(self.storage, self.store, self.timeline, self.config, requested)
        config = with_history(self.config, self.storage, self.store, self.timeline, requested)
        return replace(self, schema=schema, config=config)


def load_facts(
    storage: Storage,
    clock: Clock,
    uses_metadata: bool = True,
    skips_data: bool = True,
    scope: PartitionScope | None = None,
) -> TableFacts:
    """Load the state of a table.

    Args:
        storage: storage of the table.
        clock: generates instant times for later actions.
        uses_metadata: whether to list files by the metadata table, if there is one, instead of the storage.
        skips_data: whether to skip files by the metadata table, if files are listed by it.
        scope: the partitions that queries read; None for all.

    Raises:
        InvalidError: there is no table.
        CorruptTableError: its properties or timeline are damaged.
        UnavailableError: the table changed during every attempt to load it.
    """
    try:
        return replace(_load(storage, clock, uses_metadata, skips_data), scope=scope)
    except DrawstringError as error:
        raise error.at(table=storage.spec.uri) from error


def facts_of(context: TableContext) -> TableFacts:
    """Load the state of an open table for queries; see `load_facts`."""
    facts = load_facts(
        context.storage, context.clock, context.uses_metadata, context.skips_data, context.scope
    )
    return replace(facts, merges_by_position=context.merges_by_position)


def _load(storage: Storage, clock: Clock, uses_metadata: bool, skips_data: bool) -> TableFacts:
    """Load a table; load it again if a timeline file was archived meanwhile."""
    missing: str | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            config, store, timeline = _load_timeline(storage, clock)
            check_timeline(storage, config, timeline)
            schema = table_schema(storage, store, timeline, config)
            config = with_history(config, storage, store, timeline)
        except ConflictError:
            continue  # the table version changed just now
        except MissingFileError as error:
            if error.path == missing:
                raise
            missing = error.path
            continue
        listing = listing_by_metadata(storage, config, timeline, clock) if uses_metadata else None
        view = table_view(storage, config, timeline, store, listing)
        return TableFacts(storage, config, timeline, store, view, schema, uses_metadata, skips_data)
    raise UnavailableError("The table changed during every attempt to load it. Try again.")


def _load_timeline(storage: Storage, clock: Clock) -> tuple[TableConfig, TimelineStore, Timeline]:
    config = load_config(storage)
    store = TimelineStore(storage, config, clock)
    return config, store, store.load()


def scoped_paths(facts: TableFacts) -> Sequence[str]:
    """Return the partitions that queries read.

    Raises:
        NoTableError: the address of the read names no partition of the table.
    """
    paths = facts.view.partitions()
    scoped = facts.scoped(paths)
    if facts.scope is None or scoped:
        return scoped
    known = f"for example {paths[0]}" if any(paths) else "the table is not partitioned"
    raise NoTableError(
        f"No partition of the table is at {facts.scope.pattern} ({known}). Read the table by its root, or"
        " correct the path.",
        table=facts.storage.spec.uri,
    )


_BASE_FILE_FORMATS = ("PARQUET", "ORC", "HFILE", "LANCE")


def check_readable(config: TableConfig) -> None:
    """Check that this release can read the data files of a table.

    Raises:
        UnsupportedError: it cannot; the error names the feature.
    """
    if config.base_file_format not in _BASE_FILE_FORMATS:
        raise UnsupportedError(
            f"The table has {config.base_file_format} base files, which this release cannot read. It reads"
            f" {', '.join(_BASE_FILE_FORMATS)}."
        )


def visible_schema(facts: TableFacts) -> pa.Schema:
    """Return the columns of a query's rows.

    They differ from the columns of the files in two cases: when the files lack the partition columns, these
    follow at the end as strings; when the key generator is timestamp-based, the column that it formats is a
    string.

    Args:
        facts: the table.

    Raises:
        UnsupportedError: a timestamp-based key generator formats a column that is neither string nor integer.
    """
    schema, config = facts.full_schema, facts.config
    if config.path_generator is KeyGeneratorType.TIMESTAMP:
        for field in schema:
            kind = field.type
            if field.name in config.partition_fields and not _can_be_shown(kind):
                raise UnsupportedError(
                    f"This release cannot read column {field.name} of type {kind} under a timestamp-based key"
                    " generator. It reads strings and integers."
                )
    return with_shown_columns(schema, config)


def _can_be_shown(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


def with_shown_columns(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    """Return the columns that a query shows for stored columns; see `visible_schema`."""
    if config.drop_partition_columns:
        missing = [name for name in config.partition_fields if name not in schema.names]
        return pa.schema([*schema, *(pa.field(name, pa.string()) for name in missing)])
    if config.path_generator is KeyGeneratorType.TIMESTAMP:
        texts = {name: pa.field(name, pa.string()) for name in config.partition_fields}
        return pa.schema([texts.get(field.name, field) for field in schema])
    return schema


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table, and the partitions of it that an address names.

    Attributes:
        storage: storage of the table.
        scope: the partitions.
    """

    storage: Storage
    scope: PartitionScope


def table_above(uri: str, options: Mapping[str, str] | None) -> TablePlace | None:
    """Return the table that an address is in, None if there is none above it.

    Args:
        uri: an address at which there is no table.
        options: options of the object store.
    """
    for root, below in _folders_above(uri):
        if is_pattern(root):
            continue
        try:
            storage = open_storage(root, options)
            is_table = storage.exists(PROPERTIES_PATH)
        except (DrawstringError, OSError):
            return None  # above the bucket, or not for this user to look at
        if is_table:
            return TablePlace(storage, PartitionScope(below))
    return None


def _folders_above(uri: str) -> Iterator[tuple[str, str]]:
    """Yield the folders above an address, and the rest of the address below each."""
    scheme, separator, path = uri.partition("://")
    if not separator:
        scheme, path = "", uri if uri.startswith("file:") else os.path.abspath(uri)
    is_uri = scheme == "file" or path.startswith("file:")
    folder, below = path.rstrip("/"), ""
    while "/" in folder:
        folder, _, name = folder.rpartition("/")
        below = f"{unquote(name) if is_uri else name}/{below}".rstrip("/")
        if folder.strip("/"):
            yield f"{scheme}{separator}{folder}", below


def table_summary(context: TableContext) -> Grid:
    """Return the settings, columns and last write of a table; reads properties and timeline only.

    Args:
        context: the table.
    """
    facts = load_facts(context.storage, context.clock, context.uses_metadata)
    config, writes = facts.config, facts.timeline.writes()
    columns = (f"{each.name} {each.type}" for each in with_shown_columns(facts.schema, config))
    last = f"{writes[-1].action} {writes[-1].requested}" if writes else "none"
    pending = len(facts.timeline.pending())
    order = ", files sorted by record key" if config.has_sorted_files else ""
    rows = (
        ("type", f"{config.table_type}, version {config.version}{order}"),
        ("record key", ", ".join(config.record_key_fields) or "none"),
        ("partitioned by", ", ".join(config.partition_fields) or "nothing"),
        ("ordering", ", ".join(config.ordering_fields) or "none"),
        ("columns", ", ".join(columns)),
        ("commits", f"{len(writes):,} in the active timeline" + (f", {pending} pending" if pending else "")),
        ("last commit", last),
    )
    return Grid(f"Table {config.name} at {context.storage.spec.uri}", (), rows)
