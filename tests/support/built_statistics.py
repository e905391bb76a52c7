"""Statistics of columns: those that a metadata table has, and those that its files give."""

from __future__ import annotations

from typing import Any

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.contents import records
from drawstring.metadata.maintained.protocol import PartitionMaintainer, TableFacts
from drawstring.metadata.metadata_table import open_metadata_table
from drawstring.query.facts import load_facts
from drawstring.storage import open_spec

Records = dict[str, Any]
"""Records by their keys."""


def kept(table: drawstring.Table, partition: str) -> Records:
    """Return the records that are not deleted of a partition of the metadata table."""
    facts = load_facts(table._context.storage, SteppingClock())
    opened = open_metadata_table(facts.storage, facts.config, facts.timeline, SteppingClock())
    rows = {row["key"]: row for row in records(opened, partition).to_pylist()}
    return {key: row for key, row in rows.items() if not row["ColumnStatsMetadata"]["isDeleted"]}


def built(table: drawstring.Table, maintainer: PartitionMaintainer) -> Records:
    """Return the records that a partition would have if it was built now."""
    storage = table._context.storage
    initial = maintainer.initial(TableFacts(open_spec(storage.spec), table.config, SteppingClock()))
    return {row["key"]: row for change in initial.changes for row in change.rows.to_pylist()}
