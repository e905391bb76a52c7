"""The state of a table as one load sees it: the input to every plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, DrawstringError, MissingFileError, UnavailableError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.file_groups import FileGroupView, table_view
from drawstring.schema.meta import with_meta
from drawstring.storage.protocol import Storage
from drawstring.timeline.change_detection import LOOKS_MAX
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.table_schema import table_schema
from drawstring.timeline.timeline import Timeline


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
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    store: TimelineStore
    view: FileGroupView
    schema: pa.Schema

    @property
    def full_schema(self) -> pa.Schema:
        """The columns that a query sees: meta columns first, if the table has them."""
        return with_meta(self.schema) if self.config.populate_meta_fields else self.schema

    def as_of(self, requested: str) -> TableFacts:
        """Return this state with the schema that the table had at a requested time."""
        schema = table_schema(self.storage, self.store, self.timeline, self.config, requested)
        return replace(self, schema=schema)


def load_facts(storage: Storage, clock: Clock) -> TableFacts:
    """Load the state of a table.

    Args:
        storage: storage of the table.
        clock: generates instant times for later actions.

    Raises:
        InvalidError: there is no table.
        CorruptTableError: its properties or timeline are damaged.
        UnavailableError: the table changed during every attempt to load it.
    """
    try:
        return _load(storage, clock)
    except DrawstringError as error:
        raise error.at(table=storage.spec.uri) from error


def _load(storage: Storage, clock: Clock) -> TableFacts:
    """Load a table; load it again if a timeline file was archived meanwhile."""
    missing: str | None = None
    for _ in range(LOOKS_MAX):
        try:
            config, store, timeline = _load_timeline(storage, clock)
            schema = table_schema(storage, store, timeline, config)
        except ConflictError:
            continue  # the table version changed just now
        except MissingFileError as error:
            if error.path == missing:
                raise
            missing = error.path
            continue
        view = table_view(storage, config, timeline, store)
        return TableFacts(storage, config, timeline, store, view, schema)
    raise UnavailableError("The table changed during every attempt to load it. Try again.")


def _load_timeline(storage: Storage, clock: Clock) -> tuple[TableConfig, TimelineStore, Timeline]:
    config = load_config(storage)
    store = TimelineStore(storage, config, clock)
    return config, store, store.load()
