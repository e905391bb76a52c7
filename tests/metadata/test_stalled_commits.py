"""The metadata table is neither built nor compacted beside a commit that is decided and does not come."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import drawstring
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.metadata.building import can_build
from drawstring.metadata.compaction import has_to_wait
from drawstring.metadata.table import open_metadata_table
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.instant import Action, Instant
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.tables import store_of

ROWS = pa.table({"id": pa.array([1, 2])})


def begun(path: Path, **options: str) -> tuple[Table, Instant]:
    """Create a table with a commit, and a delta commit that another process has begun."""
    table = drawstring.create(path, ROWS.schema, record_key="id", table_type="MERGE_ON_READ")
    table.upsert(ROWS, options=options)
    store = store_of(table)
    pending = store.start(store.request(Action.DELTA_COMMIT, store.new_time(store.load())))
    return table, pending


def test_it_is_not_built_while_another_process_may_complete_a_commit(tmp_path: Path) -> None:
    table, pending = begun(tmp_path, **{"hoodie.metadata.enable": "false"})
    storage, store = context_of(table).storage, store_of(table)
    assert can_build(storage, table.config, store.load(), None)
    store.announce(pending)
    assert not can_build(storage, table.config, store.load(), None)
    assert can_build(storage, table.config, store.load(), pending)


def test_it_is_not_compacted_while_a_delta_commit_may_complete_at_an_earlier_time(tmp_path: Path) -> None:
    table, pending = begun(tmp_path)
    storage, timeline = context_of(table).storage, store_of(table).load()

    def waits() -> bool:
        metadata = open_metadata_table(storage, table.config, timeline, SystemClock())
        return has_to_wait(metadata, timeline)

    assert not waits()
    MetadataWriter.of(storage, SystemClock(), SystemIds()).begin(Action.DELTA_COMMIT, pending.requested)
    assert waits()
