"""What this process has told its user already, so that it does not tell it again with each query."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import Final

_REMEMBERED: Final = 256
"""Number of messages that are remembered; the oldest are told again."""

_told: OrderedDict[tuple[str, ...], None] = OrderedDict()
_lock = threading.Lock()


def level_of(*message: str) -> int:
    """Return the level to log a message at: that of a warning, or of debugging if it was told already.

    Args:
        message: what it is about, as the table and its newest instant, and its text.
    """
    with _lock:
        known = message in _told
        _told[message] = None
        _told.move_to_end(message)
        if len(_told) > _REMEMBERED:
            _told.popitem(last=False)
        return logging.DEBUG if known else logging.WARNING
