"""What follows a write that is committed: it stands, whatever becomes of that."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from drawstring.base.errors import DrawstringError

_log: Final = logging.getLogger("drawstring")


@contextmanager
def write_stands(what: str, then: str) -> Iterator[None]:
    """Make a warning of what goes wrong in a block of code, and an error of what nobody expected.

    Neither is raised: whoever called the write would take it for one that failed, and write once more.

    Args:
        what: the block does, for people.
        then: what becomes of it now, or what they can do.
    """
    try:
        yield
    except (DrawstringError, OSError) as error:
        _log.warning("the write is committed, %s after it failed; %s: %s", what, then, error)
    except Exception:  # an engine's, a merger's: whatever it was, the write is committed
        _log.exception("the write is committed, %s after it failed in a way nobody expected; %s", what, then)
