"""Versions of a schema: ids of columns, types by Hudi's names, changes of columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.query.table_state import facts_of
from drawstring.schema.internal_schema import (
    FIRST,
    added,
    changed,
    dropped,
    evolved_history,
    first_history,
    moved,
    place_of,
    renamed,
    retyped,
)
from drawstring.testing import context_of
from tests.support.golden import golden_table

INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("st", INNER),
        ("items", pa.list_(INNER)),
        ("by", pa.map_(pa.string(), INNER)),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("ms")),
        ("day", pa.date32()),
    ]
)


def ids(fields: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for field in fields:
        found[field["name"]] = field["id"]
        kind = field["type"]
        while isinstance(kind, dict) and kind["type"] != "record":
            part = "element" if kind["type"] == "array" else "value"
            found[f"{field['name']}.{part}"] = kind[f"{part}_id"]
            kind = kind[part]
        if isinstance(kind, dict):
            found |= {f"{field['name']}.{name}": at for name, at in ids(kind["fields"]).items()}
    return found


def test_the_first_version_is_what_hudi_makes_of_the_same_columns(tmp_path: Any) -> None:
    table = golden_table("v9_evo_on_read_mor", tmp_path)
    first = table.timeline.writes()[0]
    facts = facts_of(context_of(table)).as_of(first.requested)
    (path,) = list((tmp_path / "v9_evo_on_read_mor/.hoodie/.schema").glob("20261121092901919_*"))
    theirs = json.loads(path.read_text())["schemas"][-1]
    assert json.loads(first_history(facts.full_schema).text) == theirs


def test_ids_are_given_level_by_level() -> None:
    version = json.loads(first_history(SCHEMA).text)
    assert ids(version["fields"]) == {
        "id": 0, "n": 1, "st": 2, "items": 3, "by": 4, "price": 5, "at": 6, "local": 7, "day": 8,
        "st.a": 9, "st.b": 10, "items.element": 11, "items.a": 12, "items.b": 13, "by.value": 15,
        "by.a": 16, "by.b": 17,
    }  # fmt: skip
    assert version["max_column_id"] == 17
    kinds = [field["type"] for field in version["fields"]]
    assert kinds[5:] == ["decimal_fixed(10, 2)[5]", "timestamp", "local-timestamp-millis", "date"]


def test_a_column_keeps_its_id_and_a_new_one_of_an_old_name_gets_another() -> None:
    history = first_history(SCHEMA)
    steps = [
        (renamed("n", "number"), {("n",): "number"}),
        (renamed("items.element.a", "x"), {("items", "element", "a"): "x"}),
        (dropped("st.b"), {}),
        (added("n", pa.string(), "id"), {}),
        (added("st.b", pa.int64(), FIRST), {}),
        (moved("by", FIRST), {}),
        (retyped("number", pa.int64()), {}),
    ]
    schema = SCHEMA
    for place, (change, names) in enumerate(steps):
        schema = changed(schema, change)
        history = evolved_history(history, schema, str(place + 1), names)
    found = ids(json.loads(history.text)["fields"])
    assert found["number"] == 1 and found["items.x"] == 12 and found["by"] == 4
    assert found["n"] == 18 and found["st.b"] == 19
    assert schema.names[:4] == ["by", "id", "n", "number"]
    assert list(history.versions) == list(range(8))
    assert evolved_history(history, schema, "9") is history


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (dropped("gone"), "There is no column gone. There are id, n"),
        (renamed("st.gone", "x"), "There is no field gone in st. There are a, b"),
        (dropped("st.gone.a"), "There is no field gone in st"),
        (added("st.x", pa.int32(), "n"), "There is no field n in st"),
        (renamed("n", "ID"), "There is a column id already"),
        (added("N", pa.int32(), None), "There is a column n already"),
        (added("x", pa.int32(), "gone"), "There is no column gone"),
        (retyped("n", pa.int16()), "is int32 and cannot become int16"),
        (retyped("price", pa.decimal128(12, 3)), "cannot become decimal"),
        (retyped("st", pa.string()), "cannot become string"),
        (retyped("share", pa.string()), "share is float and cannot become string"),
        (dropped("items.element"), "of which only the type can change"),
        (dropped("n.a"), "There is no field a in n, which is int32"),
        (dropped("items.a"), "no field a in items, which is list.* Its items are called element"),
        (dropped("by.a"), "no field a in by, which is map.* Its values are called value"),
        (added("x", pa.null(), None), "Column x cannot be null"),
        (added("x", pa.list_(pa.null()), None), "does not store the type null"),
        (
            added("x", pa.struct([("a", pa.map_(pa.string(), pa.null()))]), None),
            "does not store the type null",
        ),
        (retyped("n", pa.null()), "does not store the type null"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(change: Any, why: str) -> None:
    schema = SCHEMA.append(pa.field("share", pa.float32()))
    with pytest.raises(InvalidError, match=why):
        changed(schema, change)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: dropped(None), "The name of a column is a text"),  # type: ignore[arg-type]
        (lambda: dropped(3), "The name of a column is a text"),  # type: ignore[arg-type]
        (lambda: renamed("n", ""), "The name of a column is a text"),
        (lambda: added("x", "int", None), "'int' is not a type of pyarrow"),  # type: ignore[arg-type]
        (lambda: retyped("n", "long"), "'long' is not a type of pyarrow"),  # type: ignore[arg-type]
        (lambda: place_of(True, "id"), "Both first=True and after='id' are given"),
        (lambda: place_of(False, ""), "The name of a column is a text"),
    ],
)
def test_arguments_that_say_no_change_are_refused(make: Any, why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        make()


def test_the_last_field_of_a_struct_stays() -> None:
    one = pa.schema([("st", pa.struct([("a", pa.int32())]))])
    with pytest.raises(InvalidError, match="is the only column there"):
        changed(one, dropped("st.a"))
