"""`drawstring alter` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.cli import app

SCHEMA = pa.schema([("id", pa.int64()), ("fare", pa.float32()), ("note", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> drawstring.Table:
    made = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    made.insert(pa.Table.from_pylist([{"id": 1, "fare": 1.5, "note": "n"}], SCHEMA))
    return made


def test_columns_are_changed(text: Any, table: drawstring.Table) -> None:
    assert text("alter", "rename", table.uri, "fare", "price").strip().endswith(": id, price, note")
    done = json.loads(text("alter", "add", table.uri, "tip", "decimal(10,2)", "--after", "id", "--json"))
    assert done["columns"] == ["id", "tip", "price", "note"]
    assert done["instant"] == table.timeline.writes()[-1].requested
    text("alter", "type", table.uri, "price", "double")
    text("alter", "move", table.uri, "note", "--first")
    text("alter", "comment", table.uri, "price", "in euros")
    assert table.schema == pa.schema(
        [("note", pa.string()), ("id", pa.int64()), ("tip", pa.decimal128(10, 2)), ("price", pa.float64())]
    )
    assert "in euros" in text("show", table.uri)
    assert json.loads(text("show", table.uri, "--json"))["comments"] == {"price": "in euros"}
    text("alter", "comment", table.uri, "price")
    text("alter", "drop", table.uri, "note")
    assert table.scan(columns=["id", "tip", "price"]).to_arrow().to_pylist() == [
        {"id": 1, "tip": None, "price": 1.5}
    ]
    assert table.comments == {}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("rename", "fare"), "needs the column and its new name"),
        (("add", "tip"), "needs the column and its type"),
        (("add", "tip", "money"), "There is no type 'money' here"),
        (("add", "tip", "decimal(3,9)"), "There is no type"),
        (("drop", "fare", "note"), "needs the column only"),
        (("rename", "fare", "price", "--first"), "leaves the column in its place"),
        (("drop", "fare", "--comment", "x"), "takes no --comment"),
        (("drop", "id"), "is a column of the record key"),
    ],
)
def test_a_mistaken_call_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], table: drawstring.Table, arguments: tuple[str, ...], why: str
) -> None:
    act, *rest = arguments
    assert app.run(["alter", act, table.uri, *rest]) == 2
    assert why in capsys.readouterr().err.replace("\n", " ")
    assert len(table.timeline.writes()) == 1
