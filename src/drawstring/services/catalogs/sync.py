"""Tells catalogs about a table after a commit (`hoodie.datasource.hive_sync.*`).

    table ── description ──> create or alter in the catalog
    commits since last_commit_completion_time_sync ──> partitions to add
    none known, partitions dropped, or commits archived ──> all partitions compared

A commit stands, whatever becomes of the sync: a failure is told in the log, and the next one makes up for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from drawstring.base.errors import UnsupportedError
from drawstring.base.plugins import plugin_names
from drawstring.config.keys.ingest import CatalogSync
from drawstring.model.instant import time_of
from drawstring.query.planner import latest_slices
from drawstring.query.table_state import TableFacts, load_facts, visible_schema, with_shown_columns
from drawstring.schema.fields import without_meta
from drawstring.services.catalogs.protocol import GROUP, Catalog, catalog_of_tool
from drawstring.services.catalogs.table_description import (
    COMPLETION_SYNCED,
    SYNCED,
    CatalogTable,
    partition_of,
    tables_of,
)
from drawstring.txn.table_context import TableContext

_HIVE: Final = "HiveSyncTool"


def sync(context: TableContext, settings: CatalogSync) -> None:
    """Tell the catalogs that the options name about a table.

    Args:
        context: the table.
        settings: of the sync.

    Raises:
        UnsupportedError: the options name a catalog that there is no support for.
        UnavailableError: a catalog does not answer.
        InvalidError: a catalog refuses the table.
    """
    facts = load_facts(context.storage, context.clock, context.uses_metadata)
    location = location_of(context)
    schema = with_shown_columns(visible_schema(facts), facts.config)
    if settings.omits_meta:
        schema = without_meta(schema)
    for catalog in _catalogs(settings):
        wanted = settings if catalog.has_partitions else replace(settings, strategy="RT")
        try:
            for table in tables_of(facts.config, schema, location, facts.timeline, wanted):
                _sync_table(catalog, table, facts, settings)
        finally:
            catalog.close()


def location_of(context: TableContext) -> str:
    """Return the address of a table's root as catalogs have it."""
    uri = context.storage.full_uri("").rstrip("/")
    return uri.replace("file://", "file:", 1)


def _catalogs(settings: CatalogSync) -> list[Catalog]:
    tools = set(settings.tools) if settings.meta_enabled else set()
    if settings.hive_enabled:
        tools.add(_HIVE)
    return [_catalog(tool, settings) for tool in sorted(tools)]


def _catalog(tool: str, settings: CatalogSync) -> Catalog:
    catalog = catalog_of_tool(tool, settings)
    if catalog is None:
        raise UnsupportedError(
            f"Sync by {tool} is not supported. Use one of {', '.join(sorted(plugin_names(GROUP)))} in"
            " hoodie.meta.sync.client.tool.class."
        )
    return catalog


def _sync_table(catalog: Catalog, table: CatalogTable, facts: TableFacts, settings: CatalogSync) -> None:
    known = catalog.properties(table)
    if known is None:
        unknown = {key: value for key, value in table.properties.items() if key not in SYNCED}
        catalog.create(replace(table, properties=unknown), with_database=settings.creates_database)
    if table.partition_keys and catalog.has_partitions:
        synced = (known or {}).get(COMPLETION_SYNCED) if settings.is_incremental else None
        touched = _touched_since(facts, synced)
        paths = _live_partitions(facts) if touched is None else touched
        wanted = [partition_of(path, table.location, facts.config, settings) for path in sorted(paths)]
        if touched is None:
            there = catalog.partitions(table)
            catalog.drop(table, sorted(there - {each.values for each in wanted}))
            wanted = [each for each in wanted if each.values not in there]
        catalog.add(table, wanted)
    catalog.alter(table)  # last, since it says how far the catalog knows the table


def _touched_since(facts: TableFacts, synced: str | None) -> set[str] | None:
    """Return the partitions written to since a completion time, None if they have to be compared all."""
    timeline = facts.timeline
    if synced is None or timeline.start is None or synced < timeline.start:
        return None
    touched: set[str] = set()
    for instant in timeline.writes():
        if time_of(instant) <= synced:
            continue
        commit = facts.store.commit_metadata(instant)
        if commit.replaced and commit.changes_records:
            return None  # partitions may have lost their last file group
        touched |= {stat.partition for stat in commit.stats}
    return touched


def _live_partitions(facts: TableFacts) -> set[str]:
    return {each.partition for each in latest_slices(facts)}
