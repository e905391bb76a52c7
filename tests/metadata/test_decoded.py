"""What a process remembers of the list of files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.metadata import reader
from drawstring.metadata import record_tables as listed_files
from drawstring.metadata.reader import DecodedRecordCache
from drawstring.metadata.record_tables import records
from drawstring.metadata.table import FILES, Kind, MetadataTable, open_metadata_table
from drawstring.model.files import FileSlice, FileStatus
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.metadata_tables import listed
from tests.support.rows import rides
from tests.support.storages import data_files
from tests.support.tables import COW, create

BATCH = pa.record_batch({"key": pa.array(range(1000), pa.int64())})


def key(number: int) -> tuple[str, FileStatus]:
    return "memory://t", FileStatus(f"files/{number}.hfile", 10)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of entries of each HFile that is decoded."""
    counts: list[int] = []
    read = reader.read_hfile_records

    def counted(*args: object) -> Iterator[pa.RecordBatch]:
        for batch in read(*args):
            counts.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(reader, "read_hfile_records", counted)
    return counts


def made() -> Table:
    storage = context_of(create(table_type=COW)).storage
    table = Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True))
    for number in range(3):
        table.upsert(rides((f"k{number}", "rome", number, 1.0)))
    return table


def test_each_file_of_the_list_is_decoded_once(decoded: list[int]) -> None:
    table = made()
    assert listed(table) == data_files(context_of(table).storage)
    decoded.clear()
    assert listed(table) == data_files(context_of(table).storage)
    assert decoded == []
    table.upsert(rides(("next", "rome", 9, 1.0)))
    assert listed(table) == data_files(context_of(table).storage)
    assert decoded == []  # it wrote the file itself


def test_what_was_written_is_remembered_as_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    table.delete_partition("rome")
    table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    context = context_of(table)
    metadata = open_metadata_table(context.storage, table.config, table.timeline, context.clock)
    (files,) = metadata.slices(FILES)
    remembered = reader.read_rows(metadata, files, Kind.FILES)
    monkeypatch.setattr(reader, "FILE_LISTS", DecodedRecordCache())
    assert [sorted(each.to_pylist(), key=str) for each in remembered.to_batches()] == [
        sorted(each.to_pylist(), key=str)
        for each in reader.read_rows(metadata, files, Kind.FILES).to_batches()
    ]


def test_between_two_commits_only_the_log_file_of_the_last_one_is_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merged: list[int] = []
    read = listed_files.read_rows

    def counted(table: MetadataTable, file_slice: FileSlice, kind: Kind) -> pa.Table:
        merged.append(len(file_slice.logs))
        return read(table, file_slice, kind)

    monkeypatch.setattr(listed_files, "read_rows", counted)
    table = made()
    for number in range(4):
        table.upsert(rides((f"more{number}", "rome", number, 1.0)))
        merged.clear()
        for _ in range(2):
            assert set(listed(table)) == set(data_files(context_of(table).storage))
        assert merged == [1]


def test_what_is_remembered_is_looked_up_as_what_is_read() -> None:
    table = made()
    context = context_of(table)
    metadata = open_metadata_table(context.storage, table.config, table.timeline, context.clock)
    for names in (["rome"], ["rome", "nowhere"], ["nowhere"]):
        found = records(metadata, FILES, names)
        whole = records(metadata, FILES)
        assert found.to_pylist() == [row for row in whole.to_pylist() if row["key"] in names]


def test_what_was_not_asked_for_longest_is_forgotten() -> None:
    known, made = DecodedRecordCache(2 * BATCH.nbytes), []

    def ask(number: int) -> None:
        def decode() -> list[pa.RecordBatch]:
            made.append(number)
            return [BATCH]

        assert known.get(key(number), decode) == [BATCH]

    for number in (1, 2, 1, 3, 1, 2):
        ask(number)
    assert made == [1, 2, 3, 2]


def test_records_larger_than_the_bound_are_returned_and_not_kept() -> None:
    known = DecodedRecordCache(10)
    assert known.get(key(1), lambda: [BATCH]) == [BATCH]
    assert known.get(key(1), list) == []
