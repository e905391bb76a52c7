"""Format numbers and tables as text, and choose the log level of repeated messages.

`Grid` shows objects as tables: as HTML in notebooks, as text in print. `DIGITS` has the texts of whole
numbers as bytes to copy. `address_without_secrets` shortens an address for a message. `log_level_of` logs
a repeated message at the debug level.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import numpy as np


def pluralize(count: int, noun: str) -> str:
    """Return a number with its noun, as in `1 file` and `2 files`.

    Args:
        count: the number.
        noun: in the singular; its plural ends in `s`, after `ch` in `es`.
    """
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}{ending}"


def address_without_secrets(url: str) -> str:
    """Return an address without user, password and query: each of them may be a secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


_CELL_MAX: Final = 80
"""Longest text of a cell."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows below column headers.

    Attributes:
        title: what they are of.
        head: the headers; empty for none.
        rows: the cells; numbers are right-aligned, and None is empty.
        note: what follows them; empty for nothing.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""

    def text(self) -> str:
        """Return lines of aligned columns, without characters that a terminal would interpret."""
        lines = [
            [_plain(_cell(each)) for each in row] for row in (*([self.head] if self.head else []), *self.rows)
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        right = [any(_is_number(row[at]) for row in self.rows) for at in range(len(widths))]
        shown = (
            "  ".join(
                cell.rjust(width) if is_number else cell.ljust(width)
                for cell, width, is_number in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        )
        notes = [_plain(self.note)] if self.note else []
        return "\n".join([_plain(self.title), *(f"  {line}" for line in (*shown, *notes))])

    def html(self) -> str:
        """Return an HTML table."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.head)
        top = f"<tr>{head}</tr>" if head else ""
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in self.rows)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<p>{escape(self.title)}</p><table>{top}{body}</table>{note}"


class ShowsGrid:
    """An object that shows itself as a table."""

    __slots__ = ()

    def _grid(self) -> Grid:
        """Return the table."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the text in IPython's terminal."""
        printer.text(str(self))


def _html_cell(value: object) -> str:
    style = ' style="text-align: right"' if _is_number(value) else ""
    return f"<td{style}>{escape(_cell(value))}</td>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if isinstance(value, int) and _is_number(value) else str(value)
    return text if len(text) <= _CELL_MAX else f"{text[: _CELL_MAX - 3]}..."


def _plain(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


WIDTH_MAX: Final = 4

DIGITS: Final = tuple(
    np.array([f"{number:0{width}d}".encode() for number in range(10**width)]).view(f"V{width}")
    for width in range(1, WIDTH_MAX + 1)
)
"""Index i: the texts, padded to i + 1 digits, of all numbers with at most i + 1 digits."""


_LOGGED_MAX: Final = 256
"""Number of messages that are remembered; the oldest are told again."""

_logged: OrderedDict[tuple[str, ...], None] = OrderedDict()
_logged_lock = threading.Lock()


def log_level_of(*message: str) -> int:
    """Return the level to log a message at: that of a warning, or of debugging if it was told already.

    Args:
        message: what it is about, as the table and its newest instant, and its text.
    """
    with _logged_lock:
        known = message in _logged
        _logged[message] = None
        _logged.move_to_end(message)
        if len(_logged) > _LOGGED_MAX:
            _logged.popitem(last=False)
        return logging.DEBUG if known else logging.WARNING
