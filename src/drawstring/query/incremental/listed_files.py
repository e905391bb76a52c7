"""The files of a table by path, as they are listed: each partition is looked at once."""

from __future__ import annotations

from collections.abc import Mapping

from drawstring.filegroups.view.external_files import refuse_external_file
from drawstring.filegroups.view.listing import Listing
from drawstring.model.files import FileStatus


class ListedFiles:
    """Finds listed files.

    Args:
        listing: lists partitions.
    """

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._files: dict[str, Mapping[str, FileStatus]] = {}

    def of(self, partition: str) -> Mapping[str, FileStatus]:
        """Return the files of a partition by path."""
        if partition not in self._files:
            listed = self._listing.files(partition)
            self._files[partition] = {status.path: status for status in listed}
        return self._files[partition]

    def find(self, partition: str, path: str) -> FileStatus | None:
        """Return a file that a commit names, None when it is gone.

        Raises:
            UnsupportedError: another tool registered it.
        """
        refuse_external_file(path)
        return self.of(partition).get(path)
