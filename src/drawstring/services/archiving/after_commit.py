"""Archiving after a commit, where that is due."""

from __future__ import annotations

from drawstring.services.archiving.run import archive
from drawstring.write.committed import Committed


def archive_when_due(written: Committed) -> None:
    """Archive old instants, under a table lock of its own, if `hoodie.archive.automatic` says so.

    Raises:
        ConflictError: another writer holds the table.
    """
    archiving = written.options.archiving
    if archiving.automatic and len(written.timeline.writes()) > archiving.commits_max:
        archive(written.state, written.options)
