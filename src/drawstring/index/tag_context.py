"""Tagging context of an index: the file slices of the table at the start of a write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.read_task import InstantRange
from drawstring.model.files import FileSlice


@dataclass(frozen=True, slots=True)
class TagContext:
    """The file slices of a table and the readers of their keys. Picklable.

    Attributes:
        lookup: the slices that the write builds on.
        settings: settings of the write.
        instants: the visible instants of log blocks.
        is_delete: whether the rows of the write are keys to delete.
    """

    lookup: SliceLookup
    settings: FileSettings
    instants: InstantRange
    is_delete: bool = False

    def partitions(self) -> list[str]:
        """Return all partition paths, sorted."""
        return self.lookup.partitions()

    def slices(self, partition: str) -> Sequence[FileSlice]:
        """Return the latest slice of each file group of a partition."""
        return self.lookup.slices(partition)

    def key_reader(self, output: pa.Schema, more: tuple[str, ...] = ()) -> ReadKeys:
        """Return the reader of the keys of a slice.

        Args:
            output: schema of key, partition path, file id, deletion flag and the columns of `more`.
            more: further columns of the table to read.
        """
        settings = self.settings
        return ReadKeys(settings.storage, settings.config, settings.full_schema, self.instants, output, more)
