"""Statistics of columns: those that a metadata table has, and those that its files give."""

from __future__ import annotations

from typing import Any

import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.partitions import column_stats
from drawstring.metadata.partitions.column_stats import ColumnStatsMaintainer, PartitionStatsMaintainer
from drawstring.metadata.partitions.maintainer import PartitionMaintainer, TableFacts
from drawstring.metadata.record_tables import records
from drawstring.metadata.table import open_metadata_table
from drawstring.query.table_state import load_facts
from drawstring.storage import open_spec
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.copies import copied
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.tables import create

Records = dict[str, Any]
"""Records by their keys."""


def kept(table: drawstring.Table, partition: str) -> Records:
    """Return the records that are not deleted of a partition of the metadata table."""
    facts = load_facts(context_of(table).storage, SteppingClock())
    opened = open_metadata_table(facts.storage, facts.config, facts.timeline, SteppingClock())
    rows = {row["key"]: row for row in records(opened, partition).to_pylist()}
    return {key: row for key, row in rows.items() if not row["ColumnStatsMetadata"]["isDeleted"]}


def built(table: drawstring.Table, maintainer: PartitionMaintainer) -> Records:
    """Return the records that a partition would have if it was built now."""
    storage = context_of(table).storage
    initial = maintainer.initial(TableFacts(open_spec(storage.spec), table.config, SteppingClock()))
    return {row["key"]: row for change in initial.changes for row in change.rows.to_pylist()}


ENABLED = {"hoodie.metadata.index.column.stats.enable": "true"}
STATISTICS = {"column_stats", "partition_stats"}


def check(table: Table, taken: object = None, of_hudi: Records | None = None) -> None:
    """Check that statistics are those of a new build.

    Args:
        table: the table.
        taken: the steps of its history, to be shown.
        of_hudi: statistics of files that Hudi wrote. It says of none that its bounds are tight.
    """
    found, expected = kept(table, "column_stats"), built(table, ColumnStatsMaintainer())
    for key, record in (of_hudi or {}).items():
        if key in expected and found.get(key) == record:
            expected[key]["ColumnStatsMetadata"]["isTightBound"] = False
    assert found == expected, taken
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_stats, "_with_statistics", lambda metadata: None)
        of_files = built(table, PartitionStatsMaintainer())
    if "partition_stats" in table.config.metadata_partitions:  # not in version 6
        assert kept(table, "partition_stats") == of_files, taken


@copied
def with_statistics(table_type: str, **how: object) -> Table:
    """Return a table with some commits, the last of which added statistics to its metadata table."""
    created = create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts", **how)
    table = Table(TableContext(context_of(created).storage, clock=SteppingClock(), uses_metadata=True))
    history = History(table, "SIMPLE", 1)
    table.upsert(history.rows(list(range(20)), True), options=QUIET)
    table.upsert(history.rows([1, 2], True), options=QUIET)
    assert not STATISTICS & {*table.config.metadata_partitions}
    table.upsert(history.rows([3, 50], True), options=QUIET | ENABLED)
    added = STATISTICS if how.get("version") != 6 else {"column_stats"}
    assert {*table.config.metadata_partitions} == {"files", *added}
    return table
