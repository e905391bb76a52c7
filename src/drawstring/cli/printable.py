r"""Escape what a terminal would obey instead of show.

Values, names and paths come from tables that anybody may have written. Characters that move the cursor,
change colours or the direction of text, break lines or cannot be seen are shown as Python writes them:
`\x1b`, `\u202e`.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Final

_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of text
    "\u00ad\u180e\u200b\u2028\u2029\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible, or a new line
    "\ud800-\udfff"  # halves of characters: bytes of a file name that are not UTF-8
    "\U000e0000-\U000e007f"  # tags
    "]"
)
"""Joiners (U+200C, U+200D) are not among them: words of Persian and Hindi need them."""


def printable(text: str) -> str:
    """Return a text in one line, unsafe characters escaped."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def printable_lines(text: str) -> str:
    """Return a text whose line breaks are the program's own, the other unsafe characters escaped."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(document: str) -> str:
    """Return a JSON document with the unsafe characters in its texts escaped as JSON escapes them.

    Args:
        document: as `json.dumps` made it, which escapes line breaks within texts.
    """
    return "\n".join(
        _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], line) for line in document.split("\n")
    )


class PrintableFormatter(logging.Formatter):
    """Formats log records, which name files and tables, with their unsafe characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))
