"""What a table does for itself after every write, as Hudi's defaults say: cleaning and archiving.

The write stands whatever becomes of these: what goes wrong in them is a warning, and the next write tries
again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from drawstring.base.errors import DrawstringError
from drawstring.config.options import WriteOptions
from drawstring.services.archive import archive_table
from drawstring.services.clean import clean_table
from drawstring.services.transaction import Session

_log = logging.getLogger("drawstring")


def tidy(session: Session, options: WriteOptions) -> None:
    """Clean and archive a table that was just written to, where that is due.

    Args:
        session: the table, still locked by the write.
        options: of the write.
    """
    cleans, archives = options.cleaning.automatic, options.archiving.automatic
    if not (cleans or archives):
        return
    with _not_the_writes_fault("looking at the table"):
        timeline = session.store.load()
        if cleans:
            with _not_the_writes_fault("cleaning"):
                clean_table(session, options, timeline, only_if_due=True)
        if archives:
            with _not_the_writes_fault("archiving"):
                archive_table(session, options, timeline)


@contextmanager
def _not_the_writes_fault(what: str) -> Iterator[None]:
    try:
        yield
    except (DrawstringError, OSError) as error:
        _log.warning("the write is committed, %s after it failed; the next one tries again: %s", what, error)
