"""Values as the command line prints them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from drawstring.cli import output


@pytest.mark.parametrize(
    ("value", "json", "text"),
    [
        (None, None, ""),
        (True, True, "true"),
        (float("nan"), "nan", "nan"),
        (Decimal("1.50"), "1.50", "1.50"),
        (dt.date(2024, 1, 31), "2024-01-31", "2024-01-31"),
        (b"\x00\xff", "AP8=", "AP8="),
        ([1, None, Decimal("2.0")], [1, None, "2.0"], '[1, null, "2.0"]'),
        ({"name": "Zoë", "day": dt.date(2024, 1, 1)}, {"name": "Zoë", "day": "2024-01-01"}, None),
    ],
)
def test_values_become_json_and_text(value: object, json: object, text: str | None) -> None:
    assert output.as_json(value) == json
    if text is not None:
        assert output.as_text(value) == text


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        ("20240131100000123", "2024-01-31 10:00:00.123"),
        ("20240131100000", "2024-01-31 10:00:00"),
        ("00000000000000001", "0000-00-00 00:00:00.001"),
        ("init", "init"),
        (None, ""),
    ],
)
def test_instants_are_for_people(instant: str | None, text: str) -> None:
    assert output.instant_text(instant) == text


def test_a_grid_in_a_pipe_keeps_wide_rows_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_grid(["left", "right"], [["x" * 90, 1], ["[red]", 22]])
    assert capsys.readouterr().out.splitlines()[1:] == ["x" * 90 + "      1", "[red]" + " " * 85 + "     22"]
