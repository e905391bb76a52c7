"""What a table says is shown by a terminal and not obeyed by it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.cli import app, output
from drawstring.cli.output import progress_bar
from drawstring.config.table.properties import decode_properties, encode_properties, table_checksum

TITLE = "\x1b]0;owned\x07"
RED = "\x1b[31mred"
HOSTILE = f"{RED} {TITLE} \x9b2J \u202egpj.exe \x7f\r\nnew [bold]markup[/bold] :smile:"
SHOWN = r"\x1b[31mred \x1b]0;owned\x07 \x9b2J \u202egpj.exe \x7f\r\nnew [bold]markup[/bold] :smile:"
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)
SCHEMA = pa.schema([("id", pa.string()), ("place", pa.string()), ("tags", pa.list_(pa.string()))])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a table whose name, values, keys and partition paths are hostile."""
    root = tmp_path_factory.mktemp("cli") / "table"
    table = drawstring.create(root, SCHEMA, record_key="id", partition_by="place", version=9)
    table.insert(pa.Table.from_pylist([{"id": HOSTILE, "place": "\x1b[31mred", "tags": [HOSTILE]}], SCHEMA))
    path = root / ".hoodie/hoodie.properties"
    entries = decode_properties(path.read_bytes())
    entries["hoodie.table.name"] = name = f"name{RED}"
    entries["hoodie.table.checksum"] = str(table_checksum(name, entries.get("hoodie.database.name", "")))
    path.write_bytes(encode_properties(entries, 0))
    return str(root)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "command", ["head", "inspect files", "show", "inspect timeline", "services validate", "holds list"]
)
def test_no_control_character_of_a_table_reaches_the_terminal(
    command: str, as_json: bool, hostile: str, text: Any
) -> None:
    shown = text(*command.split(), hostile, *(["--json"] if as_json else []))

    assert not UNSAFE.search(shown)
    if as_json:
        json.loads(shown)


def test_values_are_shown_escaped_and_their_markup_as_text(hostile: str, text: Any) -> None:
    shown = text("head", hostile)

    assert shown.count(SHOWN) == 1
    assert "".join(text("inspect", "files", hostile).split()).count(r"\x1b[31mred") == 1
    assert r"name\x1b[31mred" in text("show", hostile)


def test_json_gives_the_values_as_they_are(hostile: str, text: Any) -> None:
    (row,) = json.loads(text("head", hostile, "--json"))

    assert row == {"id": HOSTILE, "place": "\x1b[31mred", "tags": [HOSTILE]}


def test_an_error_is_one_line_without_control_characters(
    hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(hostile)
    (data,) = root.glob("*red/*.parquet")
    stored = data.read_bytes()
    data.write_bytes(b"PAR1" + b"\0" * (len(stored) - 4))
    try:
        assert app.run(["head", hostile]) == 2
    finally:
        data.write_bytes(stored)

    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert not UNSAFE.search(shown.rstrip("\n"))
    assert r"\x1b[31mred/" in shown


@pytest.mark.parametrize(
    "print_it",
    [
        lambda: output.print_line(HOSTILE),
        lambda: output.print_error(HOSTILE),
        lambda: output.print_facts([(HOSTILE, HOSTILE)]),
        lambda: output.print_grid([HOSTILE], [[HOSTILE], [{HOSTILE: [HOSTILE]}]]),
        lambda: output.print_json({HOSTILE: HOSTILE + "\U000e0041\udc9b"}),
    ],
)
def test_whatever_is_printed_is_escaped(print_it: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_it()

    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert not UNSAFE.search(shown)
    assert "[bold]markup[/bold] :smile:" in shown


def test_a_progress_bar_shows_its_title_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[str] = []
    monkeypatch.setattr("rich.progress.Progress.add_task", lambda _, title, **__: described.append(title))
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda *_, **given: described.append(given["description"])
    )
    with progress_bar(HOSTILE) as began:
        began(HOSTILE)

    from rich.text import Text

    assert [Text.from_markup(each, emoji=False).plain for each in described] == [SHOWN, SHOWN]


def test_the_log_of_the_command_line_is_escaped_too() -> None:
    code = (
        "import logging, sys; from drawstring.cli import app; app.run(['show', '/nowhere'])\n"
        "logging.getLogger('drawstring').warning('file %s', sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, HOSTILE], capture_output=True, text=True, check=True)

    assert not UNSAFE.search(done.stderr)
    assert rf"file {SHOWN}".replace(r"\n", "\n") in done.stderr


def test_letters_of_all_scripts_stay_as_they_are() -> None:
    words = "Zoë, می‌خواهم, क्‍ष, 日本, 👩‍👩‍👧"
    assert output.as_text(words) == words
