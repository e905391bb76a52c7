"""Damaged native log files of each format end in rows or in an error that names the file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from drawstring.base.errors import CorruptTableError, DrawstringError, UnsupportedError
from drawstring.table import Table
from tests.fuzz.damage import damaged
from tests.fuzz.decoders import Decode, native_log_seeds
from tests.support.rows import SCHEMA, rides
from tests.support.tables import MOR, WITHOUT_SERVICES, create

pytest.importorskip("lance")
SOME_LOST = {
    "all but the magic": lambda data: data[:4],
    "second half": lambda data: data[: len(data) // 2],
    "last byte": lambda data: data[:-1],
    "first bytes": lambda data: data[9:],
}


def logs_of(root: Path, base_format: str) -> tuple[Table, list[Path]]:
    """Return a table with a log file of records and one of deletes, and the two files."""
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    properties = {"hoodie.table.base.file.format": base_format}
    table = create(schema, path=root, table_type=MOR, version=10, properties=properties)
    rows = [(f"k{number}", "rome", 1, number / 7) for number in range(200)]
    table.insert(
        rides(*rows).append_column("_hoodie_is_deleted", pa.array([False] * 200)), options=WITHOUT_SERVICES
    )
    later = rides(*((key, part, 2, fare + 1) for key, part, _, fare in rows[:120]))
    gone = pa.array([number % 3 == 0 for number in range(120)])
    table.upsert(later.append_column("_hoodie_is_deleted", gone), options=WITHOUT_SERVICES)
    found = [root / log.status.path for each in table.inspect.files() for log in each.logs]
    assert sorted(path.name.split(".")[-2] for path in found) == ["deletes", "log"]
    return table, found


@pytest.mark.parametrize("base_format", ["PARQUET", "ORC", "LANCE"])
def test_a_scan_of_a_damaged_log_file_names_it(tmp_path: Path, base_format: str) -> None:
    table, paths = logs_of(tmp_path / "t", base_format)
    sound_rows = table.scan().to_arrow()
    for path in paths:
        sound = path.read_bytes()
        for damage in SOME_LOST.values():
            path.write_bytes(damage(sound))
            try:
                rows = table.scan().to_arrow()
            except CorruptTableError as error:
                assert error.path is not None and path.name in error.path
            else:  # the footer was read before, and the damage is not in the columns
                assert rows.equals(sound_rows)
        path.write_bytes(sound)
    assert table.scan().to_arrow().equals(sound_rows)


@pytest.mark.parametrize("kind", [".log", ".deletes"])
@pytest.mark.parametrize("extension", [".hfile", ".parquet", ".orc"])
def test_damage_at_any_place_of_a_log_file_is_an_error_for_people(kind: str, extension: str) -> None:
    read, sound = seed_of(kind + extension)
    rng = Random(f"{kind}{extension}")
    found = [read_error(read, damaged(sound, rng)) for _ in range(400)]
    found += [read_error(read, sound[:at]) for at in range(0, len(sound), 1 + len(sound) // 200)]
    assert sum(error is not None for error in found) > 100


@pytest.mark.parametrize("kind", [".log", ".deletes"])
def test_a_cut_lance_log_file_is_an_error_for_people(kind: str) -> None:
    read, sound = seed_of(kind + ".lance")
    for at in range(0, len(sound), 1 + len(sound) // 200):
        assert read_error(read, sound[:at]) is not None


def test_each_bit_of_an_orc_footer_may_be_wrong() -> None:
    read, sound = seed_of(".log.orc")
    for at in range(len(sound) // 2, len(sound)):
        for bit in range(8):
            read_error(read, sound[:at] + bytes([sound[at] ^ 1 << bit]) + sound[at + 1 :])


def seed_of(ending: str) -> tuple[Decode, bytes]:
    read, sound = next((read, data) for name, read, data in native_log_seeds() if name == ending)
    read(sound)
    return read, sound


def read_error(read: Decode, data: bytes) -> DrawstringError | None:
    """Return the error of a read, None if the damage does no harm; others errors than ours are raised."""
    try:
        read(data)
    except (CorruptTableError, UnsupportedError) as error:
        return error
    return None
