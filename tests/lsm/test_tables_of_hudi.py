"""Tables with the storage layout `lsm_tree` as Apache Hudi's master leaves them, where drawstring's differ.

Its Spark stores the layout with COPY_ON_WRITE tables, too, and its inserts leave several rows of one key.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError
from drawstring.filegroups.sorted_merge import SortedRun, in_few_windows, merge_by_fences
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import save_properties
from tests.support.rows import held, rides
from tests.support.sorted_tables import BUCKET, LSM, check_sorted, drawn, keys_of_files, small_windows
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create, listing

AS_THEY_COME = {**WITHOUT_SERVICES, "hoodie.combine.before.insert": "false"}
REPEATED = [("a", 1), ("b", 3), ("b", 1), ("b", 2), ("c", 1), ("d", 2), ("d", 1), ("e", 1), ("e", 2)]
"""Keys and ordering values of a base file that an insert of Hudi's made."""


def stored_with_the_layout(table: Table) -> Table:
    save_properties(context_of(table).storage, {**table.config.properties, **LSM}, SteppingClock())
    return table


@pytest.mark.parametrize("cdc", [False, True])
@pytest.mark.parametrize("index", [{}, {"hoodie.index.type": "GLOBAL_BLOOM"}, BUCKET], ids=str)
def test_a_copy_on_write_table_stays_sorted(index: dict[str, str], cdc: bool) -> None:
    properties = {**index, **({"hoodie.table.cdc.enabled": "true"} if cdc else {})}
    twin = create(table_type=COW, version=10, properties=properties)
    table = stored_with_the_layout(create(table_type=COW, version=10, properties=properties))
    steps: list[Callable[[Table], Any]] = [
        lambda each: each.upsert(drawn(1), options=WITHOUT_SERVICES),
        lambda each: each.upsert(drawn(2, ts=2), options=WITHOUT_SERVICES),
        lambda each: each.delete(drawn(3, 15), options=WITHOUT_SERVICES),
        lambda each: each.update("fare > 20", {"fare": "fare + 1"}, options=WITHOUT_SERVICES),
        lambda each: each.upsert(drawn(5, ts=3), options=WITHOUT_SERVICES),
    ]
    for step in steps:
        step(twin)
        step(table)
        assert held(table) == held(twin)
        check_sorted(table)
    assert table.config.has_sorted_files
    assert table.services.validate().findings == ()


@pytest.mark.parametrize("verb", ["insert", "bulk_insert", "insert_overwrite"])
def test_inserts_into_a_copy_on_write_table_are_sorted(verb: str) -> None:
    table = stored_with_the_layout(create(table_type=COW, version=10))
    for seed in (1, 2):
        getattr(table, verb)(drawn(seed), options=WITHOUT_SERVICES)
        assert check_sorted(table)
    if verb != "insert_overwrite":
        table.insert(drawn(3), options=WITHOUT_SERVICES)
        assert table.services.cluster()
        check_sorted(table)


def test_a_copy_on_write_table_leaves_the_layout() -> None:
    table = stored_with_the_layout(create(table_type=COW, version=10))
    assert table.versions.set_storage_layout("default") is True
    assert not table.config.has_sorted_files


def with_repeated_keys(table_type: str = MOR) -> Table:
    """Return a table whose base file has several rows of some keys, one after another."""
    table = create(table_type=table_type, version=10, properties=BUCKET if table_type == MOR else {})
    rows = [(key, "rome", ts, float(number)) for number, (key, ts) in enumerate(REPEATED)]
    table.insert(rides(*rows), options=AS_THEY_COME)
    (keys,) = keys_of_files(table).values()
    assert keys == [key for key, _ in REPEATED]
    return table


def change(table: Table) -> None:
    """Change one key that repeats and one that does not, delete one that does, and add one."""
    new = rides(("b", "rome", 2, 20.0), ("c", "rome", 2, 20.0), ("bb", "rome", 2, 20.0))
    table.upsert(new, options=WITHOUT_SERVICES)
    table.delete(rides(("d", "rome", 0, 0.0)), options=WITHOUT_SERVICES)


@pytest.mark.parametrize("windows", ["whole", "small"])
def test_rows_of_one_key_in_a_base_file_are_read_as_in_any_layout(windows: str) -> None:
    twin, table = with_repeated_keys(), stored_with_the_layout(with_repeated_keys())
    assert held(table) == held(twin)
    for each in (twin, table):
        change(each)
    expected = held(twin)
    assert expected == [
        ("a", "rome", 1, 0.0), ("b", "rome", 3, 1.0), ("bb", "rome", 2, 20.0), ("c", "rome", 2, 20.0),
        ("e", "rome", 1, 7.0), ("e", "rome", 2, 8.0),
    ]  # fmt: skip
    if windows == "whole":
        assert held(table) == expected
        assert table.services.compact()
    else:
        with small_windows():
            assert held(table) == expected
            assert table.services.compact()
    assert held(table) == expected
    (file_slice,) = table.inspect.files()
    assert file_slice.base is not None
    assert keys_of_files(table)[file_slice.base.status.path] == ["a", "b", "bb", "c", "e", "e"]


def test_a_copy_on_write_file_with_several_rows_of_a_key_is_rewritten() -> None:
    twin, table = with_repeated_keys(COW), stored_with_the_layout(with_repeated_keys(COW))
    for each in (twin, table):
        change(each)
    assert held(table) == held(twin)
    newest = max(keys_of_files(table))
    assert keys_of_files(table)[newest] == sorted(keys_of_files(table)[newest])
    assert {each.check for each in table.services.validate().findings} == {"key"}


def test_a_clustering_gives_further_rows_of_a_key_a_file_of_their_own() -> None:
    table = stored_with_the_layout(with_repeated_keys(COW))
    before = held(table)
    assert table.services.cluster()
    assert held(table) == before
    for file_slice in table.inspect.files():
        assert file_slice.base is not None
        with context_of(table).storage.open(file_slice.base.status.path) as file:
            keys = pq.read_table(file, columns=["_hoodie_record_key"]).column(0).to_pylist()
        assert keys == sorted(set(keys))


def keys_of(batch: Any) -> pa.Array:
    column = batch.column(0)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def batches(*windows: str) -> list[pa.RecordBatch]:
    return [pa.record_batch({"key": list(keys)}) for keys in windows]


def test_the_rows_of_a_key_are_in_one_window_of_a_base_file() -> None:
    found = in_few_windows(batches("ab", "bb", "b", "", "c", "de"), keys_of, 0)
    assert ["".join(keys_of(each).to_pylist()) for each in found] == ["abbbb", "c", "de"]


def test_a_key_that_goes_on_after_it_was_merged_is_an_error() -> None:
    def run(*windows: str) -> SortedRun[pa.RecordBatch]:
        return SortedRun([("x", iter(batches(*windows)))], keys_of)

    parts = [
        [[keys_of(each).to_pylist() for each in one] for one in part]
        for part in merge_by_fences([run("ab", "bc"), run("b")])
    ]
    assert parts == [[[["a", "b"], ["b", "c"]], [["b"]]]]
    with pytest.raises(CorruptTableError, match="not sorted by record key"):
        list(merge_by_fences([run("ab", "bc", "cd"), run("bz")]))


def test_rows_of_a_key_in_several_windows_are_merged_at_once() -> None:
    def run(*windows: str) -> SortedRun[pa.RecordBatch]:
        return SortedRun([("x", iter(batches(*windows)))], keys_of, splits_keys=True)

    parts = [
        ["|".join("".join(keys_of(each).to_pylist()) for each in one) for one in part]
        for part in merge_by_fences([run("ab", "bb", "bc"), run("b", "d")])
    ]
    assert parts == [["a", ""], ["b|bb|b", "b"], ["c", "d"]]


def test_log_files_with_several_records_of_a_key_are_merged(tmp_path: Path) -> None:
    table = listing(create(path=tmp_path / "t", table_type=MOR, version=10, properties=BUCKET))
    table.bulk_insert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("b", "rome", 3, 3.0), ("c", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    ((log,),) = (each.logs for each in table.inspect.files())
    path = tmp_path / "t" / log.status.path
    stored, entries = pq.read_table(path), pq.read_metadata(path).metadata
    late = stored.slice(0, 1).set_column(stored.schema.get_field_index("ts"), "ts", pa.array([2]))
    with pq.ParquetWriter(path, stored.schema) as writer:
        writer.write_table(pa.concat_tables([stored.slice(0, 1), *[late] * 4, stored.slice(1)]))
        writer.add_key_value_metadata(entries)
    stored_with_the_layout(table)

    expected = [("a", "rome", 1, 1.0), ("b", "rome", 3, 3.0), ("c", "rome", 1, 1.0)]
    assert held(table) == expected
    with small_windows():
        assert held(table) == expected
        assert table.services.compact()
    assert held(table) == expected
