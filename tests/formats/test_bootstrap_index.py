"""The HFiles that a bootstrap writes: what they hold, in any number of blocks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError
from drawstring.base.limits import Limits
from drawstring.formats.bootstrap_index import (
    SourceFile,
    encode_bootstrap_index,
    read_bootstrap_index,
    source_files,
)
from tests.support.hfiles import hfile_of, reader


@given(st.dictionaries(st.text(max_size=200), st.binary(max_size=300), max_size=30))
def test_entries_come_back_in_the_order_of_their_keys(entries: dict[str, bytes]) -> None:
    data = hfile_of(entries, {b"about": b"tests"})
    found = [
        pair
        for each in reader(data).scan()
        for pair in zip(each.keys.to_pylist(), each.values().to_pylist(), strict=True)
    ]
    assert found == sorted(entries.items(), key=lambda entry: entry[0].encode())
    assert reader(data).info[b"about"] == b"tests"


def test_a_key_is_found_in_whichever_block_it_is() -> None:
    entries = {f"part={number:05}": bytes(1_000) + str(number).encode() for number in range(3_000)}
    data = hfile_of(entries)
    assert len(data) > 2 * Limits().hfile_block_bytes_max
    for number in (0, 1, 1_048, 1_500, 2_999):
        key = f"part={number:05}"
        (found,) = reader(data).seek(pa.array([key, "part=none"]))
        assert (found.keys.to_pylist(), found.values().to_pylist()) == ([key], [entries[key]])


def test_the_index_tells_the_source_of_every_file_by_partition() -> None:
    files = [
        SourceFile(city, f"group-{number}", f"file:///lake/{city}/{number}", city, 10, 20)
        for number, city in enumerate(("oslo", "lima", "oslo", "città"))
    ]
    by_partition, by_file_id = encode_bootstrap_index(files, "file:///lake", created_ms=7)
    index = read_bootstrap_index(pa.BufferReader(by_partition), len(by_partition))
    assert {partition: source_files(entry) for partition, entry in index.items()} == {
        "lima": {"group-1": "file:///lake/lima/1"},
        "oslo": {"group-0": "file:///lake/oslo/0", "group-2": "file:///lake/oslo/2"},
        "città": {"group-3": "file:///lake/città/3"},
    }
    assert reader(by_file_id).entry_count == 4
    with pytest.raises(CorruptTableError):
        source_files(index["oslo"][:-3])
