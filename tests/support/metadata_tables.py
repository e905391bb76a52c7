"""What the metadata table of a table names."""

from __future__ import annotations

from drawstring.metadata.file_listing import named_files
from drawstring.table import Table
from drawstring.testing import context_of


def listed(table: Table) -> set[str]:
    """Return the paths of the files that the metadata table names; fails if it cannot be used."""
    context = context_of(table)
    files = named_files(context.storage, table.config, table.timeline, context.clock)
    return {status.path for partition in files.partitions() for status in files.files(partition)}
