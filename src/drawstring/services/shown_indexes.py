"""What indexes a table has, and why queries do without some of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from drawstring.config.table.config import TableConfig
from drawstring.metadata.definitions import definitions, is_partitioned_index, why_not_used
from drawstring.metadata.expressions.index import PREFIX as EXPRESSION_PREFIX
from drawstring.metadata.expressions.index import ExpressionIndex
from drawstring.metadata.maintained.indexing_plans import pending_plans
from drawstring.metadata.maintained.secondary_index import PREFIX
from drawstring.metadata.partitions import FILES, RECORD_INDEX
from drawstring.model.table_index import TableIndex
from drawstring.query.expression_skipping import derived_column
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.table_schema import table_schema
from drawstring.txn.table_context import TableContext

KINDS: Final = {PREFIX: "secondary_index", EXPRESSION_PREFIX: "expression_index"}
"""Kinds of indexes of a column, by the prefix of their names."""


def table_indexes(context: TableContext) -> list[TableIndex]:
    """Return the indexes of a table, by name, planned ones among them.

    Raises:
        CorruptTableError: the properties, the definitions of the indexes or a plan are damaged.
    """
    config, known = load_config(context.storage), definitions(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    timeline = store.load()
    planned = {name for _, plan in pending_plans(store, timeline) for name in plan.names}
    complete = {*config.metadata_partitions} - {FILES}
    is_of_expression = any(name.startswith(EXPRESSION_PREFIX) for name in complete)
    schema = table_schema(context.storage, store, timeline, config) if is_of_expression else pa.schema([])
    unused = {name: _why_not_used(name, known, config, schema) for name in complete}
    return [
        _index(name, known.get(name, {}), is_complete=name in complete, unused=unused.get(name))
        for name in sorted(complete | planned)
    ]


def _index(name: str, defined: Mapping[str, Any], *, is_complete: bool, unused: str | None) -> TableIndex:
    """Return an index as its definition, if there is one, describes it."""
    kind = next((kind for prefix, kind in KINDS.items() if name.startswith(prefix)), name)
    fields = tuple(defined.get("sourceFields") or ())
    using, options = None, {}
    if name.startswith(EXPRESSION_PREFIX):
        using = str(defined.get("indexType")).lower()
        options = {str(key): str(value) for key, value in (defined.get("indexOptions") or {}).items()}
    return TableIndex(name, kind, fields, is_partitioned_index(defined), is_complete, unused, using, options)


def _why_not_used(
    name: str, known: Mapping[str, Mapping[str, Any]], config: TableConfig, schema: pa.Schema
) -> str | None:
    """Return why queries do without an index that is built; None if they use it."""
    if name == RECORD_INDEX or name.startswith(PREFIX):
        return why_not_used(known)
    if not name.startswith(EXPRESSION_PREFIX):
        return None
    derived = derived_column(ExpressionIndex.of(known.get(name, {})), schema, config)
    return derived if isinstance(derived, str) else None
