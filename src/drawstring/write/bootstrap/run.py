r"""Bootstrap of a table from a folder of Parquet files, which are not modified.

folder -- METADATA_ONLY --> a skeleton base file per file (meta columns only), and the bootstrap index
      \-- FULL_RECORD ----> base files with all columns of the rows

Each mode is a commit with a fixed instant, as in Apache Hudi. Both are written before either completes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids, Stopwatch
from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.keys.bootstrap import BootstrapMode
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.bootstrap_reader import with_values
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.filegroups.write.base_writer import BaseFileWriter
from drawstring.filegroups.write.markers import ready_files
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.bootstrap_index import BY_FILE_ID, BY_PARTITION, SourceFile, encode_bootstrap_index
from drawstring.formats.parquet import ParquetQuery, read_parquet
from drawstring.keygen.keys import KeyGenerator
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import (
    FULL_BOOTSTRAP,
    METADATA_BOOTSTRAP,
    FileStatus,
    TaskContext,
    join_path,
    random_file_id,
)
from drawstring.model.result import CommitResult
from drawstring.schema.avro import arrow_to_avro, record_name
from drawstring.schema.evolve import conform
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY, with_meta_fields
from drawstring.storage import open_spec
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_commit
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, begin, lock_table, recover_and_load
from drawstring.write.bootstrap.source import Source, SourceFolder
from drawstring.write.facts import WriteFacts
from drawstring.write.placement.sizing import Sizer
from drawstring.write.plan import WritePlan, plan_write
from drawstring.write.run import placed
from drawstring.write.verbs import BOOTSTRAP
from drawstring.write.write_source import InputRows

_INSTANTS = {BootstrapMode.METADATA_ONLY: METADATA_BOOTSTRAP, BootstrapMode.FULL_RECORD: FULL_BOOTSTRAP}

_OPERATIONS = {
    BootstrapMode.METADATA_ONLY: WriteOperation.BOOTSTRAP,
    BootstrapMode.FULL_RECORD: WriteOperation.BULK_INSERT,
}


def bootstrap(context: TableContext, source: Source, options: WriteOptions) -> CommitResult:
    """Fill an empty table with the rows of a folder.

    Args:
        context: the table.
        source: the folder.
        options: options of the write.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: the table has rows, or the source does not fit it.
    """
    watch = Stopwatch()
    with lock_table(context, options.locking) as locked:
        locked, timeline = recover_and_load(locked)
        if timeline.writes():
            raise InvalidError("The table already has rows. Bootstrap a new table.")
        for time in _INSTANTS.values():  # the only requested times that are reused
            locked.store.forget_rolled_back(time)
        work = _Work(locked, timeline, source, options)
        modes = [mode for mode in _INSTANTS if source.of(mode)]
        plans = {mode: work.planned(mode) for mode in modes}
        with ExitStack() as stack:
            action = BOOTSTRAP.action(locked.config)
            begun = {mode: stack.enter_context(begin(locked, action, _INSTANTS[mode])) for mode in modes}
            written = {mode: work.written(mode, plans[mode]) for mode in modes}
            for mode in modes:
                extra = {"schema": plans[mode].schema_json}
                metadata = CommitMetadata(tuple(written[mode]), _OPERATIONS[mode], extra)
                ready_files(context.storage, _INSTANTS[mode], metadata.stats)
                completed = begun[mode].commit(metadata)
    stats = [stat for some in written.values() for stat in some]
    result = CommitResult.of(completed, BOOTSTRAP.name, stats, watch.seconds())
    return emit_commit(context, locked.config, result, watch.laps)


@dataclass(frozen=True, slots=True)
class _Work:
    """A bootstrap of a locked table."""

    locked: LockedTable
    timeline: Timeline
    source: Source
    options: WriteOptions

    def planned(self, mode: BootstrapMode) -> WritePlan:
        """Check the bootstrap in a mode, and return the plan of its write.

        Raises:
            InvalidError: the options contradict the table or the source.
        """
        facts = self._facts(mode)
        plan = plan_write(facts, self.source.schema, BOOTSTRAP, self.options)
        if mode is BootstrapMode.METADATA_ONLY:
            self._check_left(plan)
        return plan

    def written(self, mode: BootstrapMode, plan: WritePlan) -> list[WriteStat]:
        """Write the base files of a mode and, for METADATA_ONLY, the bootstrap index."""
        files = self.source.of(mode)
        if mode is BootstrapMode.METADATA_ONLY:
            return self._left(plan, files)
        facts, context = self._facts(mode), self.locked.context
        lookup = SliceLookup(context.storage.spec, self.locked.config, facts.timeline)
        sizer = Sizer(facts, lookup, self.options.sizing)
        rows = context.engine.read(
            files, ReadFile(self.source.storage, self.source.schema), self.source.schema
        )
        return placed(InputRows(rows), plan, BOOTSTRAP, sizer)

    def _left(self, plan: WritePlan, files: list[tuple[SourceFolder, FileStatus]]) -> list[WriteStat]:
        context = self.locked.context
        nothing = arrow_to_avro(pa.schema([]), *record_name(self.locked.config.name))
        settings = replace(plan.settings, schema=pa.schema([]), avro_schema=with_meta_fields(nothing))
        prepare = plan.prepare
        task = WriteKeys(settings, prepare.config, prepare.key_schema, self.source.storage, context.ids)
        stats = context.engine.map(task, list(enumerate(files)))
        entries = [
            SourceFile(
                stat.partition,
                stat.file_id,
                join_path(self.source.uri, file.path),
                folder.path,
                file.size_bytes,
                file.modified_ms,
            )
            for stat, (folder, file) in zip(stats, files, strict=True)
        ]
        by_partition, by_file_id = encode_bootstrap_index(entries, self.source.uri, context.clock.now_ms())
        context.storage.put(BY_PARTITION, by_partition)
        context.storage.put(BY_FILE_ID, by_file_id)
        context.storage.sync(folders_above([BY_PARTITION, BY_FILE_ID]))
        return stats

    def _check_left(self, plan: WritePlan) -> None:
        """Check that the table supports METADATA_ONLY."""
        config = self.locked.config
        for refused, what in (
            (plan.index.is_hashed, "with a bucket index, the key determines the file of a row"),
            (
                not config.populate_meta_fields,
                "skeleton files consist of meta columns, which the table lacks",
            ),
            (not config.record_key_fields, "the table has no key columns"),
            (config.drop_partition_columns, "partition columns cannot be dropped from the source files"),
        ):
            if refused:
                raise InvalidError(
                    f"The rows cannot stay in the source files: {what}. Write them to the table (mode full)."
                )
        generator = KeyGenerator(plan.prepare.config, is_writing=True)
        for folder in self.source.folders:
            if folder.mode is BootstrapMode.METADATA_ONLY and set(config.partition_fields) <= {
                *folder.values
            }:
                values = {name: [folder.values[name]] for name in config.partition_fields}
                schema = pa.schema([plan.prepare.key_schema.field(name) for name in values])
                paths = generator.partition_paths(pa.record_batch(values, schema)) if values else [""]
                _check_paths(pa.array(paths, pa.string()), folder.partition)

    def _facts(self, mode: BootstrapMode) -> WriteFacts:
        return WriteFacts(self.locked, self.timeline, _INSTANTS[mode])


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Yields the rows of a source file with the columns of the table.

    Attributes:
        storage: opens the source.
        schema: columns of all files together.
    """

    storage: StorageSpec
    schema: pa.Schema

    def __call__(self, source: tuple[SourceFolder, FileStatus]) -> Iterator[pa.RecordBatch]:
        """Read one file."""
        folder, file = source
        yield from _rows(self.storage, folder, file, self.schema)


@dataclass(frozen=True, slots=True)
class WriteKeys:
    """Task that writes the skeleton base file of a source file.

    Attributes:
        settings: settings of the base file; its columns are the meta columns only.
        config: table configuration for the key generator.
        key_schema: key and partition columns.
        source: opens the source.
        ids: generates file ids, and a distinct write token for every attempt.
    """

    settings: FileSettings
    config: TableConfig
    key_schema: pa.Schema
    source: StorageSpec
    ids: Ids

    def __call__(self, numbered: tuple[int, tuple[SourceFolder, FileStatus]]) -> WriteStat:
        """Write the base file of one source file.

        Raises:
            InvalidError: a row has no key, or belongs to another partition.
        """
        number, (folder, file) = numbered
        token = TaskContext(number, 0, int(self.ids.uuid()[:6], 16)).write_token
        storage, partition = open_spec(self.settings.storage), folder.partition
        writer = BaseFileWriter(self.settings, storage, partition, random_file_id(self.ids.uuid()), token)
        meta_columns = self.settings.meta_column_writer(number)
        generator = KeyGenerator(self.config, is_writing=True)
        try:
            for batch in _rows(self.source, folder, file, self.key_schema):
                keys, paths = generator.keys_and_paths(batch)
                _check_paths(paths, partition)
                rows = pa.RecordBatch.from_arrays([keys, paths], names=[RECORD_KEY, PARTITION_PATH])
                writer.write(meta_columns.apply(rows, writer.name))
        except DrawstringError as error:
            writer.abort()
            raise error.at(path=file.path) from error.__cause__
        except BaseException:
            writer.abort()
            raise
        return writer.close(inserts=writer.rows)


def _rows(
    source: StorageSpec, folder: SourceFolder, file: FileStatus, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    query = ParquetQuery(schema.names)
    for batch in read_parquet(open_spec(source), file.path, query):
        yield conform(with_values(batch, folder.values, schema), schema)


def _check_paths(paths: pa.Array, partition: str) -> None:
    """Check that the partition paths of rows match their folder; later writes would look elsewhere."""
    elsewhere = pc.index(pc.not_equal(paths, partition), pa.scalar(True)).as_py()
    if elsewhere >= 0:
        raise InvalidError(
            f"The rows in folder {partition!r} belong to partition {paths[elsewhere].as_py()!r} of the"
            " table, so they cannot stay in the source files. Change the partition columns, hive-style"
            " partitioning, URL-encoding or hoodie.bootstrap.partitionpath.translator.class, or write the"
            " rows to the table (mode full)."
        )
