"""Base files of other formats: golden tables with their base files written anew must read as they did.

ORC files are shaped as Apache Hudi shapes them: times of day and local times are integers, fixed bytes
are binary, timestamps have no zone.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyarrow import types as pt

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.avro.blocks import encode_datums
from drawstring.formats.data_file import Selection, read_base
from drawstring.query.table_state import load_facts
from drawstring.schema.avro import arrow_to_avro
from drawstring.schema.evolution import conform, normalise
from drawstring.storage import open_storage
from tests.support.golden import cases_of, unpack
from tests.support.golden_rows import in_order, rows_of
from tests.support.hfiles import Form, hfile

DATA = Path(__file__).parents[1] / "formats/data"
IN_UTC = pa.schema([("at", pa.timestamp("us", "UTC"))])
NAMES = (
    "v6_cow_ops",
    "v6_cow_urlencode",
    "v6_cow_drop_partition_columns",
    "v6_evo_add_mor",
    "v6_evo_widen_cow",
    "v6_mor_avro",
    "v6_mor_compacted",
    "v6_mor_event_time",
    "v6_types_cow",
    "v6_types_mor_avro",
)
"""Tables of version 6, whose commits are JSON and so can name other files."""


def as_orc(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type that an ORC file of Hudi's has for a column."""
    if pt.is_timestamp(kind):
        return pa.timestamp("ns") if kind.tz else pa.int64()
    if pt.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pt.is_fixed_size_binary(kind):
        return pa.binary()
    if pt.is_struct(kind):
        return pa.struct([(each.name, as_orc(each.type)) for each in kind.fields])
    if pt.is_map(kind):
        return pa.map_(kind.key_type, as_orc(kind.item_type))
    return pa.list_(as_orc(kind.value_type)) if pt.is_list(kind) else kind


def write_orc(rows: pa.RecordBatch, path: Path) -> None:
    schema = pa.schema([(each.name, as_orc(each.type)) for each in rows.schema])
    columns = [
        array.cast(field.type, safe=False) if pt.is_timestamp(array.type) else array
        for array, field in zip(rows.columns, schema, strict=True)
    ]
    shaped = conform(pa.RecordBatch.from_arrays(columns, rows.schema.names), schema)
    orc.write_table(pa.Table.from_batches([shaped]), path, stripe_size=1)


def write_hfile(rows: pa.RecordBatch, path: Path) -> None:
    schema_json = arrow_to_avro(rows.schema, "row", "hoodie")
    content = encode_datums(rows, schema_json)
    at, pairs = 8, []
    for key in rows.column("_hoodie_record_key").to_pylist():
        size = int.from_bytes(content[at : at + 4], "big")
        pairs.append((key, content[at + 4 : at + 4 + size]))
        at += 4 + size
    path.write_bytes(hfile(sorted(pairs, key=lambda pair: pair[0].encode()), Form(schema=schema_json)))


WRITERS: dict[str, Callable[[pa.RecordBatch, Path], None]] = {"orc": write_orc, "hfile": write_hfile}


def rewritten(name: str, folder: Path, endings: tuple[str, ...]) -> Path:
    """Unpack a golden table; base files by turns get the formats of the endings."""
    root = unpack(name, folder)
    renamed = {}
    found = [path for path in sorted(root.rglob("*.parquet")) if ".hoodie" not in path.parts]
    for number, path in enumerate(found):
        ending = endings[number % len(endings)]
        if ending in WRITERS:
            new = path.with_suffix(f".{ending}")
            table = pq.read_table(path, partitioning=None, coerce_int96_timestamp_unit="us")
            rows = table.cast(normalise(table.schema.remove_metadata())).combine_chunks().to_batches()[0]
            WRITERS[ending](rows, new)
            path.unlink()
            renamed[path.name] = new.name
    for path in (root / ".hoodie").glob("*commit"):
        text = path.read_text()
        for old, new_name in renamed.items():
            text = text.replace(old, new_name)
        path.write_text(text)
    several = "true" if len(endings) > 1 else "false"
    with (root / ".hoodie/hoodie.properties").open("a") as properties:
        properties.write(f"hoodie.table.base.file.format={endings[0].upper()}\n")
        properties.write(f"hoodie.table.multiple.base.file.formats.enable={several}\n")
    return root


FORMATS = {"orc": ("orc",), "hfile": ("hfile",), "several": ("parquet", "orc", "hfile")}


@pytest.mark.parametrize("endings", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_every_query_returns_what_it_returned_from_parquet(
    name: str, endings: tuple[str, ...], tmp_path: Path
) -> None:
    facts = load_facts(open_storage(rewritten(name, tmp_path, endings)), SteppingClock())
    for case in cases_of(name):
        if case.table != "v6_cow_urlencode" or case.query != "incremental":
            table = case.scan(facts).to_arrow()
            assert in_order(rows_of(table, case.shown(table))) == in_order(case.rows()), case.name


@pytest.mark.parametrize("ending", WRITERS)
def test_conditions_and_columns_find_the_rows_that_they_find_in_parquet(ending: str, tmp_path: Path) -> None:
    plain = drawstring.open(rewritten("v6_types_cow", tmp_path / "plain", ("parquet",)))
    other = drawstring.open(rewritten("v6_types_cow", tmp_path / "other", (ending,)))
    everything = plain.scan().to_arrow()
    for column in everything.column_names:
        kind = everything.schema.field(column).type
        wanted = in_order(rows_of(plain.scan(columns=[column]).to_arrow()))
        assert in_order(rows_of(other.scan(columns=[column]).to_arrow())) == wanted
        values = everything.column(column).drop_null()
        if len(values) and not pt.is_nested(kind):
            where = pc.field(column) >= values[len(values) // 2]
            found = plain.scan(where=where).to_arrow()
            assert found.num_rows
            assert in_order(rows_of(other.scan(where=where).to_arrow())) == in_order(rows_of(found)), column


def test_hfile_base_files_of_real_hudi_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / "v9_cow_hfile.zip") as packed:
        packed.extractall(tmp_path)
    table = drawstring.open(tmp_path / "v9_cow_hfile")
    rows = {row["id"]: row for row in rows_of(table.scan().to_arrow())}
    assert sorted(rows) == list(range(8))
    shown = {name: value for name, value in rows[7].items() if not name.startswith("_hoodie")}
    assert shown == {
        "id": 7,
        "name": "naïve-7-v5",
        "part": "p1",
        "price": 15.5,
        "ts": 1005,
        "flag": False,
        "share": 1.75,
        "day": "2024-01-05",
        "at": "2024-01-01T10:00:07.000000Z",
        "fine": "1969-12-31T23:59:07.000000Z",
        "amount": "-7.05",
        "raw": "0x07ff05",
        "tags": ["t0"],
        "props": [["k0", 0]],
        "inner": {"a": 7, "b": {"c": "c7", "d": "1.5"}},
    }
    assert rows[3]["inner"] is None
    assert rows[4]["name"] is None
    dear = table.scan(columns=["id"], where="price > 6 and part = 'p0'").to_arrow()
    assert sorted(dear.column("id").to_pylist()) == [2, 4, 6]


def test_columns_come_from_a_base_file_when_nothing_else_tells_them(tmp_path: Path) -> None:
    root = rewritten("v6_cow_ops", tmp_path, ("orc",))
    for path in (root / ".hoodie").glob("*.commit"):
        commit = json.loads(path.read_text())
        commit["extraMetadata"] = {}
        path.write_text(json.dumps(commit))
    properties = root / ".hoodie/hoodie.properties"
    lines = [
        line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.create.")
    ]
    properties.write_text("\n".join(lines) + "\n")
    expected = next(case for case in cases_of("v6_cow_ops") if case.query == "snapshot")
    found = drawstring.open(root).scan().to_arrow()
    assert in_order(rows_of(found, expected.shown(found))) == in_order(expected.rows())


@pytest.mark.parametrize("ending", WRITERS)
def test_a_base_file_that_is_damaged_or_gone_is_named(ending: str, tmp_path: Path) -> None:
    root = rewritten("v6_cow_ops", tmp_path, (ending,))
    latest = drawstring.open(root).scan().tasks()[0].file_slice.base
    assert latest is not None
    path = root / latest.status.path
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorruptTableError, match="damaged") as damaged:
        drawstring.open(root).scan().to_arrow()
    assert damaged.value.path == latest.status.path
    path.unlink()
    with pytest.raises(CorruptTableError, match="missing") as gone:
        drawstring.open(root).scan().to_arrow()
    assert gone.value.path == latest.status.path


def test_a_time_too_far_away_for_arrow_is_an_error_that_says_so(tmp_path: Path) -> None:
    far = pa.table({"at": pa.array([datetime(9999, 12, 31)], pa.timestamp("us"))})
    orc.write_table(far, tmp_path / "a.orc")
    with pytest.raises(UnsupportedError, match="out of range") as error:
        list(read_base(open_storage(tmp_path), "a.orc", Selection(["at"])))
    assert error.value.path == "a.orc"


def test_base_files_of_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.avro").write_bytes(b"what it may be")
    with pytest.raises(UnsupportedError, match="only Parquet, ORC, HFile and Lance") as error:
        list(read_base(open_storage(tmp_path), "a.avro", Selection(["id"])))
    assert error.value.path == "a.avro"


@pytest.mark.parametrize(
    ("endings", "says"), [(("hfile",), "has HFILE base files"), (("parquet", "orc"), "several")]
)
def test_such_tables_are_not_written_to(endings: tuple[str, ...], says: str, tmp_path: Path) -> None:
    table = drawstring.open(rewritten("v6_cow_ops", tmp_path, endings))
    rows = table.scan().to_arrow()
    with pytest.raises(UnsupportedError, match=says):
        table.upsert(rows.drop_columns([name for name in rows.column_names if name.startswith("_hoodie")]))


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "zstd"])
def test_times_of_another_codec_are_the_same(codec: str, tmp_path: Path) -> None:
    noon = datetime(2024, 7, 1, 12)
    times = pa.table({"at": pa.array([noon, None], pa.timestamp("us"))})
    orc.write_table(times, tmp_path / "a.orc", compression=codec)
    (batch,) = read_base(open_storage(tmp_path), "a.orc", Selection(["at"], types=IN_UTC))
    assert batch.column("at").to_pylist() == [noon.replace(tzinfo=UTC), None]


def test_times_are_read_in_the_zone_that_they_were_written_in(tmp_path: Path) -> None:
    """ORC counts from 2015 in the writer's zone: the same count is an hour earlier in CET."""
    noon = datetime(2024, 7, 1, 12, tzinfo=UTC)
    times = pa.table({"at": pa.array([noon.replace(tzinfo=None)], pa.timestamp("us"))})
    orc.write_table(times, tmp_path / "a.orc", compression="uncompressed")
    content = (tmp_path / "a.orc").read_bytes()
    assert content.count(b"\x1a\x03GMT") == 1
    (tmp_path / "a.orc").write_bytes(content.replace(b"\x1a\x03GMT", b"\x1a\x03CET"))
    selection = Selection(["at"], pc.field("at") < pa.scalar(noon, IN_UTC.field("at").type), IN_UTC)
    (batch,) = read_base(open_storage(tmp_path), "a.orc", selection)
    assert batch.column("at").to_pylist() == [noon - timedelta(hours=1)]
