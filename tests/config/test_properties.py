"""The properties format, as java.util.Properties reads and writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.config.table.properties import decode_properties, encode_properties, table_checksum

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.properties"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_properties_of_real_tables_survive_a_round_trip(path: Path) -> None:
    entries = decode_properties(path.read_bytes())
    assert entries["hoodie.table.name"] == path.stem
    assert decode_properties(encode_properties(entries, 1_700_000_000_123)) == entries
    assert set(path.read_text().splitlines()[2:]) == set(
        encode_properties(entries, 0).decode().splitlines()[2:]
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_checksums_of_real_tables_are_reproduced(path: Path) -> None:
    entries = decode_properties(path.read_bytes())
    database = entries.get("hoodie.database.name", "")
    assert entries["hoodie.table.checksum"] == str(table_checksum(entries["hoodie.table.name"], database))


@settings(max_examples=50)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(), max_size=5))
def test_any_text_survives_a_round_trip(entries: dict[str, str]) -> None:
    assert decode_properties(encode_properties(entries, 0)) == entries


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=b", {"a": "b"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a:b\r\nc d\re\tf", {"a": "b", "c": "d", "e": "f"}),
        ("a = : b", {"a": ": b"}),
        ("a\nb=\n=c", {"a": "", "b": "", "": "c"}),
        ("# x=1\n!y=2\n\n   #z=3\na=#no comment", {"a": "#no comment"}),
        ("a=1,\\\n   2,\\\n\t3", {"a": "1,2,3"}),
        ("a=ends with a backslash\\\\\nb=1", {"a": "ends with a backslash\\", "b": "1"}),
        ("a=1\\\n#2", {"a": "1#2"}),
        ("# comments do not go on\\\na=1", {"a": "1"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=caf\\u00e9 \\uD83D\\uDE00\\t\\n\\q", {"a": "caf\u00e9 \U0001f600\t\nq"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=cut off\\", {"a": "cut off"}),
        ("", {}),
    ],
)
def test_texts_mean_what_java_says(text: str, entries: dict[str, str]) -> None:
    assert decode_properties(text.encode("latin-1")) == entries


def test_bytes_are_latin_1() -> None:
    assert decode_properties(b"a=caf\xe9") == {"a": "caf\u00e9"}


def test_what_is_written_needs_nothing_but_ascii() -> None:
    assert encode_properties({"a b": ' {"x":1}=#!\\', "\u00e9": "\U0001f600"}, 1_700_000_000_123) == (
        b"#Updated at 2023-11-14T22:13:20.123Z\n"
        b"#Tue Nov 14 22:13:20 UTC 2023\n"
        b'a\\ b=\\ {"x"\\:1}\\=\\#\\!\\\\\n'
        b"\\u00E9=\\uD83D\\uDE00\n"
    )


def test_a_line_that_goes_on_very_often_is_read() -> None:
    # Joined one by one, these lines are copied 200,000 times.
    entries = decode_properties(b"a=" + b"xyz\\\n" * 200_000 + b"end\nb=1")
    assert entries == {"a": "xyz" * 200_000 + "end", "b": "1"}
