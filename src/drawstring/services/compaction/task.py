"""The task that compacts one file slice into a base file, or its log files into new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drawstring.base.allocator import keeping_no_memory
from drawstring.base.clock import Ids
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.write.base_writer import BaseFileWriter
from drawstring.filegroups.write.log_compaction import rewrite_logs
from drawstring.filegroups.write.settings import FileSettings
from drawstring.filegroups.write.virtual_keys import as_stored
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, TaskContext, join_path
from drawstring.model.plans import CompactionOperation
from drawstring.services.compaction.sorted_copy import compacted_by_copying
from drawstring.storage import open_spec


@dataclass(frozen=True, slots=True)
class CompactSlice:
    """A task that compacts one file slice.

    Attributes:
        settings: of the new base files.
        schema_json: the table schema as Avro JSON.
        instants: decides which log blocks count.
        ids: gives every attempt its own write token.
    """

    settings: FileSettings
    schema_json: str
    instants: InstantRange
    ids: Ids

    def __call__(self, numbered: tuple[int, CompactionOperation]) -> list[WriteStat]:
        """Write the files of one operation."""
        number, operation = numbered
        storage = open_spec(self.settings.storage)
        target = slice_of(operation, {s.path: s for s in storage.list_files(operation.partition)})
        attempt = int(self.ids.uuid()[:6], 16)
        token = TaskContext(number, 0, attempt).write_token
        if operation.logs_only:
            return rewrite_logs(self.settings, storage, target, self.instants, token)
        full_schema = self.settings.full_schema
        read_task = ReadTask(
            self.settings.storage,
            self.settings.config,
            target,
            full_schema,
            tuple(full_schema.names),
            instants=self.instants,
            in_order=self.settings.config.has_sorted_files,
        )
        with keeping_no_memory(read_task.size_bytes):
            copied = compacted_by_copying(self.settings, read_task, token)
            return [_compacted(copied or self._encoded(read_task, token), target)]

    def _encoded(self, task: ReadTask, token: str) -> WriteStat:
        """Write all merged rows."""
        target = task.file_slice
        storage = open_spec(self.settings.storage)
        writer = BaseFileWriter(self.settings, storage, target.partition, target.file_id, token, target)
        try:
            for batch in read_slice(task):
                writer.write(as_stored(batch, writer.name, self.settings.config))
        except BaseException:
            writer.abort()
            raise
        return writer.close(inserts=0, updates=writer.rows)


def _compacted(stat: WriteStat, target: FileSlice) -> WriteStat:
    return replace(
        stat,
        log_files_compacted=len(target.logs),
        log_size_compacted=sum(log.status.size_bytes for log in target.logs),
    )


def slice_of(operation: CompactionOperation, files: dict[str, FileStatus]) -> FileSlice:
    """Return the file slice of an operation, with files of size 0 in place of missing ones."""

    def status(name: str) -> FileStatus:
        path = join_path(operation.partition, name)
        return files.get(path) or FileStatus(path, 0)

    logs = [LogFile.parse(status(name)) for name in operation.log_files]
    base = BaseFile.parse(status(operation.base_file)) if operation.base_file else None
    return FileSlice(
        partition=operation.partition,
        file_id=operation.file_id,
        base_instant=operation.base_instant,
        base=replace(base, source=operation.source) if base else None,
        logs=tuple(sorted((log for log in logs if log), key=lambda log: log.order)),
    )
