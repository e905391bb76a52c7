"""What follows a write that is committed: it stands, whatever becomes of that."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import DrawstringError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.model.commit import WriteStat
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.table_context import TableState

_log: Final = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class Committed:
    """A write that was just committed.

    Attributes:
        state: the table; its lock is free.
        config: of the table.
        options: of the write.
        timeline: with the write on it.
        stats: of its files.
    """

    state: TableState
    config: TableConfig
    options: WriteOptions
    timeline: Timeline
    stats: Sequence[WriteStat]

    @property
    def store(self) -> TimelineStore:
        """A fresh look at the table's timeline."""
        return TimelineStore(self.state.storage, self.config, self.state.clock)


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
