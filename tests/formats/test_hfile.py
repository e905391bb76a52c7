"""HFiles: every one in the golden tables, forms that HBase writes, lookups, damage."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.avro.container import encode_long
from drawstring.formats.bloom import DYNAMIC, BloomFilter
from drawstring.formats.hfile import HFileReader, blocks, read_hfile_records
from drawstring.formats.hfile.blocks import LEAF_INDEX, BlockSource, Codec, HFileEntries, decode_entries
from drawstring.formats.hfile.reader import IndexEntry, data_blocks
from drawstring.formats.log_inline import BlockType
from tests.support.hfiles import GZ, NONE, Form, block, hfile, hfile_of, reader
from tests.support.hfiles import entries as encoded_entries
from tests.support.hudi_files import content_of, scan
from tests.support.limits import SetLimits

GOLDEN = Path(__file__).parents[1] / "golden/tables"


def pairs_of(data: bytes, keys: list[str] | None = None) -> list[tuple[str, bytes]]:
    return pairs_in(reader(data).scan() if keys is None else reader(data).seek(pa.array(keys, pa.string())))


def pairs_in(found: Iterable[HFileEntries]) -> list[tuple[str, bytes]]:
    return [
        pair for each in found for pair in zip(each.keys.to_pylist(), each.values().to_pylist(), strict=True)
    ]


def real_hfiles() -> Iterator[tuple[str, bytes, str | None]]:
    """Yield name, bytes and block schema of each HFile and HFile block in the golden tables."""
    for path in sorted(GOLDEN.glob("*.zip")):
        with zipfile.ZipFile(path) as packed:
            for name in packed.namelist():
                if name.endswith(".hfile"):
                    yield name, packed.read(name), None
                elif ".log." in name and not name.endswith(".crc"):
                    file = packed.read(name)
                    for block in scan(file):
                        if block.kind is BlockType.HFILE_DATA:
                            yield name, content_of(file, block), block.schema_json


def plain(value: Any) -> Any:
    """Return a value of Arrow as fastavro has it: maps as dicts, of a union's members the one that is."""
    if isinstance(value, dict) and value and all(name.startswith("member") for name in value):
        return next((plain(each) for each in value.values() if each is not None), None)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list) and value and all(isinstance(each, tuple) for each in value):
        return {key: plain(each) for key, each in value}
    return value


def test_every_hfile_of_the_golden_tables_is_read_in_full() -> None:
    files = total = 0
    for name, data, schema_json in real_hfiles():
        opened = reader(data)
        found = list(opened.scan())
        count = sum(len(each.keys) for each in found)
        assert count == opened.entry_count, name
        schema_json = schema_json or opened.schema_json
        assert schema_json is not None
        rows = [row for batch in read_hfile_records(found, schema_json) for row in batch.to_pylist()]
        schema = fastavro.parse_schema(json.loads(schema_json))
        expected: list[Any] = [
            fastavro.schemaless_reader(io.BytesIO(value), schema, None) | {"key": key}
            for each in found
            for key, value in zip(each.keys.to_pylist(), each.values().to_pylist(), strict=True)
        ]
        empty: dict[str, Any] = {}
        assert [plain(row) for row in rows] == [
            {k: [] if v == empty else v for k, v in row.items()} for row in expected
        ], name
        files, total = files + 1, total + count
    assert (files, total) == (399, 3217)


def test_the_bloom_filter_of_a_real_hfile_knows_its_keys() -> None:
    data = next(data for name, data, _ in real_hfiles() if name.endswith(".hfile"))
    opened = reader(data)
    bloom = opened.meta("bloomFilter")
    assert bloom is not None

    keys = pa.chunked_array([each.keys for each in opened.scan()]).combine_chunks()

    assert BloomFilter.decode(bloom.decode(), DYNAMIC).contains(keys).all()
    assert opened.meta("other") is None


PAIRS = [(f"k{at:03d}", b"v" * at) for at in range(200)]
FORMS = {
    "gzip": Form(),
    "plain": Form(codec=NONE),
    "leaves": Form(with_leaves=True),
    "no timestamps": Form(with_timestamps=False),
    "one block": Form(block_entries=1000),
    "long values": Form(codec=NONE, block_entries=7, with_leaves=True),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_is_read(form: Form) -> None:
    data = hfile(PAIRS, form)

    assert pairs_of(data) == PAIRS
    assert reader(data).meta("note") == b"a note"
    wanted = ["k199", "k000", "k001", "zz", "", "k0015", "k100"]
    assert pairs_of(data, wanted) == [pair for pair in PAIRS if pair[0] in wanted]


@given(
    st.dictionaries(st.text(max_size=6), st.binary(max_size=300), max_size=30),
    st.integers(1, 5),
    st.booleans(),
    st.lists(st.text(max_size=6), max_size=5),
)
def test_any_keys_are_found(held: dict[str, bytes], size: int, leaves: bool, others: list[str]) -> None:
    pairs = sorted(held.items(), key=lambda pair: pair[0].encode())
    data = hfile(pairs, Form(block_entries=size, with_leaves=leaves and bool(pairs)))

    assert pairs_of(data) == pairs
    assert pairs_of(data, [*list(held)[::2], *others]) == [
        pair for pair in pairs if pair[0] in {*list(held)[::2], *others}
    ]


def test_equal_keys_in_two_blocks_are_all_found() -> None:
    pairs = [("a", b"1"), ("b", b"2"), ("b", b"3"), ("b", b"4"), ("c", b"5")]

    for size in (1, 2, 3):
        found = pairs_of(hfile(pairs, Form(block_entries=size)), ["b"])
        assert [value for _, value in found] == [b"2", b"3", b"4"]


@given(
    st.dictionaries(st.text("ab\0ä", max_size=5), st.binary(max_size=40), max_size=40),
    st.integers(1, 5),
    st.lists(st.text("ab\0ä", max_size=4), max_size=4),
)
def test_any_prefixes_are_found(held: dict[str, bytes], size: int, prefixes: list[str]) -> None:
    pairs = sorted(held.items(), key=lambda pair: pair[0].encode())
    data = hfile(pairs, Form(block_entries=size))

    assert pairs_in(reader(data).seek_prefixes(prefixes)) == [
        pair for pair in pairs if pair[0].startswith(tuple(prefixes))
    ]


@given(st.dictionaries(st.text(max_size=20), st.binary(max_size=200), max_size=60), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_drawstring_writes_is_read_back(
    limit: SetLimits, held: dict[str, bytes], drawn: st.DataObject
) -> None:
    limit(hfile_block_bytes_max=drawn.draw(st.integers(1, 3000)))
    data = hfile_of(held)

    ordered = sorted(held.items(), key=lambda pair: pair[0].encode())
    assert pairs_of(data) == ordered
    some = drawn.draw(st.lists(st.sampled_from(sorted(held)), max_size=9)) if held else []
    assert pairs_of(data, some) == [pair for pair in ordered if pair[0] in some]
    begins = tuple(key[:2] for key in some)
    assert pairs_in(reader(data).seek_prefixes(begins)) == [p for p in ordered if p[0].startswith(begins)]


def test_a_lookup_of_many_keys_reads_each_block_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = reader(hfile(PAIRS, Form(block_entries=10)))
    read: list[int] = []
    block_of = BlockSource.block
    monkeypatch.setattr(
        BlockSource, "block", lambda self, at, *magics: read.append(at) or block_of(self, at, *magics)
    )

    wanted = [f"k{at:03d}" for at in range(199, 50, -1)]
    assert [key for key, _ in pairs_in(opened.seek(pa.array(wanted)))] == wanted[::-1]
    assert len(read) == len(set(read)) <= 16
    assert len(list(opened.seek(pa.array(wanted)))) == len(list(opened.seek_prefixes(["k1"]))) == 1
    read.clear()
    assert [key for key, _ in pairs_in(opened.seek(pa.array(["k125"])))] == ["k125"]
    assert len(read) == 1
    read.clear()
    assert len(pairs_in(opened.seek_prefixes(["k12", "k19", "k0000"]))) == 20
    assert len(read) <= 6


LIKE_KEYS = [encoded_entries([("a", b"b")], Form()), b"\0\x7f" + b"\xff" * 7 + b"\x04"]
"""Values that look like what surrounds them."""


@given(
    st.lists(st.tuples(st.text(max_size=30), st.binary(max_size=200) | st.sampled_from(LIKE_KEYS))),
    st.booleans(),
)
def test_a_block_decodes_to_the_entries_written(held: list[tuple[str, bytes]], stamps: bool) -> None:
    decoded = decode_entries(encoded_entries(held, Form(with_timestamps=stamps)), stamps)

    assert pairs_in([decoded]) == held


@given(st.lists(st.tuples(st.text(max_size=9), st.binary(max_size=9)), min_size=1, max_size=9), st.data())
def test_a_damaged_block_decodes_as_if_walked_through(
    held: list[tuple[str, bytes]], drawn: st.DataObject
) -> None:
    damaged = bytearray(encoded_entries(held, Form()))
    for _ in range(drawn.draw(st.integers(1, 3))):
        damaged[drawn.draw(st.integers(0, len(damaged) - 1))] = drawn.draw(st.integers(0, 255))

    def decoded() -> object:
        try:
            return pairs_in([decode_entries(bytes(damaged), True)])
        except (UnsupportedError, ValueError, LookupError, struct.error) as error:
            return type(error)

    found = decoded()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(blocks, "_marked_starts", lambda *_: None)
        assert found == decoded()


@pytest.mark.parametrize("stamps", [True, False])
def test_no_loop_goes_through_entries_of_a_few_lengths(monkeypatch: pytest.MonkeyPatch, stamps: bool) -> None:
    pairs = [(f"key{at}", b"v" * (at % 40)) for at in range(10_000)]
    monkeypatch.delattr(blocks, "_walked_starts")

    decoded = decode_entries(encoded_entries(pairs, Form(with_timestamps=stamps)), stamps)

    assert pairs_in([decoded]) == pairs


def test_a_lookup_of_one_key_decodes_a_small_part_of_a_large_index(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 50_000
    opened = reader(hfile_of({f"key-{at:08d}": bytes(40) for at in range(count)}))
    read, decode = 0, HFileReader._entries

    def counted(self: HFileReader, of: IndexEntry) -> HFileEntries:
        nonlocal read
        found = decode(self, of)
        read += len(found.keys)
        return found

    monkeypatch.setattr(HFileReader, "_entries", counted)
    assert [key for key, _ in pairs_in(opened.seek(pa.array(["key-00040001"])))] == ["key-00040001"]
    assert 0 < read <= count / 20


@given(st.binary(max_size=30), st.data())
def test_any_changed_byte_is_read_or_refused(value: bytes, drawn: st.DataObject) -> None:
    data = bytearray(hfile_of({f"k{at}": value for at in range(9)}))
    place = drawn.draw(st.integers(0, len(data) - 1))
    data[place] = drawn.draw(st.integers(0, 255))

    with suppress(CorruptTableError, UnsupportedError):
        pairs_of(bytes(data))


def test_an_empty_file_has_no_entries() -> None:
    assert pairs_of(hfile([])) == []
    assert pairs_of(hfile([]), ["a"]) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"DATABLK*", b"DATABLK?", 1),
        lambda data: data.replace(b"FILEINF2", b"IDXROOT2", 1),
        lambda data: data.replace(b"PBUF", b"PBUX"),
        lambda data: hfile(PAIRS, Form(codec=NONE, counted=len(PAIRS) + 1)),
        lambda data: data.replace(b"\0\0\0\x10\0\0\0\x05", b"\0\0\0\x10\x7f\xff\xff\xff", 1),
        lambda data: data.replace(b"\0\0\0\x10\0\0\0\x05", b"\0\0\0\x10\xff\xff\xff\xff", 1),
    ],
)
def test_damage_is_corrupt(damage: Any) -> None:
    data = hfile(PAIRS, Form(codec=NONE))
    assert damage(data) != data

    with pytest.raises(CorruptTableError):
        pairs_of(damage(data))


@pytest.mark.parametrize(("codec", "name"), [(0, "LZO"), (3, "SNAPPY"), (4, "LZ4"), (6, "ZSTD")])
def test_other_compressions_are_refused_by_name(codec: int, name: str) -> None:
    data = hfile(PAIRS, Form(codec=NONE)).replace(b"\x01c\x60\x02", b"\x01c\x60" + bytes([codec]))

    with pytest.raises(UnsupportedError, match=name):
        reader(data)


def test_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 2"):
        reader(hfile(PAIRS)[:-1] + b"\x02")


def test_a_block_that_unpacks_to_more_than_it_says_is_corrupt() -> None:
    data = bytearray(hfile([("a", b"\0" * 50_000_000)]))
    data[12:16] = (1000).to_bytes(4, "big")
    before = pa.total_allocated_bytes()

    with pytest.raises(CorruptTableError, match="instead of 1000"):
        pairs_of(bytes(data))
    assert pa.total_allocated_bytes() - before < 1 << 20


SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": ["null", "long"]}],
    }
)


def test_the_key_goes_where_a_record_left_it_empty() -> None:
    pairs = [("a", b"\x00\x02\x04"), ("b", b"\x02x\x00")]

    batches = list(read_hfile_records(reader(hfile(pairs)).scan(), SCHEMA))

    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"key": "a", "value": 2},
        {"key": "x", "value": None},
    ]
    (only,) = read_hfile_records(reader(hfile(pairs)).scan(), SCHEMA, ["value"])
    assert only.to_pydict() == {"value": [2, None]}


def test_a_record_that_does_not_fit_its_schema_is_corrupt() -> None:
    with pytest.raises(CorruptTableError, match="record of an HFile"):
        list(read_hfile_records(reader(hfile([("a", b"\x00\x02")])).scan(), SCHEMA))


def test_an_endless_array_of_unions_is_corrupt() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "array", "items": ["null", "int", "string"]}}],
    }
    endless = encode_long(100_000) + b"\x00" * 100_001

    with pytest.raises(CorruptTableError, match="array of unions"):
        list(read_hfile_records(reader(hfile([("a", endless)])).scan(), json.dumps(schema)))


def test_a_block_that_says_it_unpacks_to_very_much_is_not_unpacked() -> None:
    data = hfile([("k", bytes(65 << 20))], Form())
    assert len(data) < 200_000

    tracemalloc.start()
    try:
        with pytest.raises(CorruptTableError, match="claims to decompress"):
            pairs_of(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_an_index_cannot_name_more_blocks_than_fit_into_the_file() -> None:
    count = 100_000
    entries = b"".join(struct.pack(">qih", at, 0, 0) for at in range(count))
    places = struct.pack(f">{count + 1}i", *range(0, 14 * (count + 1), 14))
    leaf = block(LEAF_INDEX, struct.pack(">i", count) + places + entries, GZ)
    source = BlockSource(pa.BufferReader(leaf), len(leaf), Codec.GZ)

    with pytest.raises(ValueError, match="claims 100000 entries"):
        data_blocks(source, [IndexEntry(b"\0\0", 0)], 2)
