"""`drawstring columns` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.cli import app

SCHEMA = pa.schema([("id", pa.int64()), ("fare", pa.float32()), ("note", pa.string())])
WITH_STRUCT = pa.schema([("id", pa.int64()), ("st", pa.struct([("a", pa.int32()), ("b", pa.string())]))])


@pytest.fixture
def table(tmp_path: Path) -> drawstring.Table:
    made = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    made.insert(pa.Table.from_pylist([{"id": 1, "fare": 1.5, "note": "n"}], SCHEMA))
    return made


def test_columns_are_changed(text: Any, table: drawstring.Table) -> None:
    assert text("columns", "rename", table.uri, "fare", "price").strip().endswith(": id, price, note")
    done = json.loads(text("columns", "add", table.uri, "tip", "decimal(10,2)", "--after", "id", "--json"))
    assert done["columns"] == ["id", "tip", "price", "note"]
    assert done["instant"] == table.timeline.writes()[-1].requested
    text("columns", "change-type", table.uri, "price", "double")
    text("columns", "move", table.uri, "note", "--first")
    text("columns", "comment", table.uri, "price", "in euros")
    assert table.schema == pa.schema(
        [("note", pa.string()), ("id", pa.int64()), ("tip", pa.decimal128(10, 2)), ("price", pa.float64())]
    )
    assert "in euros" in text("show", table.uri)
    assert json.loads(text("show", table.uri, "--json"))["comments"] == {"price": "in euros"}
    text("columns", "comment", table.uri, "price")
    text("columns", "drop", table.uri, "note")
    assert table.scan(columns=["id", "tip", "price"]).to_arrow().to_pylist() == [
        {"id": 1, "tip": None, "price": 1.5}
    ]
    assert table.columns.comments == {}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("rename", "fare"), "The command needs NEW_NAME. See: drawstring columns rename --help"),
        (("add", "tip"), "The command needs TYPE. See: drawstring columns add --help"),
        (("add", "tip", "money"), "There is no type 'money' here"),
        (("add", "tip", "decimal(3,9)"), "is no type: a decimal has 1 to 38 digits"),
        (("drop", "fare", "note"), "does not take an argument note. Remove it"),
        (("rename", "fare", "price", "--first"), "--first"),
        (("drop", "fare", "--comment", "x"), "--comment"),
        (("drop", "id"), "is a column of the record key"),
    ],
)
def test_a_mistaken_call_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], table: drawstring.Table, arguments: tuple[str, ...], why: str
) -> None:
    act, *rest = arguments
    assert app.run(["columns", act, table.uri, *rest]) == 2
    assert why in capsys.readouterr().err.replace("\n", " ")
    assert len(table.timeline.writes()) == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("move", "id", "--after", "id"), "Column id cannot be behind itself"),
        (("move", "st.b", "--after", "st.b"), "Column st.b cannot be behind itself"),
        (("add", "new", "int", "--after", "new"), "Column new cannot be behind itself"),
        (("rename", "st.a", "st.c"), "give the new name without the struct, as in 'c'"),
        (("add", "st.z", "int", "--after", "st.a"), "Give 'a' instead of 'st.a'"),
        (("add", "z", "int", "--first", "--after", "id"), "--first and --after id exclude each other"),
        (("add", "z"), "The command needs TYPE"),
        (("add", "z", "decimal(99)"), "a decimal has 1 to 38 digits"),
    ],
)
def test_a_mistaken_place_or_name_is_told_with_the_right_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    made = drawstring.create(tmp_path / "t", WITH_STRUCT, record_key="id")
    made.insert(pa.Table.from_pylist([{"id": 1, "st": {"a": 1, "b": "x"}}], WITH_STRUCT))
    act, *rest = arguments
    assert app.run(["columns", act, made.uri, *rest]) == 2
    assert why in capsys.readouterr().err
    assert made.schema == WITH_STRUCT


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tinyint", pa.int32()),
        ("SMALLINT", pa.int32()),
        ("varchar(20)", pa.string()),
        ("decimal(7)", pa.decimal128(7, 0)),
        ("numeric(7, 2)", pa.decimal128(7, 2)),
    ],
)
def test_types_have_the_names_of_sql(
    text: Any, table: drawstring.Table, name: str, kind: pa.DataType
) -> None:
    text("columns", "add", table.uri, "more", name)
    table.upsert(pa.table({"id": [1], "fare": [1.0], "note": ["n"], "more": pa.nulls(1, kind)}))
    assert table.schema.field("more").type == kind
