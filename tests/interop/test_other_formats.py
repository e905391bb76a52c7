"""Tables with ORC and Lance base files: real Hudi and drawstring read and go on with each other's.

Hudi writes no dates to ORC files, and it has no maps in Lance files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.model.files import ORC as ORC_EXTENSION
from drawstring.model.files import file_extension
from tests.support.histories import Case, write
from tests.support.interop import assert_both_read, hudi_options
from tests.support.referee import Referee, RefereeError
from tests.support.tables import COW, MOR

BASE_FORMAT = "hoodie.table.base.file.format"
ORC, LANCE = {BASE_FORMAT: "ORC"}, {BASE_FORMAT: "LANCE"}
SPARK_ROWS = {"hoodie.datasource.write.record.merger.impls": "org.apache.hudi.DefaultSparkRecordMerger"}
"""Hudi writes Lance files from rows of Spark alone, not from Avro records."""

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.decimal128(12, 2)),
        ("stops", pa.list_(pa.string())),
        ("driver", pa.struct([("name", pa.string()), ("age", pa.int32())])),
        ("tags", pa.map_(pa.string(), pa.int64())),
        ("seen", pa.timestamp("us", "UTC")),
    ]
)
DATED = SCHEMA.append(pa.field("day", pa.date32()))
WITHOUT_MAPS = DATED.remove(DATED.get_field_index("tags"))


@dataclass(frozen=True)
class Form:
    """A format of base files.

    Attributes:
        referee: real Hudi, with what it needs to read it.
        properties: of a table with it.
        schema: columns that it has.
        options: of Hudi's writes.
    """

    referee: Referee
    properties: Mapping[str, str]
    schema: pa.Schema
    options: Mapping[str, str]

    def hudi_writes(self, path: str, rows: pa.Table, table_type: str, **extra: str) -> None:
        given = {**hudi_options(Case(9, table_type, "avro")), **self.options, **extra}
        self.referee.write(path, rows.select(self.schema.names), given)

    def created(self, path: Path, table_type: str) -> drawstring.Table:
        return created(path, table_type, self.schema, self.properties)

    def rides(self, ts: int, *ids: int) -> pa.Table:
        return rides(ts, *ids, schema=self.schema)

    def assert_both_read(self, path: str, *parts: pa.Table) -> None:
        expected = shown(pa.concat_tables(parts), self.schema)
        table = drawstring.open(path)
        assert shown(table.scan().to_arrow(), self.schema) == expected
        assert shown(self.referee.read(path), self.schema) == expected
        for where, fits in (
            ("ts > 2", lambda row: row["ts"] > 2),
            ("id = '9'", lambda row: row["id"] == "9"),
        ):
            found = shown(table.scan(where=where).to_arrow(), self.schema)
            assert found == [row for row in expected if fits(row)]
        names = [each.base.status.name for each in table.inspect.files() if each.base]
        assert {*map(file_extension, names)} == {self.extension}
        assert table.services.validate().is_sound

    def compact(self, path: str) -> None:
        """Compact a table with Hudi, which writes no ORC files in compactions: those are ours."""
        options = {**hudi_options(Case(9, MOR, "avro")), **self.options}
        every_log = {**options, "hoodie.compact.inline.max.delta.commits": "1"}
        if self.extension == ORC_EXTENSION:
            with pytest.raises(RefereeError, match="Not support write to Orc file"):
                self.referee.compact(path, every_log)
            assert drawstring.open(path).services.compact()
        else:
            assert self.referee.compact(path, every_log)

    @property
    def extension(self) -> str:
        return f".{self.properties[BASE_FORMAT].lower()}"


@pytest.fixture(params=["orc", pytest.param("lance", marks=pytest.mark.long)])
def form(request: pytest.FixtureRequest) -> Form:
    if request.param == "orc":
        return Form(request.getfixturevalue("referee"), ORC, SCHEMA, {})
    return Form(request.getfixturevalue("lance_referee"), LANCE, WITHOUT_MAPS, SPARK_ROWS)


def rides(ts: int, *ids: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    rows = [
        {
            "id": str(number),
            "city": "rome",
            "ts": ts,
            "fare": Decimal(number * ts),
            "stops": ["a", None],
            "driver": {"name": "d", "age": number},
            "tags": [("k", ts)],
            "seen": dt.datetime(2024, 5, 1, 12, 0, ts, tzinfo=dt.UTC),
            "day": dt.date(2024, 5, ts),
        }
        for number in ids
    ]
    return pa.Table.from_pylist(rows, schema)


def created(
    path: Path, table_type: str, schema: pa.Schema, properties: Mapping[str, str] = ORC
) -> drawstring.Table:
    how = {"name": "rides", "record_key": "id", "partition_by": "city", "ordering": "ts", "version": 9}
    return drawstring.create(path, schema, **how, table_type=table_type, properties=properties)


def shown(rows: pa.Table, schema: pa.Schema = SCHEMA) -> list[dict[str, Any]]:
    return sorted(rows.select(schema.names).cast(schema).to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_hudi_reads_base_files_of_drawstring(form: Form, tmp_path: Path, table_type: str) -> None:
    history = write(str(tmp_path / "rides"), Case(9, table_type), properties=form.properties)
    assert_both_read(form.referee, history)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_both_write_a_table_in_turns(form: Form, tmp_path: Path, table_type: str) -> None:
    table = form.created(tmp_path / "t", table_type)
    table.upsert(form.rides(1, 0, 1, 2, 3))
    form.hudi_writes(table.uri, form.rides(2, 1, 7), table_type)
    table.upsert(form.rides(3, 2))
    if table_type == MOR:
        assert table.services.compact()
    form.hudi_writes(table.uri, form.rides(4, 3, 9), table_type)
    parts = [form.rides(*each) for each in ((1, 0), (2, 1, 7), (3, 2), (4, 3, 9))]
    form.assert_both_read(table.uri, *parts)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_both_go_on_with_a_table_that_hudi_made(form: Form, tmp_path: Path, table_type: str) -> None:
    path = str(tmp_path / "t")
    form.hudi_writes(path, form.rides(1, 0, 1, 2, 3), table_type, **form.properties)
    form.assert_both_read(path, form.rides(1, 0, 1, 2, 3))
    table = drawstring.open(path)
    table.upsert(form.rides(2, 1, 7))
    table.delete(form.rides(2, 2))
    form.hudi_writes(path, form.rides(3, 3, 9), table_type)
    parts = [form.rides(*each) for each in ((1, 0), (2, 1, 7), (3, 3, 9))]
    form.assert_both_read(path, *parts)
    if table_type == MOR:
        form.compact(path)
        form.assert_both_read(path, *parts)


def test_hudi_writes_no_dates_to_orc_files_not_even_to_its_own(referee: Referee, tmp_path: Path) -> None:
    options = hudi_options(Case(9, COW))
    with pytest.raises(RefereeError):
        referee.write(str(tmp_path / "theirs"), rides(1, 0, schema=DATED), {**options, **ORC})
    table = created(tmp_path / "ours", COW, DATED)
    table.upsert(rides(1, 0, 1, schema=DATED))
    with pytest.raises(RefereeError):
        referee.write(table.uri, rides(2, 1, schema=DATED), options)
    table.upsert(rides(3, 2, schema=DATED))
    expected = shown(pa.concat_tables([rides(1, 0, 1), rides(3, 2)]))
    assert shown(table.scan().to_arrow()) == shown(referee.read(table.uri)) == expected
