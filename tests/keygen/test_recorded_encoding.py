"""The encoding of single-column keys that Hudi's upgrade to version 9 records in the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.merge_tables import set_properties
from tests.support.rows import rides
from tests.support.tables import create

ENCODING = "hoodie.table.complex.keygen.encoding"
COMPLEX = {"hoodie.datasource.write.keygenerator.type": "COMPLEX"}


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize(("encoding", "expected"), [("VALUE_ONLY", "a"), ("FIELD_PREFIXED", "id:a")])
def test_writes_and_look_ups_keep_to_the_recorded_encoding(
    tmp_path: Path, version: int, encoding: str, expected: str
) -> None:
    create(path=tmp_path / "t", version=version, properties=COMPLEX)
    table = set_properties(tmp_path / "t", {ENCODING: encoding})
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 7.0)))
    table.upsert(rides(("a", "rome", 2, 5.0)))
    found = table.scan(["_hoodie_record_key", "fare"], where="id = 'a'").to_arrow()
    assert found.to_pylist() == [{"_hoodie_record_key": expected, "fare": 5.0}]
