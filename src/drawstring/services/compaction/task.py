"""One file group of a compaction: its slice, read and merged, into a new base file, or its logs into one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drawstring.base.clock import Ids
from drawstring.engine.protocol import TaskContext
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.write.base_writer import BaseFileWriter
from drawstring.filegroups.write.log_rewrite import rewrite_logs
from drawstring.filegroups.write.settings import FileSettings
from drawstring.filegroups.write.virtual_keys import as_stored
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path
from drawstring.model.plans import CompactionOperation
from drawstring.storage import open_spec


@dataclass(frozen=True, slots=True)
class CompactSlice:
    """A task that compacts one slice.

    Attributes:
        settings: of the new base files.
        schema_json: Avro text of the table schema.
        instants: which log blocks count.
        ids: gives every attempt a write token of its own.
    """

    settings: FileSettings
    schema_json: str
    instants: InstantRange
    ids: Ids

    def __call__(self, numbered: tuple[int, CompactionOperation]) -> WriteStat:
        """Write the file of one operation."""
        number, operation = numbered
        storage = open_spec(self.settings.storage)
        target = slice_of(operation, {s.path: s for s in storage.list_files(operation.partition)})
        attempt = int(self.ids.uuid()[:6], 16)
        token = TaskContext(number, 0, attempt).write_token
        if operation.logs_only:
            return rewrite_logs(self.settings, storage, target, self.instants, token)
        writer = BaseFileWriter(self.settings, storage, operation.partition, operation.file_id, token, target)
        full = self.settings.full_schema
        read = ReadTask(
            self.settings.storage,
            self.settings.config,
            target,
            full,
            tuple(full.names),
            instants=self.instants,
        )
        try:
            for batch in read_slice(read):
                writer.write(as_stored(batch, writer.name, self.settings.config))
        except BaseException:
            writer.abort()
            raise
        return _compacted(writer.close(inserts=0, updates=writer.rows), target)


def _compacted(stat: WriteStat, target: FileSlice) -> WriteStat:
    return replace(
        stat,
        log_files_compacted=len(target.logs),
        log_size_compacted=sum(log.status.size_bytes for log in target.logs),
    )


def slice_of(operation: CompactionOperation, files: dict[str, FileStatus]) -> FileSlice:
    """Return the slice that an operation names, files that went missing included."""

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
