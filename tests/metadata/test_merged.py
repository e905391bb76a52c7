"""Merging a file group of the metadata table window by window: the same records, few of them in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO

import numpy as np
import pyarrow as pa
import pytest

from drawstring.base.clock import SteppingClock, SystemIds
from drawstring.formats.hfile import HFileEntries, HFileReader, read_hfile_records
from drawstring.formats.hfile.reader import IndexEntry
from drawstring.metadata.log_format import write_base_file
from drawstring.metadata.merging import newest
from drawstring.metadata.partitions.maintainer import GroupChange, SortedGroup, TableFacts
from drawstring.metadata.partitions.record_index import RecordIndexMaintainer
from drawstring.metadata.reader import merged_parts, read_rows
from drawstring.metadata.record_index_lookup import location_rows
from drawstring.metadata.table import KEY, Kind, MetadataTable, open_metadata_table, record_schema
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.limits import SetLimits
from tests.support.rows import rides
from tests.support.tables import create

QUIET = {"hoodie.clean.automatic": "false", "hoodie.index.type": "RECORD_INDEX"}
GROUP = "record-index-0000-0"
COLUMNS = record_schema(Kind.RECORD_INDEX).names


def indexed(count: int) -> tuple[Table, MetadataWriter]:
    """Return a table of so many keys with a record index, and what adds to its metadata table."""
    storage = context_of(create()).storage
    table = Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True))
    table.upsert(rides(("first", "a", 1, 1.0)), options=QUIET)
    table.upsert(rides(*((f"k{number:06}", "a", 1, 1.0) for number in range(count))), options=QUIET)
    return table, MetadataWriter.of(storage, SteppingClock(), SystemIds())


def opened(table: Table) -> MetadataTable:
    return open_metadata_table(
        context_of(table).storage, table.config, table.timeline, context_of(table).clock
    )


def locations(keys: Sequence[str], file_id: str) -> pa.Table:
    count = len(keys)
    texts = (pa.array(keys, pa.string()), pa.array(["a"] * count), pa.array([file_id] * count))
    return location_rows(*texts, pa.array([7] * count, pa.int64()))


def add(writer: MetadataWriter, number: int, keys: Sequence[str], removed: Sequence[str]) -> None:
    """Add a delta commit to the first file group."""
    requested = f"2099010100000{number:04}"
    instant = writer.begin(Action.DELTA_COMMIT, requested)
    change = GroupChange(
        "record_index", GROUP, locations(keys, f"file{number}"), pa.array(removed, pa.string())
    )
    writer.complete(instant, writer.append(requested, [change]), {})


def first_slice(metadata: MetadataTable) -> FileSlice:
    return metadata.slices("record_index")[0]


def keys_of(metadata: MetadataTable) -> list[str]:
    rows = read_rows(metadata, first_slice(metadata), Kind.RECORD_INDEX)
    return [str(key) for key in rows.column(KEY).to_pylist()]


def stored(parts: Iterator[pa.Table]) -> pa.Table:
    """Return the records of a base file that is made of parts."""
    file = BytesIO()
    count, size_bytes = write_base_file(file, parts, "a.hfile", 0)
    content = file.getvalue()
    assert len(content) == size_bytes
    reader = HFileReader(pa.BufferReader(content), size_bytes)
    assert reader.entry_count == count
    assert reader.schema_json is not None
    batches = list(read_hfile_records(reader.scan(), reader.schema_json, COLUMNS))
    return pa.Table.from_batches(batches).select(COLUMNS)


@pytest.fixture
def small_windows(limit: SetLimits) -> None:
    limit(hfile_block_bytes_max=1 << 10, base_window_bytes=1 << 12)


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("seed", range(3))
def test_windows_give_the_records_that_all_files_at_once_give(seed: int) -> None:
    table, writer = indexed(2_000)
    known = keys_of(opened(table))
    rng = np.random.default_rng(seed)
    for number in range(4):
        moved = rng.choice(known, int(rng.integers(0, 100)), replace=False).tolist()
        removed = sorted({*rng.choice(known, 30).tolist(), "absent"} - {*moved})
        add(writer, number, [*moved, f"new{number}"], removed if number else [])
    metadata = opened(table)
    at_once = newest(read_rows(metadata, first_slice(metadata), Kind.RECORD_INDEX))
    assert len(known) > len(at_once) > 0
    assert stored(merged_parts(metadata, first_slice(metadata), Kind.RECORD_INDEX)).equals(
        at_once.select(COLUMNS).cast(stored(iter([at_once])).schema)
    )


def held_at_most(metadata: MetadataTable, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Merge a file group that has two versions of each key; return the versions read and held at once."""
    read = held = merged = 0
    decode = HFileReader._entries

    def counted(reader: HFileReader, block: IndexEntry) -> HFileEntries:
        nonlocal read
        entries = decode(reader, block)
        read += len(entries.keys)
        return entries

    with monkeypatch.context() as patched:
        patched.setattr(HFileReader, "_entries", counted)
        for part in merged_parts(metadata, first_slice(metadata), Kind.RECORD_INDEX):
            held = max(held, read - 2 * merged)
            merged += part.num_rows
    assert 2 * merged == read
    return read, held


@pytest.mark.usefixtures("small_windows")
def test_a_compaction_holds_a_few_windows_however_many_keys_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for count in (4_000, 16_000):
        table, writer = indexed(count)
        keys = keys_of(opened(table))
        for number in range(3):
            add(writer, number, keys[number::3], [])
        found.append(held_at_most(opened(table), monkeypatch))
    (few, held_of_few), (many, held_of_many) = found
    assert many > 3 * few
    assert held_of_many < 1.5 * held_of_few < few


def test_a_record_index_is_built_from_disk_where_its_keys_do_not_fit_into_memory() -> None:
    storage = context_of(create()).storage
    table = Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True))
    table.upsert(rides(*((f"k{number}", f"city{number % 3}", 1, 1.0) for number in range(500))))
    table.upsert(rides(("k0", "another", 1, 1.0)))  # the same key in two partitions
    facts = TableFacts(storage, table.config, SteppingClock())
    found: list[str] = []
    for group in RecordIndexMaintainer(is_partitioned=False, memory_bytes=0).initial(facts).changes:
        assert isinstance(group, SortedGroup)
        keys = [str(key) for part in group.parts for key in part.column(KEY).to_pylist()]
        assert keys == sorted(keys)
        found += keys
    assert sorted(found) == sorted(f"k{number}" for number in range(500))
