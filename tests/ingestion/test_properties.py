"""Files of Java properties, and options whose values are characters."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.cli import app
from drawstring.ingestion.job import properties_in

LINES = r"""
# a note = not an option
! another : note
a.b=1
  c : x=y
d 4
e\=f=g\:h
path=C:\\rides
city=S\u00e3o Paulo, 東京
list=1,\
    2,\
    3
tab=\t
empty=
alone
twice=1
twice=2
"""


def test_a_file_of_properties_is_read_by_all_rules_of_java(tmp_path: Path) -> None:
    (tmp_path / "p").write_text(LINES, encoding="utf-8")
    assert properties_in(str(tmp_path / "p")) == {
        "a.b": "1",
        "c": "x=y",
        "d": "4",
        "e=f": "g:h",
        "path": r"C:\rides",
        "city": "São Paulo, 東京",
        "list": "1,2,3",
        "tab": "\t",
        "empty": "",
        "alone": "",
        "twice": "2",
    }


@pytest.mark.parametrize("by_file", [True, False])
@pytest.mark.parametrize(
    ("separator", "character"), [(r"\t", "\t"), ("\t", "\t"), (";", ";"), (r"\u0001", "\x01")]
)
def test_csv_files_are_split_at_the_character_that_is_named(
    tmp_path: Path, separator: str, character: str, by_file: bool
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text(f"id{character}note\n1{character}a, b\n", encoding="utf-8")
    options = {
        "hoodie.streamer.source.dfs.root": str(folder),
        "hoodie.streamer.csv.header": "true",
        "hoodie.streamer.csv.sep": separator,
        "hoodie.datasource.write.recordkey.field": "id",
    }
    (tmp_path / "p").write_text("".join(f"{key}={value}\n" for key, value in options.items()))
    if by_file and separator == "\t":
        return  # blanks at the beginning of a value are no part of it
    given = ["--props", str(tmp_path / "p")] if by_file else []
    if not by_file:
        given = [text for key, value in options.items() for text in ("--option", f"{key}={value}")]
    assert app.run(["ingest", str(tmp_path / "t"), "--source", "csv", *given]) == 0
    rows = drawstring.open(tmp_path / "t").scan(columns=["id", "note"]).to_arrow().to_pylist()
    assert rows == [{"id": 1, "note": "a, b"}]


def test_a_separator_of_several_characters_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = {"hoodie.streamer.source.dfs.root": str(tmp_path / "in"), "hoodie.streamer.csv.sep": "||"}
    with pytest.raises(InvalidError, match="Give one character"):
        drawstring.ingest(tmp_path / "t", "csv", options=options)
