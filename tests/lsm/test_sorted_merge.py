"""The merge of sorted runs, a few rows at a time, gives what the merge of whole log files gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drawstring
from drawstring.base.errors import CorruptTableError
from drawstring.filegroups import file_slice_reader, sorted_merge
from drawstring.filegroups.sorted_merge import WINDOWS_IN_MEMORY_MAX, SortedRun, in_runs, merge_by_fences
from drawstring.filegroups.write import log_compaction
from drawstring.table import Table
from tests.support.limits import SetLimits
from tests.support.rows import held, rides
from tests.support.sorted_tables import (
    BUCKET,
    check_sorted,
    few_base_rows,
    small_windows,
    sorted_table,
    unsorted_table,
)
from tests.support.tables import WITHOUT_SERVICES

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("ts", pa.int64()),
        ("name", pa.string()),
        ("count", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
BARE = pa.schema(list(SCHEMA)[:-1])
OWN = "5a3f0c0e-sorted-merge-by-adding"
MODE = "hoodie.record.merge.mode"
PAYLOAD = "hoodie.compaction.payload.class"
KINDS: dict[str, dict[str, str]] = {
    "event": {MODE: "EVENT_TIME_ORDERING"},
    "commit": {MODE: "COMMIT_TIME_ORDERING"},
    "fields": {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
    "fields by commit": {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", MODE: "COMMIT_TIME_ORDERING"},
    "own": {MODE: "CUSTOM", "hoodie.record.merge.strategy.id": OWN},
    "partial blocks": {MODE: "EVENT_TIME_ORDERING"},
}
PARTIAL = {**WITHOUT_SERVICES, "hoodie.spark.sql.merge.into.partial.updates": "true"}
EXAMPLES = max(2, settings.get_profile(settings.get_current_profile_name()).max_examples // 10)
KEYS = ("a", "aa", "b", "z", "Z", "é", "￿", "\U00010437", "0", "10", "9")


def adds(older: pa.Table, newer: pa.Table) -> pa.Table:
    count = pc.add(older["count"].fill_null(0), newer["count"].fill_null(0))
    return newer.set_column(newer.schema.get_field_index("count"), "count", count)


drawstring.register_merger(OWN, adds)

record = st.fixed_dictionaries(
    {
        "id": st.sampled_from(KEYS),
        "ts": st.integers(0, 4),
        "name": st.sampled_from([None, "x", "y"]),
        "count": st.sampled_from([None, 1, 2]),
        "_hoodie_is_deleted": st.sampled_from([None, None, None, True]),
    }
)
step = st.one_of(
    st.tuples(st.just("upsert"), st.lists(record, min_size=1, max_size=9)),
    st.tuples(st.just("upsert"), st.lists(record, min_size=1, max_size=9)),
    st.tuples(st.just("delete"), st.lists(record, min_size=1, max_size=3)),
    st.tuples(st.just("update"), st.just([])),
    st.tuples(st.sampled_from(["compact", "log_compact"]), st.just([])),
)


def table_of(kind: str, folder: Path) -> Table:
    schema = BARE if kind == "partial blocks" else SCHEMA
    sorted_table(schema, BUCKET, path=folder, partition_by=())
    path = folder / ".hoodie/hoodie.properties"
    kept = [each for each in path.read_text().splitlines() if each.partition("=")[0] not in KINDS[kind]]
    path.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in KINDS[kind].items())]) + "\n")
    return drawstring.open(folder)


def take(table: Table, kind: str, name: str, rows: list[dict[str, Any]]) -> None:
    schema = BARE if kind == "partial blocks" else SCHEMA
    given = pa.Table.from_pylist([{each: row[each] for each in schema.names} for row in rows], schema)
    if name in ("upsert", "delete"):
        getattr(table, name)(given, options=WITHOUT_SERVICES)
    elif name == "update":
        table.update("count = 1", {"name": "'set'"}, options=PARTIAL)
    elif name == "compact":
        table.services.compact()
    elif kind in ("event", "commit"):
        table.services.log_compact(min_blocks=2)


@contextmanager
def without_sorted_merge() -> Iterator[None]:
    with ExitStack() as stack:
        for module in (file_slice_reader, file_slice_reader, log_compaction):
            stack.enter_context(patch.object(module, "has_sorted_runs", lambda *_: False))
        yield


def answers(table: Table, **how: Any) -> list[tuple[Any, ...]]:
    rows = table.scan(**how).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


FIRST = ("upsert", [{"id": "m", "ts": 2, "name": None, "count": 1, "_hoodie_is_deleted": None}])
QUERIES: tuple[dict[str, Any], ...] = ({}, {"where": "id > 'a'"}, {"where": "id IN ('b', 'é')"})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(history=st.lists(step, min_size=2, max_size=6))
def test_both_merges_read_the_same(
    kind: str, tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, list[dict[str, Any]]]]
) -> None:
    table = table_of(kind, tmp_path_factory.mktemp("t") / "t")
    for name, rows in (FIRST, *history):
        with small_windows():
            take(table, kind, name, rows)
            found = [answers(table, **how) for how in QUERIES]
            assert {each.check for each in table.services.validate().findings} == set()
        with patch.object(sorted_merge, "base_rows", few_base_rows):
            logs_at_once = [answers(table, **how) for how in QUERIES]
        with without_sorted_merge():
            whole = [answers(table, **how) for how in QUERIES]
        assert found == logs_at_once == whole
        check_sorted(table)


def test_a_compaction_and_a_log_compaction_merge_by_windows() -> None:
    table = sorted_table(properties=BUCKET)
    for ts in range(1, 5):
        rows = [(f"{key:03}", "rome", ts, float(ts)) for key in range(ts, 60, ts)]
        table.upsert(rides(*rows), options=WITHOUT_SERVICES)
    table.delete(rides(*((f"{key:03}", "rome", 0, 0.0) for key in range(0, 60, 7))), options=WITHOUT_SERVICES)
    before = held(table)
    with small_windows():
        assert table.services.log_compact(min_blocks=2)
        assert held(table) == before
        check_sorted(table)
        assert table.services.compact()
    (file_slice,) = table.inspect.files()
    assert not file_slice.logs
    check_sorted(table)
    assert held(table) == before


def test_a_compaction_of_log_files_that_fit_into_memory_sorts_them_once() -> None:
    table = sorted_table(properties=BUCKET)
    for ts in range(1, 5):
        rows = [(f"{key:03}", "rome", ts, float(ts)) for key in range(ts, 60, ts)]
        table.upsert(rides(*rows), options=WITHOUT_SERVICES)
    table.delete(rides(*((f"{key:03}", "rome", 0, 0.0) for key in range(0, 60, 7))), options=WITHOUT_SERVICES)
    before = held(table)
    with (
        patch.object(sorted_merge, "base_rows", few_base_rows),
        patch.object(sorted_merge, "merged_records", side_effect=sorted_merge.merged_records) as merges,
    ):
        assert table.services.compact()
    assert merges.call_count == 1
    check_sorted(table)
    assert held(table) == before


def test_a_file_that_is_not_sorted_is_named(tmp_path: Path) -> None:
    table = unsorted_table(tmp_path / "t")
    with pytest.raises(CorruptTableError, match=r"not sorted by record key.*set-storage-layout") as refused:
        table.scan().to_arrow()
    assert refused.value.path is not None
    table.versions.set_storage_layout("default")
    assert [row[:3] for row in held(table)] == [("a", "rome", 2), ("b", "rome", 2)]


def run_of(*windows: str) -> SortedRun[pa.RecordBatch]:
    batches = (pa.record_batch({"key": list(keys)}) for keys in windows)
    return SortedRun([("x", batches)], lambda batch: batch.column(0))


def shown(part: list[list[pa.RecordBatch]]) -> list[str]:
    return ["".join(key for window in run for key in window.column(0).to_pylist()) for run in part]


def test_parts_end_at_the_smallest_last_key_in_memory() -> None:
    runs = [run_of("adf", "", "gh"), run_of("bfk", "m"), run_of("cz"), run_of()]
    parts = [shown(part) for part in merge_by_fences(runs)]
    assert parts == [["adfgh", "bf", "c", ""], ["", "km", "", ""], ["", "", "z", ""]]


def test_runs_with_keys_spread_alike_advance_by_a_window_with_every_fence() -> None:
    runs = [
        run_of(
            *(
                "".join(chr(0x4E00 + 7 * (10 * window + row) + run) for row in range(10))
                for window in range(20)
            )
        )
        for run in range(7)
    ]
    parts = [shown(part) for part in merge_by_fences(runs)]
    assert len(parts) <= 21
    assert sorted("".join("".join(part) for part in parts)) == [chr(0x4E00 + key) for key in range(1400)]


def test_only_two_windows_of_a_run_are_read_ahead() -> None:
    read: list[str] = []

    def windows(name: str) -> Iterator[pa.RecordBatch]:
        for number in range(50):
            read.append(name)
            yield pa.record_batch({"key": [f"{number:03}"]})

    runs = [SortedRun([(name, windows(name))], lambda batch: batch.column(0)) for name in "ab"]
    taken = 0
    for part in merge_by_fences(runs):
        taken += sum(each.num_rows for run in part for each in run)
        assert len(read) - taken <= 4
    assert taken == 100


def test_the_next_windows_are_read_once_a_part_was_merged() -> None:
    read: list[str] = []

    def windows() -> Iterator[pa.RecordBatch]:
        for letters in ("ab", "cd", "ef", "gh"):
            read.append(letters)
            yield pa.record_batch({"key": list(letters)})

    base = SortedRun([("base", windows())], lambda batch: batch.column(0), windows_held=1)
    for number, part in enumerate(merge_by_fences([base, run_of("b", "ceg")])):
        assert len(part[0]) == 1, "the window of the run with most of the rows is used up with every fence"
        assert len(read) == number + 1


@pytest.mark.parametrize(
    ("bounds", "runs"),
    [
        ([], []),
        (["ac", "df", "gz"], ["012"]),
        (["gz", "ac", "df"], ["120"]),
        (["ac", "cf", "gz"], ["0", "12"]),
        (["az", "bc", "de", "cd"], ["0", "12", "3"]),
        (["ac", None, "df", "gz"], ["0", "1", "23"]),
        (["aa", "aa", "bb"], ["0", "12"]),
        (["bd", "az", "ee"], ["0", "1", "2"]),
    ],
)
def test_files_without_common_keys_are_one_run(bounds: list[str | None], runs: list[str]) -> None:
    found = in_runs(range(len(bounds)), lambda at: (each[0], each[1]) if (each := bounds[at]) else None)
    assert ["".join(map(str, run)) for run in found] == runs


@pytest.mark.parametrize("ending", ["parquet", "orc", "lance"])
def test_log_files_of_other_keys_are_merged_as_one_run(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: SetLimits
) -> None:
    properties = {**BUCKET, "hoodie.table.base.file.format": ending}
    table = sorted_table(path=tmp_path / "t", properties=properties)
    table.insert(rides(*((key, "rome", 1, 1.0) for key in "abcdefghi")), options=WITHOUT_SERVICES)
    for keys_written in ("gh", "ab", "de", "ai"):
        table.upsert(rides(*((key, "rome", 2, 2.0) for key in keys_written)), options=WITHOUT_SERVICES)
    table.delete(rides(("c", "rome", 0, 0.0), ("d", "rome", 0, 0.0)), options=WITHOUT_SERVICES)
    runs: list[int] = []
    limit(windows_bytes=0)
    monkeypatch.setattr(
        sorted_merge, "merge_by_fences", lambda parts: (runs.append(len(parts)), merge_by_fences(parts))[1]
    )
    expected = [(key, "rome", 2 if key in "ghabeai" else 1) for key in "abefghi"]
    assert [row[:3] for row in held(table)] == expected
    assert runs == [1 + 2 + 1], "the base file, two runs of records and one of deletes"
    assert table.services.compact()
    assert [row[:3] for row in held(table)] == expected


def test_the_windows_of_all_log_files_fit_into_the_bytes_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: SetLimits
) -> None:
    bytes_max = 600_000
    table = sorted_table(path=tmp_path / "t", properties=BUCKET)
    for ts in range(1, 5):
        rows = [(f"{key:05}", "rome", ts, float(ts)) for key in range(3000)]
        table.upsert(rides(*rows), options=WITHOUT_SERVICES)
    windowed, held_bytes = sorted_merge.windowed, list[int]()

    def noted(logs: Any, runs: Any) -> Any:
        opened = windowed(logs, runs)
        most = [max(each.rows.nbytes for file in run for each in opened.windows(file)) for run in runs]
        held_bytes.append(WINDOWS_IN_MEMORY_MAX * sum(most))
        return opened

    limit(windows_bytes=bytes_max)
    monkeypatch.setattr(sorted_merge, "windowed", noted)
    assert [row[2] for row in held(table)] == [4] * 3000
    assert table.services.log_compact(min_blocks=2)
    assert len(held_bytes) >= 2
    assert all(bytes_max / 20 < each <= bytes_max for each in held_bytes), held_bytes
