"""What a table does for itself after every write, as Hudi's defaults say: cleaning and archiving.

The write stands whatever becomes of these: what goes wrong in them is a warning, and the next write tries
again.
"""

from __future__ import annotations

from typing import Final

from drawstring.config.options.write_options import WriteOptions
from drawstring.services.archiving.run import archive_table
from drawstring.services.cleaning.run import clean_table
from drawstring.services.committed import write_stands
from drawstring.txn.transaction import Session

_THEN: Final = "the next one tries again"


def tidy(session: Session, options: WriteOptions) -> None:
    """Clean and archive a table that was just written to, where that is due.

    Args:
        session: the table, still locked by the write.
        options: of the write.
    """
    cleans, archives = options.cleaning.automatic, options.archiving.automatic
    if not (cleans or archives):
        return
    with write_stands("looking at the table", _THEN):
        timeline = session.store.load()
        if cleans:
            with write_stands("cleaning", _THEN):
                clean_table(session, options, timeline, only_if_due=True)
        if archives:
            with write_stands("archiving", _THEN):
                archive_table(session, options, timeline)
