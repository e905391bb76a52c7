"""A metadata table whose log files are HFiles of their own, as Apache Hudi's master writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.formats.hfile import HFileReader
from drawstring.formats.log_files import log_blocks
from drawstring.formats.log_inline import BlockType, read_content
from drawstring.metadata.compaction import compact_logs
from drawstring.metadata.log_format import stored_schema
from drawstring.metadata.table import MetadataTable, open_metadata_table
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.files import LogFile, NativeLog
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import load_config
from drawstring.txn.table_context import TableContext
from tests.support.copies import copied
from tests.support.faults import HOUR_MS, START_MS, STEPS_MAX, stride
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.limits import SetLimits
from tests.support.metadata_tables import listed
from tests.support.record_indexes import indexed_places, places
from tests.support.rows import held, rides
from tests.support.storages import files_of, stored
from tests.support.tables import MOR, WITHOUT_SERVICES, create
from tests.support.validation import problems

METADATA = ".hoodie/metadata"
PROPERTIES = ".hoodie/hoodie.properties"
LAYOUT = "hoodie.table.storage.layout"
DELETES = {
    "type": "record",
    "name": "hudi_delete_log_record",
    "fields": [{"name": "_hoodie_record_key", "type": "string"}],
}
SELDOM = {**WITHOUT_SERVICES, "hoodie.metadata.compact.max.delta.commits": "50"}
OFTEN = {**WITHOUT_SERVICES, "hoodie.metadata.compact.max.delta.commits": "1"}
INDEXED = {**SELDOM, "hoodie.index.type": "RECORD_INDEX"}
KEYS = ("\U0001f600", "\ufffd", "ä", "a")
"""In the order of UTF-16 the first one comes before the second, in that of UTF-8 after it."""


@copied
def made(version: int = 10, **properties: str) -> Table:
    """A table with a record index of ten file groups, to which records were added, and that lost some."""
    table = create(table_type=MOR, version=version, properties=properties)
    table = Table(replace(context_of(table), uses_metadata=True))
    table.upsert(rides(("b", "rome", 1, 1.0), ("c", "oslo", 1, 1.0)), options=SELDOM)
    table.indexes.create("record_index")
    table.upsert(rides(*((key, "rome", 2, 2.0) for key in KEYS)), options=INDEXED)
    table.delete(rides(("b", "rome", 3, 0.0), ("a", "rome", 3, 0.0)), options=INDEXED)
    return table


def metadata_of(table: Table) -> MetadataTable:
    return open_metadata_table(
        context_of(table).storage, table.config, table.timeline, context_of(table).clock
    )


def logs_in(table: Table, partition: str) -> list[LogFile]:
    """The log files of a partition of the metadata table, in the order of merging."""
    found = map(LogFile.parse, context_of(table).storage.list_files(f"{METADATA}/{partition}"))
    return sorted((each for each in found if each is not None), key=lambda log: (log.file_id, log.order))


def hfile(table: Table, log: LogFile) -> HFileReader:
    content = context_of(table).storage.read(log.status.path)
    return HFileReader(pa.BufferReader(content), len(content))


def entries(reader: HFileReader) -> Iterator[tuple[str, bytes]]:
    for each in reader.scan():
        yield from zip(each.keys.to_pylist(), each.values().to_pylist(), strict=True)


def footer(reader: HFileReader) -> dict[str, str]:
    return {key.decode(): text.decode() for key, text in reader.info.items() if key.startswith(b"hudi.")}


def by_listing(table: Table) -> list[Any]:
    """The rows of a table as the storage lists it."""
    return held(Table(replace(context_of(table), uses_metadata=False)))


def check(table: Table, rows: list[Any]) -> None:
    """Make sure that the metadata table says of a table with some rows what is there."""
    assert held(table) == rows
    assert indexed_places(table) == places(table)
    assert problems(table) == []


@pytest.mark.parametrize("partition", ["files", "record_index"])
def test_names_and_entries_are_those_of_apache_hudi(partition: str) -> None:
    table = made()
    group = rf"{partition.replace('_', '-')}-\d{{4}}-0"
    named = re.compile(rf"{group}_\d+-\d+-\d+_\d{{17}}_1\.(log|deletes)\.hfile")
    for log in logs_in(table, partition):
        assert named.fullmatch(log.status.name)
        reader = hfile(table, log)
        is_data = log.native is NativeLog.DATA
        assert footer(reader) == {
            "hudi.log.format.VERSION": "2",
            "hudi.log.format.INSTANT_TIME": log.instant,
            "hudi.log.format.SCHEMA": stored_schema(),
            "hudi.log.format_version": "2",
            "hudi.log.block_type": "hfile_data" if is_data else "delete",
            "hudi.log.instant_time": log.instant,
        }
        expected = json.loads(stored_schema()) if is_data else DELETES
        assert json.loads(reader.schema_json or "") == expected


def test_records_and_removals_are_sorted_by_the_bytes_of_their_keys() -> None:
    table = made()
    added, removed = (each.requested for each in table.timeline.writes()[-2:])
    logs = logs_in(table, "record_index")
    found = {each.status.path: [*entries(hfile(table, each))] for each in logs}
    assert all([*each] == sorted(each, key=lambda entry: entry[0].encode()) for each in found.values())
    records = [entry for log in logs if log.instant == added for entry in found[log.status.path]]
    assert {key for key, _ in records} == {*KEYS}
    assert {value[:6] for _, value in records} == {bytes(6)}, "five meta columns are null, the key is empty"
    gone = [log for log in logs if log.instant == removed]
    assert {log.native for log in gone} == {NativeLog.DELETES}
    assert sorted(entry for log in gone for entry in found[log.status.path]) == [("a", b"\2a"), ("b", b"\2b")]


def test_a_file_group_begins_with_a_file_without_records() -> None:
    table, built = made(), "00000000000000001"
    begun = [each for each in logs_in(table, "record_index") if each.instant == built]
    names = [f"record-index-{number:04}-0_0-0-0_{built}_1.log.hfile" for number in range(10)]
    assert [each.status.name for each in begun] == names
    reader = hfile(table, begun[0])
    assert (reader.entry_count, [*entries(reader)]) == (0, [])
    assert footer(reader)["hudi.log.format.INSTANT_TIME"] == built


def test_records_and_removals_of_a_commit_are_two_files_with_a_statistic_each() -> None:
    table = made()
    table.delete_partition("oslo", options=SELDOM)
    table.upsert(rides(("d", "rome", 4, 4.0)), options=INDEXED)
    assert table.services.clean(options={**SELDOM, "hoodie.clean.commits.retained": "1"})
    metadata = metadata_of(table)
    last = metadata.own_timeline.writes()[-1]
    paths = [each.path for each in metadata.store.commit_metadata(last).stats]
    logs = [each for each in logs_in(table, "files") if each.instant == last.requested]
    assert [each.native for each in logs] == [NativeLog.DATA, NativeLog.DELETES]
    assert [f"{METADATA}/{path}" for path in paths] == [each.status.path for each in logs]
    assert [key for key, _ in entries(hfile(table, logs[1]))] == ["oslo"]
    check(table, by_listing(table))


def as_version_10(storage: Storage) -> None:
    """Raise the version of a table as Apache Hudi's master does: its metadata table stays."""
    for path in (PROPERTIES, f"{METADATA}/{PROPERTIES}"):
        text = storage.read(path).decode()
        assert "hoodie.table.version=9" in text
        storage.put(path, text.replace("hoodie.table.version=9", "hoodie.table.version=10").encode())


def test_inline_log_files_of_before_an_upgrade_and_native_ones_are_in_one_slice() -> None:
    table = made(9)
    as_version_10(context_of(table).storage)
    assert table.config.version == 10
    table.upsert(rides(("b", "rome", 5, 5.0), ("c", "oslo", 5, 5.0)), options=INDEXED)
    table.delete(rides(("ä", "rome", 6, 0.0)), options=INDEXED)
    rows = by_listing(table)
    assert {each[0] for each in rows} == {"b", "c", "\U0001f600", "\ufffd"}
    for partition in ("files", "record_index"):
        assert {each.native is None for each in logs_in(table, partition)} == {True, False}
    check(table, rows)
    compacted = compact_logs_now(table)
    assert {each.native is None for each in logs_in(table, "files") if each.instant == compacted} == {False}
    check(table, rows)
    table.upsert(rides(("b", "rome", 7, 7.0)), options=OFTEN)
    assert all(not each.logs for each in metadata_of(table).slices("record_index"))
    check(table, by_listing(table))


def compact_logs_now(table: Table) -> str:
    writer = MetadataWriter.of(context_of(table).storage, context_of(table).clock, context_of(table).ids)
    done = compact_logs(writer, metadata_of(table), table.timeline, 2, lambda: None)
    assert done
    return done


def test_a_log_compaction_makes_one_file_of_removals_and_one_of_all_records(
    limit: SetLimits,
) -> None:
    limit(metadata_block_bytes=1)  # each part is appended by itself
    table = made()
    for number in range(30):
        table.upsert(rides((f"k{number}", "rome", 4, 4.0), ("b", "rome", number, 4.0)), options=INDEXED)
    table.delete(rides(*((f"k{number}", "rome", 9, 0.0) for number in range(15))), options=INDEXED)
    requested = compact_logs_now(table)
    made_by = [each for each in logs_in(table, "record_index") if each.instant == requested]
    by_group = {each.file_id: [] for each in made_by}
    for each in made_by:
        by_group[each.file_id].append((each.native, each.version))
    both = [(NativeLog.DELETES, 1), (NativeLog.DATA, 2)]
    assert both in by_group.values() and all({*found} <= {*both} for found in by_group.values())
    for log in made_by:
        reader = hfile(table, log)
        keys = [key for key, _ in entries(reader)]
        assert keys == sorted({*keys}, key=str.encode)
        replaced = footer(reader)["hudi.log.format.COMPACTED_BLOCK_TIMES"].split(",")
        assert replaced == sorted(replaced)
        assert len(replaced) > 1
    check(table, by_listing(table))


@pytest.mark.scaled
def test_no_native_file_of_a_dead_writer_stays() -> None:
    files = files_of(context_of(made()).storage)
    for steps in range(1, STEPS_MAX, 2 * stride()):
        storage = stored(files)
        faulty = FaultyStorage(storage, steps)
        with suppress(InjectedFault):
            opened(faulty).upsert(rides(("d", "rome", 4, 4.0), ("c", "oslo", 4, 4.0)), options=INDEXED)
        table = opened(storage, START_MS + HOUR_MS)
        table.upsert(rides(("e", "rome", 5, 5.0)), options=INDEXED)
        metadata = metadata_of(table)
        known = {each.requested for each in metadata.own_timeline.writes()}
        logs = [each for partition in ("files", "record_index") for each in logs_in(table, partition)]
        assert {each.instant for each in logs} <= known, steps
        check(table, by_listing(table))
        if faulty.changes < steps:
            assert steps > 20
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


def opened(storage: Storage, start_ms: int = START_MS) -> Table:
    return Table(TableContext(storage, clock=SteppingClock(start_ms), uses_metadata=True))


@pytest.mark.parametrize("layout", ["default", "lsm_tree", None])
def test_the_metadata_table_has_the_storage_layout_of_the_table(layout: str | None) -> None:
    table = made(**({LAYOUT: layout} if layout else {}))
    own = load_config(metadata_of(table).storage)
    assert own.properties.get(LAYOUT) == ("lsm_tree" if layout == "lsm_tree" else None)
    check(table, by_listing(table))


def test_a_change_of_the_version_leaves_no_native_file_to_older_readers() -> None:
    table = made()
    rows = held(table)
    assert table.versions.downgrade(9)
    table.upsert(rides(("ä", "rome", 9, 9.0)), options=SELDOM)
    names = [each.name for each in context_of(table).storage.list_tree(METADATA)]
    assert not [each for each in names if each.endswith((".log.hfile", ".deletes.hfile"))]
    assert any(".log.1_" in each for each in names)
    assert table.versions.upgrade(10)
    table.upsert(rides(("ä", "rome", 10, 9.0)), options=SELDOM)
    assert {each.native for each in logs_in(table, "files")} == {NativeLog.DATA}
    assert len(held(table)) == len(rows)
    assert problems(table) == []


def made_native(storage: Storage, folder: str) -> int:
    """Give each block of records in the log files of a folder a file of its own; return their number."""
    count = 0
    for log in filter(None, map(LogFile.parse, storage.list_files(folder))):
        file = pa.BufferReader(storage.read(log.status.path))
        for block in log_blocks(file, log):
            if block.kind is BlockType.HFILE_DATA:
                name = f"{log.file_id}_{log.write_token}_{log.instant}_{log.version}.log.hfile"
                storage.put(f"{folder}/{name}", read_content(file, block))
                count += 1
        storage.delete([log.status.path])
    return count


def test_files_whose_entries_are_those_of_a_base_file_are_read() -> None:
    table = create(table_type=MOR, version=9)
    table = Table(replace(context_of(table), uses_metadata=True))
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=SELDOM)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=SELDOM)
    rows, paths = held(table), listed(table)
    assert len(paths) == 3
    assert made_native(context_of(table).storage, f"{METADATA}/files") > 0

    table = Table(replace(context_of(table)))
    assert listed(table) == paths
    assert held(table) == rows
    table.upsert(rides(("b", "oslo", 3, 3.0)), options=SELDOM)
    assert listed(table) > paths
