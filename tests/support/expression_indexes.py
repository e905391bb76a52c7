"""Expression indexes: what a metadata table has, and what the files of the table give."""

from __future__ import annotations

from typing import Any

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.partitions.expression_index import ExpressionIndexMaintainer
from drawstring.metadata.record_tables import records
from drawstring.metadata.table import open_metadata_table
from drawstring.query.table_state import load_facts
from drawstring.testing import context_of
from tests.support import built_statistics

Records = dict[str, Any]
"""Contents of records by their keys."""


def kept(table: drawstring.Table, partition: str) -> Records:
    """Return the contents of the records of an expression index that are not deleted."""
    facts = load_facts(context_of(table).storage, SteppingClock())
    opened = open_metadata_table(facts.storage, facts.config, facts.timeline, SteppingClock())
    return _contents(records(opened, partition).to_pylist())


def built(table: drawstring.Table, partition: str) -> Records:
    """Return the contents of the records that an expression index would have if it was built now."""
    maintainer = ExpressionIndexMaintainer(partition)
    return _contents(list(built_statistics.built(table, maintainer).values()))


def without_origin(contents: Records) -> Records:
    """Return contents without the parts by which those of Hudi differ from those of drawstring.

    Filters have the instants that wrote them; Hudi has that of the build, for all files. Bounds are tight,
    which Hudi does not say of those of files.
    """
    return {key: {**content, "timestamp": None, "isTightBound": None} for key, content in contents.items()}


def _contents(rows: list[dict[str, Any]]) -> Records:
    contents = {row["key"]: row["BloomFilterMetadata"] or row["ColumnStatsMetadata"] for row in rows}
    return {key: content for key, content in contents.items() if not content["isDeleted"]}
