"""The task of clustering that writes the rows of one group of file slices into new base files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import InstantRange, ReadTask, nullable
from drawstring.filegroups.write.base_writer import BaseFileWriter
from drawstring.filegroups.write.key_order import first_of_each_key
from drawstring.filegroups.write.settings import FileSettings
from drawstring.filegroups.write.virtual_keys import as_stored
from drawstring.model.clustering import ClusteringGroup
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, TaskContext, random_file_id
from drawstring.services.clustering.row_group_copy import stitched
from drawstring.services.clustering.row_order import RowOrder
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage

Numbered = tuple[int, ClusteringGroup]
"""A clustering group with its number in the plan."""


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """A task that rewrites the rows of one clustering group, in a sort order if one is requested.

    If rows stay as they are, base files of the same schema are copied without decoding them.

    Attributes:
        settings: of the new base files, including their target size.
        instants: decides which log blocks count.
        order: the sort order.
        keeps_commit_times: whether rows keep their meta columns, except for the file name.
        ids: names file groups, and gives every attempt its own write token.
    """

    settings: FileSettings
    instants: InstantRange
    order: RowOrder
    keeps_commit_times: bool
    ids: Ids

    def __call__(self, numbered: Numbered) -> list[WriteStat]:
        """Write the base files of a group."""
        number, group = numbered
        storage = open_spec(self.settings.storage)
        slices, context = located(group, storage), self.context(number)
        if self.keeps_commit_times and not self.order.columns:
            copied_stats = stitched(self.settings, storage, slices, context.write_token, self.ids)
            if copied_stats is not None:
                return copied_stats
        names = tuple(self.settings.full_schema.names)
        rank_bounds = (
            self.order.sample(self.read(slices, self.order.columns)) if self.order.needs_sample else {}
        )
        schema = nullable(self.settings.full_schema, names)
        rows = self.order.sorted(self.read(slices, names), schema, rank_bounds)
        if self.settings.config.has_sorted_files:
            return self._write_sorted(storage, group.partition, rows, context)
        return self._write(storage, group.partition, rows, context)

    def _write_sorted(
        self, storage: Storage, partition: str, rows: Iterable[pa.RecordBatch], context: TaskContext
    ) -> list[WriteStat]:
        """Write rows that are sorted by key to files with each key once: other rows go to further files.

        Inserts may have added a key to several file groups.
        """
        stats: list[WriteStat] = []
        while True:
            repeated: list[pa.RecordBatch] = []
            stats += self._write(storage, partition, first_of_each_key(rows, repeated), context)
            if not repeated:
                return stats
            rows = repeated

    def context(self, number: int) -> TaskContext:
        """Return the context of one attempt at a group, given its number."""
        return TaskContext(number, 0, int(self.ids.uuid()[:6], 16))

    def read(self, slices: Iterable[FileSlice], columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows of file slices, one slice after the other."""
        settings = self.settings
        for each in slices:
            task = ReadTask(
                settings.storage,
                settings.config,
                each,
                settings.full_schema,
                columns,
                instants=self.instants,
            )
            yield from read_slice(task)

    def _write(
        self, storage: Storage, partition: str, rows: Iterable[pa.RecordBatch], context: TaskContext
    ) -> list[WriteStat]:
        settings = self.settings
        meta_columns = None if self.keeps_commit_times else settings.meta_column_writer(context.task)
        stats: list[WriteStat] = []
        writer: BaseFileWriter | None = None
        try:
            for batch in rows:
                if writer is None:
                    file_id = random_file_id(self.ids.uuid())
                    writer = BaseFileWriter(settings, storage, partition, file_id, context.write_token)
                if meta_columns is None:
                    writer.write(as_stored(batch, writer.name, settings.config))
                else:
                    writer.write(meta_columns.apply(batch, writer.name))
                if writer.bytes_written >= settings.base_file_bytes_max:
                    stats.append(writer.close(inserts=writer.rows))
                    writer = None
        except BaseException:
            if writer is not None:
                writer.abort()
            raise
        return [*stats, writer.close(inserts=writer.rows)] if writer else stats


def located(group: ClusteringGroup, storage: Storage) -> list[FileSlice]:
    """Return the file slices of a group, with the sizes of their files."""
    files = {status.path: status for status in storage.list_files(group.partition)}
    return [each.located(files) for each in group.slices]
