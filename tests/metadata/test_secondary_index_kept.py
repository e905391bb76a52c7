"""The secondary index that drawstring keeps: after each step it has the value of every record."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.partitions.maintainer import TableFacts
from drawstring.metadata.partitions.secondary_index import SecondaryIndexMaintainer
from drawstring.metadata.record_tables import records
from drawstring.metadata.table import open_metadata_table
from drawstring.query.table_state import load_facts
from drawstring.storage import open_spec
from drawstring.testing import context_of
from tests.support.golden import unpack
from tests.support.index_histories import QUIET, History
from tests.support.secondary_indexes import indexed_values, misplaced, stored_values
from tests.support.seeds import SHORT_AND_LONG, scaled_steps

GOLDEN = ["v8_idx_secondary", "v9_idx_secondary"]
BY_NAME = "secondary_index_idx_sec"


def check(table: drawstring.Table, partition: str = BY_NAME, column: str = "name") -> None:
    assert indexed_values(table, partition) == stored_values(table, column)


@pytest.mark.parametrize("name", GOLDEN)
def test_built_anew_the_index_is_that_of_real_hudi(name: str, tmp_path: Path) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    storage = open_spec(context_of(table).storage.spec)
    facts = TableFacts(storage, table.config, SteppingClock())
    built = SecondaryIndexMaintainer(BY_NAME, memory_bytes=0).initial(facts)
    found = {change.file_id: change.rows for change in built.changes}
    known = load_facts(storage, SteppingClock())
    opened = open_metadata_table(storage, table.config, known.timeline, SteppingClock())
    assert list(built.file_ids) == [each.file_id for each in opened.slices(BY_NAME)]
    rows = pa.concat_tables(found.values()).sort_by("key").to_pylist()
    assert rows == records(opened, BY_NAME).sort_by("key").to_pylist()
    assert not misplaced(table, BY_NAME, hashes_value=True)


@pytest.mark.scaled
@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize("name", GOLDEN)
def test_an_index_of_real_hudi_is_right_after_each_step_of_any_history(
    name: str, seed: int, tmp_path: Path
) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    history = History(table, "GLOBAL_RECORD_LEVEL_INDEX" if name[:2] == "v9" else "RECORD_INDEX", seed)
    check(table)
    taken = []
    for _ in range(scaled_steps(12)):
        taken.append(history.step())
        assert indexed_values(table, BY_NAME) == stored_values(table, "name"), taken
    table.upsert(history.rows([1, 2], True), options=QUIET)
    check(table)
    assert not misplaced(table, BY_NAME, hashes_value=True)
