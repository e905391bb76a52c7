"""Users search the page by words of an error: each heading in quotes is part of a message."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guides/troubleshooting.md"
OF_OTHERS = {"No module named 'drawstring'"}
WITH_A_NOUN = {"There is no bucket"}
"""Headings of messages whose last word is that of a store."""


def texts() -> list[str]:
    """Return the texts in the sources, in lower case; those with values in them piece by piece."""
    return [
        node.value.lower()
        for path in (ROOT / "src/drawstring").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_headings_in_quotes_are_words_of_errors() -> None:
    quoted = set(re.findall(r'^### "(.+?)"', PAGE.read_text(), re.MULTILINE)) - OF_OTHERS
    said = texts()
    assert len(quoted) > 15
    assert all(words.rpartition(" ")[2] in said for words in WITH_A_NOUN)
    quoted -= WITH_A_NOUN
    assert [words for words in sorted(quoted) if not any(words.lower() in text for text in said)] == []
