"""What a table shows itself by in notebooks and terminals."""

from __future__ import annotations

from drawstring.base.display import Grid
from drawstring.query.facts import load_facts, with_shown_columns
from drawstring.txn.table_context import TableContext


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
