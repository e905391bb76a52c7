"""Numbers with their nouns in messages."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, as in `1 file` and `2 files`.

    Args:
        count: the number.
        noun: in the singular; its plural ends in `s`, after `ch` in `es`.
    """
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}{ending}"
