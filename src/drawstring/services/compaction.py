"""Compaction: fold the log files of merge-on-read slices into new base files.

    plan   every latest slice with log files, as one operation each (pure)
    run    the merged read of each slice into a base file named by the compaction's instant

A compaction that its process did not finish stays on the timeline; the next one resumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from drawstring.base.clock import Ids, Stopwatch
from drawstring.base.errors import InvalidError
from drawstring.config.options import WriteOptions
from drawstring.engine.protocol import TaskContext
from drawstring.filegroups.base_writer import BaseFileWriter
from drawstring.filegroups.lookup import SliceLookup
from drawstring.filegroups.reader import read_slice
from drawstring.filegroups.settings import FileSettings
from drawstring.filegroups.tasks import InstantRange, ReadTask
from drawstring.filegroups.virtual_keys import as_stored
from drawstring.formats.metadata import decode_compaction_plan, encode_compaction_plan
from drawstring.index.rings import has_rings
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import CompactionOperation, CompactionPlan
from drawstring.model.result import CommitResult
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import with_meta_fields, without_meta
from drawstring.services.rollback import rollback_instant
from drawstring.services.transaction import Session, clear, exclusive
from drawstring.storage import open_spec
from drawstring.timeline.table_schema import table_schema_json
from drawstring.timeline.timeline import Timeline
from drawstring.txn.state import TableState

_MEBIBYTE = 1 << 20

Progress = Callable[[int, int], None]
"""Told how many file groups are done, and of how many."""


def plan_compaction(slices: Iterable[FileSlice]) -> CompactionPlan:
    """Return one operation for each slice with log files."""
    return CompactionPlan(
        tuple(
            CompactionOperation(
                partition=s.partition,
                file_id=s.file_id,
                base_instant=s.base_instant,
                base_file=s.base.status.name if s.base else None,
                log_files=tuple(log.status.name for log in s.logs),
                metrics=_metrics(s),
            )
            for s in slices
            if s.logs
        )
    )


def compact(
    state: TableState, options: WriteOptions, progress: Progress | None = None
) -> CommitResult | None:
    """Compact every file slice that has log files; pending compactions first.

    Args:
        state: the table.
        options: of writes: codec, lock wait.
        progress: told of every file group that is done.

    Returns:
        What the last compaction did, or None when there was nothing to compact.

    Raises:
        InvalidError: the table is COPY_ON_WRITE.
        ConflictError: another writer holds the table.
    """
    result = None
    with exclusive(state, options.lock_wait_ms) as found:
        if not found.config.is_merge_on_read:
            raise InvalidError(
                "a COPY_ON_WRITE table has no log files to compact", table=state.storage.spec.uri
            )
        session = clear(found)
        for instant in session.store.load().pending_of(Action.COMPACTION):
            result = _run(session, instant, options, progress)
        if (scheduled := _schedule(session)) is not None:
            result = _run(session, scheduled, options, progress)
    return result


def deltas_since_compaction(timeline: Timeline) -> int:
    """Return how many delta commits stand on the timeline after its last compaction."""
    count = 0
    for instant in reversed(timeline.writes()):
        if instant.action is Action.COMMIT:
            break
        count += instant.action is Action.DELTA_COMMIT
    return count


def _schedule(session: Session) -> Instant | None:
    timeline = session.store.load()
    lookup = SliceLookup(session.state.storage.spec, session.config, timeline)
    taken = lookup.view().pending_clusterings()
    if taken and has_rings(session.state.storage):
        # Other file groups than those named may have records twice until the resizing completed.
        return None
    plan = plan_compaction(
        s
        for partition in lookup.partitions()
        for s in lookup.slices(partition)
        if (s.partition, s.file_id) not in taken
    )
    if not plan.operations:
        return None
    return session.store.request(
        Action.COMPACTION, session.store.new_time(timeline), encode_compaction_plan(plan)
    )


def _run(
    session: Session, instant: Instant, options: WriteOptions, progress: Progress | None
) -> CommitResult:
    """Run a plan that stands on the timeline, taking away first what a dead attempt left.

    File groups that were replaced since are left out: nobody reads them any more, and their files may
    be damaged or gone.
    """
    watch = Stopwatch()
    plan = decode_compaction_plan(session.store.read_requested(instant))
    operations = _without_replaced(session, plan)
    if instant.state is State.INFLIGHT:
        rollback_instant(session.rollback_context(), instant)
    inflight = session.store.start(Instant(instant.requested, Action.COMPACTION, State.REQUESTED))
    task = _task(session, instant.requested, options)
    stats = _watched(session, task, operations, progress)
    metadata = CommitMetadata(
        stats=tuple(stats),
        operation=WriteOperation.COMPACT,
        extra={"schema": task.schema_json},
        compacted=True,
    )
    completed = session.finish(inflight, metadata)
    return CommitResult.of(completed, "compact", stats, watch.seconds())


def _without_replaced(session: Session, plan: CompactionPlan) -> list[tuple[int, CompactionOperation]]:
    """Return the operations of a plan, numbered, without those on file groups that were replaced."""
    lookup = SliceLookup(session.state.storage.spec, session.config, session.store.load())
    replaced = lookup.view().replaced_groups()
    return [
        (number, operation)
        for number, operation in enumerate(plan.operations)
        if (operation.partition, operation.file_id) not in replaced
    ]


def _watched(
    session: Session,
    task: CompactSlice,
    operations: list[tuple[int, CompactionOperation]],
    progress: Progress | None,
) -> list[WriteStat]:
    """Run all operations; in rounds when somebody watches."""
    engine = session.state.engine
    if progress is None:
        return engine.map(task, operations)
    stats: list[WriteStat] = []
    for start in range(0, len(operations), engine.parallelism):
        stats += engine.map(task, operations[start : start + engine.parallelism])
        progress(len(stats), len(operations))
    return stats


def _task(session: Session, requested: str, options: WriteOptions) -> CompactSlice:
    timeline = session.store.load()
    schema_json = table_schema_json(session.state.storage, session.store, timeline, session.config)
    if schema_json is None:
        raise InvalidError("the table has no data yet: there is nothing to compact")
    settings = FileSettings(
        storage=session.state.storage.spec,
        config=session.config,
        instant=requested,
        schema=without_meta(avro_to_arrow(schema_json)),
        avro_schema=with_meta_fields(schema_json),
        compression=options.compression,
        bloom=options.bloom_enabled,
        base_file_bytes_max=options.sizing.base_file_size_max_bytes,
        log_format=options.log_block_format,
    )
    return CompactSlice(settings, schema_json, InstantRange.of(timeline), session.state.ids)


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
        """Write the base file of one operation."""
        number, operation = numbered
        storage = open_spec(self.settings.storage)
        target = _slice_of(operation, {s.path: s for s in storage.list_files(operation.partition)})
        attempt = int(self.ids.uuid()[:6], 16)
        token = TaskContext(number, 0, attempt).write_token
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


def _slice_of(operation: CompactionOperation, files: dict[str, FileStatus]) -> FileSlice:
    """Return the slice that an operation names, files that went missing included."""

    def status(name: str) -> FileStatus:
        path = join_path(operation.partition, name)
        return files.get(path) or FileStatus(path, 0)

    logs = [LogFile.parse(status(name)) for name in operation.log_files]
    return FileSlice(
        partition=operation.partition,
        file_id=operation.file_id,
        base_instant=operation.base_instant,
        base=BaseFile.parse(status(operation.base_file)) if operation.base_file else None,
        logs=tuple(sorted((log for log in logs if log), key=lambda log: log.order)),
    )


def _metrics(file_slice: FileSlice) -> dict[str, float]:
    """Return the sizes of an operation under Hudi's names."""
    logs = sum(log.status.size_bytes for log in file_slice.logs)
    base = file_slice.base.status.size_bytes if file_slice.base else 0
    read = round((logs + base) / _MEBIBYTE, 3)
    written = round((base or logs) / _MEBIBYTE, 3)
    return {
        "TOTAL_LOG_FILES": float(len(file_slice.logs)),
        "TOTAL_LOG_FILES_SIZE": float(logs),
        "TOTAL_IO_READ_MB": read,
        "TOTAL_IO_WRITE_MB": written,
        "TOTAL_IO_MB": round(read + written, 3),
    }
