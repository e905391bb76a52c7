"""The bloom filters that drawstring keeps in the metadata table: after each step those of all base files."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.partitions.bloom_filters import BLOOM_FILTERS, BloomFilterMaintainer
from drawstring.metadata.partitions.maintainer import TableFacts
from drawstring.storage import open_spec
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.bloom_filters import indexed_filters, stored_filters
from tests.support.golden import unpack
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.seeds import SHORT_AND_LONG
from tests.support.tables import COW, MOR, create

ENABLED = {"hoodie.metadata.index.bloom.filter.enable": "true"}


def play(table: drawstring.Table, history: History, steps: int) -> None:
    taken = []
    for _ in range(steps):
        taken.append(history.step())
        assert indexed_filters(table) == stored_filters(table), taken


def with_filters(table_type: str, **how: object) -> Table:
    """Return a table with some commits, the last of which added the filters to its metadata table."""
    created = create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts", **how)
    table = Table(TableContext(context_of(created).storage, clock=SteppingClock(), uses_metadata=True))
    history = History(table, "SIMPLE", 1)
    table.upsert(history.rows(list(range(20)), True), options=QUIET)
    table.upsert(history.rows([1, 2], True), options=QUIET)
    assert BLOOM_FILTERS not in table.config.metadata_partitions
    table.upsert(history.rows([3, 50], True), options=QUIET | ENABLED)
    return table


@pytest.mark.parametrize("name", ["v6_mdt_cow", "v8_mdt_cow", "v9_mdt_cow"])
def test_filters_of_real_hudi_are_kept_over_a_life(name: str, tmp_path: Path) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    before = indexed_filters(table)
    assert before == stored_filters(table)
    rows = table.scan().to_arrow().drop_columns([n for n in table.schema.names if n.startswith("_hoodie")])
    table.upsert(rows.slice(0, 2), options=QUIET)
    table.services.cluster()
    table.insert_overwrite(rows.slice(1, 1), options=QUIET)
    after = indexed_filters(table)
    assert before.items() < after.items()
    assert after == stored_filters(table)
    table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    assert len(indexed_filters(table)) < len(after)
    assert indexed_filters(table) == stored_filters(table)


@pytest.mark.parametrize("name", ["v8_mdt_cow", "v9_mdt_cow"])
def test_built_anew_the_filters_are_those_of_real_hudi(name: str, tmp_path: Path) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    facts = TableFacts(open_spec(context_of(table).storage.spec), table.config, SteppingClock())
    built = BloomFilterMaintainer(memory_bytes=0).initial(facts)
    rows = [row for change in built.changes for row in change.rows.to_pylist()]
    contents = {row["key"]: row["BloomFilterMetadata"] for row in rows}
    found = {key: (e["type"], e["timestamp"], bytes(e["bloomFilter"])) for key, e in contents.items()}
    assert found == indexed_filters(table)
    assert list(built.file_ids) == [f"bloom-filters-000{number}-0" for number in range(4)]


@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_filters_are_right_after_each_step_of_any_history(table_type: str, seed: int) -> None:
    table = with_filters(table_type)
    assert indexed_filters(table) == stored_filters(table)
    play(table, History(table, "SIMPLE", seed), 14)


def test_files_without_filters_have_no_records() -> None:
    table = with_filters(COW, properties={"hoodie.populate.meta.fields": "false"})
    assert BLOOM_FILTERS in table.config.metadata_partitions
    assert indexed_filters(table) == {}


def test_the_filters_that_drawstring_keeps_rule_out_files() -> None:
    table = with_filters(COW)
    scan = table.scan(where="id = 50")
    assert [step.kept for step in scan.explain().steps if step.by == BLOOM_FILTERS] == [1]
    assert scan.to_arrow().num_rows == 1
