"""The range of texts that begin with a prefix: what statistics can tell of `LIKE 'ab%'`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pyarrow.compute as pc

_LITERAL: Final = re.compile(r"[^%_\\]*")
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def prefix_bounds(text: pc.Expression, pattern: str) -> Iterator[pc.Expression]:
    """Yield conditions that every text fulfils that matches a LIKE pattern; none if it begins with any.

    Args:
        text: the text that is matched.
        pattern: the pattern, with `%`, `_` and backslashes.
    """
    match = _LITERAL.match(pattern)
    prefix = match[0] if match else ""
    if prefix:
        yield text >= prefix
        after = after_prefix(prefix)
        if after is not None:
            yield text < after


def after_prefix(prefix: str) -> str | None:
    """Return the least text that is greater than all texts with a prefix; None if there is none."""
    kept = prefix.rstrip(chr(_LAST))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
