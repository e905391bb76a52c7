"""Comments of columns: stored as `doc` of the Avro schema, and kept by writes and changes of columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.query.table_state import facts_of
from drawstring.table import Table
from drawstring.testing import context_of

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={"comment": "the key"}),
        pa.field("fare", pa.float64()),
        pa.field("at", pa.struct([("x", pa.int32()), ("y", pa.int32())])),
    ]
)


def begun(path: Path, kind: str = "COPY_ON_WRITE") -> Table:
    table = drawstring.create(path, SCHEMA, record_key="id", table_type=kind)
    table.insert(pa.Table.from_pylist([{"id": 1, "fare": 1.5, "at": {"x": 1, "y": 2}}], SCHEMA))
    return table


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_comment_stays_with_its_column(tmp_path: Path, kind: str) -> None:
    table = begun(tmp_path / "t", kind)
    assert table.columns.comments == {"id": "the key"}
    table.columns.comment("fare", "in euros")
    table.columns.comment("at.x", "to the east")
    wider = pa.schema([*SCHEMA, ("note", pa.string())])
    table.upsert(pa.Table.from_pylist([{"id": 1, "fare": 2.5, "at": None, "note": "n"}], wider))
    assert table.columns.comments == {"id": "the key", "fare": "in euros", "at.x": "to the east"}
    assert table.config.history is None
    table.columns.rename("at", "place")
    table.columns.add("tip", pa.int32(), first=True, comment="in cents")
    table.columns.comment("id", None)
    expected = {"tip": "in cents", "fare": "in euros", "place.x": "to the east"}
    assert table.columns.comments == expected
    newest = facts_of(context_of(table)).store.commit_metadata(table.timeline.writes()[-1]).extra
    docs = {each["name"]: each.get("doc") for each in json.loads(newest["latest_schema"])["fields"]}
    assert (docs["tip"], docs["fare"], docs["id"], docs["note"]) == ("in cents", "in euros", None, None)
    table.columns.drop("place")
    assert drawstring.open(tmp_path / "t").columns.comments == {"tip": "in cents", "fare": "in euros"}
    assert table.scan(columns=["id", "fare", "note"]).to_arrow().to_pylist() == [
        {"id": 1, "fare": 2.5, "note": "n"}
    ]


def test_a_comment_alone_leaves_files_and_statistics_as_they_are(tmp_path: Path) -> None:
    table = begun(tmp_path / "t")
    table.indexes.create("column_stats")
    before = table.inspect.files()
    table.columns.comment("fare", 'in "euros"\nand cents')
    assert table.inspect.files() == before
    assert "column_stats" in table.config.metadata_partitions
    assert table.columns.comments["fare"] == 'in "euros"\nand cents'
    assert table.services.validate().findings == ()


def test_comments_that_change_nothing_are_refused(tmp_path: Path) -> None:
    table = begun(tmp_path / "t")
    for change, why in (
        (lambda: table.columns.comment("id", "the key"), "has these columns already"),
        (lambda: table.columns.comment("fare", None), "has these columns already"),
        (lambda: table.columns.comment("gone", "x"), "There is no column gone"),
        (lambda: table.columns.comment("fare", 5), "The comment of a column is a text"),
        (lambda: table.columns.comment("_hoodie_record_key", "x"), "is a column of the table format"),
    ):
        with pytest.raises(InvalidError, match=why):
            change()
    assert len(table.timeline.writes()) == 1


@pytest.mark.parametrize("writes", [False, True])
def test_a_comment_that_is_not_utf8_is_refused_with_its_column(tmp_path: Path, writes: bool) -> None:
    inner = pa.struct([pa.field("x", pa.int32(), metadata={b"comment": b"\xfcber"})])
    schema = pa.schema([("id", pa.int64()), ("at", inner)])
    with pytest.raises(InvalidError, match=r"The comment of column at\.x is not UTF-8"):
        if writes:
            table = drawstring.create(tmp_path / "t", schema.remove_metadata().remove(1), record_key="id")
            table.insert(pa.Table.from_pylist([{"id": 1, "at": None}], schema))
        else:
            drawstring.create(tmp_path / "t", schema, record_key="id")


def told(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    return pa.field(name, kind, metadata={"comment": comment})


def test_comments_inside_of_columns_and_of_columns_that_a_write_adds_are_kept(tmp_path: Path) -> None:
    inner = pa.struct([told("x", pa.int32(), "to the east"), ("y", pa.int32())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("at", inner),
            ("way", pa.list_(inner)),
            ("by", pa.map_(pa.string(), inner)),
        ]
    )
    table = drawstring.create(tmp_path / "t", schema, record_key="id")
    row = {"id": 1, "at": {"x": 1, "y": 2}, "way": [], "by": [("a", None)]}
    table.insert(pa.Table.from_pylist([row], schema))
    kept = {"at.x": "to the east", "way.element.x": "to the east", "by.value.x": "to the east"}
    assert table.columns.comments == kept
    wider = pa.schema([*schema.remove_metadata(), told("tip", pa.int64(), "in cents")])
    again = pa.schema([told("id", pa.int64(), "another"), *list(wider)[1:]])
    table.upsert(pa.Table.from_pylist([{**row, "tip": 1}], again))
    assert drawstring.open(tmp_path / "t").columns.comments == {**kept, "tip": "in cents"}
    assert table.scan(["id", "at", "tip"]).to_arrow().to_pylist() == [
        {"id": 1, "at": {"x": 1, "y": 2}, "tip": 1}
    ]
