"""Texts with half of a surrogate pair, which Python can have and UTF-8 cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import drawstring
from drawstring import InvalidError
from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import create

HALF = "a\ud800b"


def frame(key: str, city: str) -> pd.DataFrame:
    return pd.DataFrame({"id": [key], "city": [city], "ts": [1], "fare": [1.0]})


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.upsert(frame(HALF, "rome")),
        lambda table: table.upsert(frame("k", HALF)),
        lambda table: table.scan(where=f"id = '{HALF}'").to_arrow(),
        lambda table: table.scan(where=f"city = '{HALF}'").to_arrow(),
        lambda table: table.scan([HALF]),
        lambda table: table.delete(where=f"id = '{HALF}'"),
        lambda table: table.update("id = 'k'", {"fare": f"'{HALF}'"}),
        lambda table: table.inspect.metadata("files", keys=[HALF]),
        lambda table: table.holds.add(HALF),
        lambda table: table.upsert(
            rides(("k", "rome", 2, 2.0)), options={"hoodie.write.lock.provider": HALF}
        ),
    ],
)
def test_half_of_a_surrogate_pair_is_an_error_that_shows_the_text(call: Callable[[Table], object]) -> None:
    table = create()
    table.upsert(rides(("k", "rome", 1, 1.0)))
    with pytest.raises(InvalidError) as told:
        call(table)
    assert "a\\ud800b" in str(told.value)
    assert str(told.value).encode(), "it can be printed"
    assert table.scan(["fare"]).to_arrow().column("fare").to_pylist() == [1.0]
    assert table.services.validate().is_sound


@pytest.mark.parametrize("folder", ["", HALF])
def test_no_table_is_created_with_half_of_a_surrogate_pair(folder: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string())])
    with pytest.raises(InvalidError, match=r"a\\ud800b"):
        drawstring.create(
            str(tmp_path / "t") + folder, schema, record_key="id", name=None if folder else HALF
        )
    with pytest.raises(InvalidError):
        drawstring.open(str(tmp_path / "t") + folder)
