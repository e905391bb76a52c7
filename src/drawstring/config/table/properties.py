r"""The Java properties format of `hoodie.properties` and `.hoodie_partition_metadata`.

    #Updated at 2026-11-21T09:30:36.020Z
    #Sat Nov 21 09:30:36 UTC 2026
    hoodie.table.create.schema={"type"\:"record"}      \: \= \# \! \\ \t \n \r \f escape
    hoodie.table.name=caf\u00e9                        UTF-16 code units outside of 0x20..0x7e

The encoding is ISO-8859-1; a line that ends in an odd number of backslashes continues on the next line
(specification: Table properties).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

_NEW_LINE: Final = re.compile(r"\r\n|\n|\r")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)
_SEPARATOR: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*")
_BETWEEN: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_BLANKS: Final = " \t\f"
_UNSAFE: Final = re.compile(r"[^ -~]|[\\=:#!]")
_DECODED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ENCODED: Final = {
    "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f",
    "\\": "\\\\", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!",
}  # fmt: skip
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def decode_properties(data: bytes) -> dict[str, str]:
    """Return the entries of a properties file; the last of repeated keys counts."""
    return properties_in_text(data.decode("latin-1"))


def properties_in_text(text: str) -> dict[str, str]:
    """Return the entries in the text of a properties file, by the rules of `java.util.Properties`."""
    entries: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end = _SEPARATOR.match(line).end()  # type: ignore[union-attr]
        value_start = _BETWEEN.match(line, key_end).end()  # type: ignore[union-attr]
        entries[unescape(line[:key_end])] = unescape(line[value_start:])
    return entries


def encode_properties(entries: Mapping[str, str], now_ms: int, by: str = "") -> bytes:
    """Return the bytes of a properties file with the entries in the given order.

    Args:
        entries: keys and values.
        now_ms: the time in the two comment lines, milliseconds since the epoch.
        by: the process that changes them, for a third one; empty to leave it out.
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    head = f"#Updated at {at}\n#{_java_date(now)}\n"
    if by:
        head += f"#Changed by {_escape(by)}\n"
    body = "".join(f"{_escape(key, is_key=True)}={_escape(value)}\n" for key, value in entries.items())
    return (head + body).encode("latin-1")


def table_checksum(name: str, database: str) -> int:
    """Return the value of `hoodie.table.checksum`; the dot remains if there is no database."""
    return zlib.crc32(f"{database}.{name}".encode())


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither comments nor blank, with continuation lines joined."""
    pending: list[str] = []
    for natural in _NEW_LINE.split(text):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending.append(line[:-1])
            continue
        yield "".join([*pending, line])
        pending = []
    if pending:
        yield "".join(pending)


def unescape(text: str) -> str:
    """Return a key or value without the escapes of a properties file."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_unescape_one, text)
    # Characters outside the basic plane are stored as two escapes, a surrogate pair.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescape_one(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _DECODED.get(escaped, escaped)


def _escape(text: str, *, is_key: bool = False) -> str:
    escaped = _UNSAFE.sub(_escape_one, text)
    if is_key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_one(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ENCODED:
        return _ENCODED[character]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4].upper()}" for at in range(0, len(units), 4))


def _java_date(now: datetime) -> str:
    """Return `java.util.Date.toString()`, regardless of the locale."""
    day, month = _DAYS[now.weekday()], _MONTHS[now.month - 1]
    return f"{day} {month} {now.day:02d} {now:%H:%M:%S} UTC {now.year}"
