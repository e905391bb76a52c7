r"""Escaping of characters that a terminal would interpret instead of display.

Values, names and paths come from untrusted tables. Characters that move the cursor, change colours or the
direction of text, break lines or are invisible are printed as Python escapes:
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
"""Joiners (U+200C, U+200D) are not escaped: Persian and Hindi words need them."""


def printable(text: str) -> str:
    """Return a text as one line with unsafe characters escaped."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def printable_lines(text: str) -> str:
    """Return a text with unsafe characters escaped except line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(document: str) -> str:
    """Return a JSON document with the unsafe characters in its strings escaped as in JSON.

    Args:
        document: result of `json.dumps`, which escapes line breaks within strings.
    """
    return "\n".join(
        _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], line) for line in document.split("\n")
    )


class PrintableFormatter(logging.Formatter):
    """Formats log records with unsafe characters in file and table names escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))
