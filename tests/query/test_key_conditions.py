"""Reads by record key pass base files by whose bloom filter lacks the keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError
from drawstring.filegroups.file_slice_reader import ReadTask, read_slice
from drawstring.query.scan import narrowed
from drawstring.table import Table
from tests.support.tables import WITHOUT_SERVICES

CITIES = ("rome", "oslo", "lima")
TEXT = pa.string()
SCHEMA = pa.schema([("id", TEXT), ("n", pa.int64()), ("city", pa.string())])
COMPLEX = {
    "properties": {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
}
WITH_FILTER = {"hoodie.parquet.bloom.filter.enabled": "true", **WITHOUT_SERVICES}


def rides(numbers: range, key: pa.DataType = TEXT) -> pa.Table:
    """Return rows whose keys do not stand in order, so that row groups do not tell them apart."""
    mixed = [number * 7919 % 1000 for number in numbers]
    texts = mixed if pa.types.is_integer(key) else [f"{number:03}" for number in mixed]
    cities = [CITIES[number % 3] for number in numbers]
    return pa.table([pa.array(texts, key), pa.array(mixed), pa.array(cities)], names=SCHEMA.names)


def table(path: Path, key: pa.DataType = TEXT, **how: Any) -> Table:
    schema = SCHEMA.set(0, pa.field("id", key))
    given = {"record_key": "id", "partition_by": "city", "table_type": "COPY_ON_WRITE", **how}
    made = drawstring.create(path, schema, **given)
    made.upsert(rides(range(300), key), options=WITH_FILTER)
    made.upsert(rides(range(100, 200), key), options=WITH_FILTER)
    return made


def spoil_rows(made: Table, besides: str) -> None:
    """Damage the rows of all files but those of a partition, and leave the footers as they are."""
    for piece in made.inspect.files():
        if piece.partition != besides and piece.base:
            path = Path(made.uri) / piece.base.status.path
            data = bytearray(path.read_bytes())
            footer = int.from_bytes(data[-8:-4], "little") + 8
            data[4 : len(data) - footer] = b"\0" * (len(data) - footer - 4)
            path.write_bytes(data)


KEY = rides(range(300))["id"][150].as_py()
"""In a file of the first city."""

TOLD = [
    f"id = '{KEY}'",
    f"id = '{KEY}' AND n >= 0",
    f"id IN ('{KEY}', 'unknown')",
    f"_hoodie_record_key = '{KEY}'",
    f"(id = '{KEY}' OR id = 'unknown') AND n < 1000",
]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("where", TOLD)
def test_the_rows_of_files_without_the_key_are_not_looked_at(tmp_path: Path, where: str, kind: str) -> None:
    made = table(tmp_path / "t", table_type=kind)
    spoil_rows(made, besides=CITIES[0])
    assert made.scan(columns=["id"], where=where).to_arrow()["id"].to_pylist() == [KEY]


@pytest.mark.parametrize("where", [f"id = '{KEY}' OR n = 5", "id LIKE '5%'", "n = 5", f"id > '{KEY}'"])
def test_other_conditions_look_at_all_rows(tmp_path: Path, where: str) -> None:
    made = table(tmp_path / "t")
    spoil_rows(made, besides=CITIES[0])
    with pytest.raises(CorruptTableError):
        made.scan(columns=["id"], where=where).to_arrow()


@pytest.mark.parametrize("key", [pa.string(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize(
    "how",
    [
        {},
        COMPLEX,
        {**COMPLEX, "version": 8},
        {"partition_by": ()},
        {"table_type": "MERGE_ON_READ"},
    ],
    ids=["simple", "complex", "complex in version 8", "without partitions", "merge on read"],
)
def test_every_key_is_found(tmp_path: Path, key: pa.DataType, how: dict[str, Any]) -> None:
    made = table(tmp_path / "t", key, **how)
    for value in made.scan(columns=["id"]).to_arrow()["id"].to_pylist()[::17]:
        text = f"'{value}'" if pa.types.is_string(key) else value
        assert made.scan(columns=["id"], where=f"id = {text}").to_arrow()["id"].to_pylist() == [value]


COMPOUND = [
    f"id = '{KEY}' AND n = {int(KEY)}",
    f"n IN ({int(KEY)}, -1) AND id IN ('{KEY}', 'unknown')",
    f"(id = '{KEY}' AND n = {int(KEY)}) OR (id = 'unknown' AND n = 1000)",
]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("where", COMPOUND)
def test_files_are_passed_by_for_compound_keys_too(tmp_path: Path, where: str, kind: str) -> None:
    made = table(tmp_path / "t", record_key=["id", "n"], table_type=kind)
    spoil_rows(made, besides=CITIES[0])
    assert made.scan(columns=["id"], where=where).to_arrow()["id"].to_pylist() == [KEY]


@pytest.mark.parametrize("where", [f"id = '{KEY}'", f"n = {int(KEY)}", f"id = '{KEY}' OR n = {int(KEY)}"])
def test_some_columns_of_a_compound_key_are_no_key(tmp_path: Path, where: str) -> None:
    made = table(tmp_path / "t", record_key=["id", "n"])
    assert made.scan(where=where).to_arrow()["id"].to_pylist() == [KEY]
    spoil_rows(made, besides=CITIES[0])
    with pytest.raises(CorruptTableError):
        made.scan(where=where).to_arrow()


def test_compound_keys_of_null_and_empty_values_are_found(tmp_path: Path) -> None:
    made = drawstring.create(tmp_path / "t", SCHEMA, record_key=["id", "n"])
    odd = [("", 1), (None, 2), ("plain", None), ("__null__", 3)]
    rows = [{"id": text, "n": number, "city": str(at)} for at, (text, number) in enumerate(odd)]
    made.upsert(pa.Table.from_pylist(rows, SCHEMA))
    for where, city in {
        "id = '' AND n = 1": ["0"],
        "id IS NULL AND n = 2": ["1"],
        "id = '__null__' AND n = 3": ["3"],
        "(id = '' OR id = '__null__') AND n IN (1, 3)": ["0", "3"],
        "id = 'plain' AND n IS NULL": ["2"],
        "id = 'x' AND n = 1": [],
    }.items():
        found = made.scan(columns=["city"], where=where).to_arrow()["city"].to_pylist()
        assert sorted(found) == city, where


def test_keys_that_another_generator_made_are_found(tmp_path: Path) -> None:
    """A table that does not say what makes its keys, as old ones do not, may have any."""
    made = table(tmp_path / "t", **COMPLEX, version=6)
    stored = tmp_path / "t/.hoodie/hoodie.properties"
    kept = [line for line in stored.read_text().splitlines() if "keygenerator" not in line]
    stored.write_text("\n".join(kept) + "\n")
    reopened = drawstring.open(made.uri)
    assert reopened.scan(where=f"id = '{KEY}'").to_arrow().num_rows == 1


def test_files_without_a_filter_are_read(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    for piece in made.inspect.files():
        assert piece.base
        path = tmp_path / "t" / piece.base.status.path
        rows = pq.ParquetFile(path).read()
        pq.write_table(rows.replace_schema_metadata(None), path)
    assert made.scan(where=f"id = '{KEY}'").to_arrow().num_rows == 1


def test_the_keys_of_what_an_optimizer_adds_are_known(tmp_path: Path) -> None:
    made = table(tmp_path / "t", table_type="MERGE_ON_READ")
    spoil_rows(made, besides=CITIES[0])
    left = narrowed(made.scan(where="n >= 0").tasks(), ["id"], pc.field("id") == KEY)
    found = [
        batch["id"].to_pylist() for task in left if isinstance(task, ReadTask) for batch in read_slice(task)
    ]
    assert found == [[KEY]]


@pytest.mark.parametrize("ordering", [(), "n"], ids=["by commit", "by event"])
def test_a_record_found_by_its_key_is_merged_like_all(tmp_path: Path, ordering: str | tuple[()]) -> None:
    made = table(tmp_path / "t", table_type="MERGE_ON_READ", ordering=ordering)
    changed = rides(range(150, 250))
    made.upsert(
        changed.set_column(1, "n", pa.array([number % 3 * 500 for number in range(100)])),
        options=WITHOUT_SERVICES,
    )
    made.delete(rides(range(160, 170)), options=WITHOUT_SERVICES)
    made.upsert(rides(range(165, 168)), options=WITHOUT_SERVICES)
    made.update(where="id > '900'", set={"n": "n + 1"}, options=WITHOUT_SERVICES)
    rows = {row["id"]: row for row in made.scan().to_arrow().to_pylist()}
    assert 290 < len(rows) < 300
    for key in rides(range(145, 172))["id"].to_pylist():
        found = made.scan(where=f"id = '{key}'").to_arrow().to_pylist()
        assert found == [rows[each] for each in (key,) if each in rows]
