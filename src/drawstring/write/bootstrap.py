r"""Bootstrap a table from a folder of Parquet files, which stay as they are.

folder -- METADATA_ONLY --> a skeleton base file per file (meta columns only), and the bootstrap index
      \-- FULL_RECORD ----> base files with all columns of the rows

Each mode is a commit with a fixed instant, as in Apache Hudi. `bootstrap` writes the files of both modes
before either commit completes. The source folder has subfolders as partitions:

    source/city=lima/part-0.parquet      column=value: the files may lack the columns
    source/2024/01/part-0.parquet        values only: partition columns in this order, or in the files

`inspect_source` reads the footers of the files. The schema is the union of the columns of all files. The
partition path that the table gives a row must match its folder, since later writes would look elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids, Stopwatch
from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.config.keys.write import BootstrapMode
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.config.table_types import typed_columns
from drawstring.engine.protocol import Engine
from drawstring.filegroups.base_file_writer import BaseFileWriter, FileSettings
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.read.bootstrap_reader import with_values
from drawstring.filegroups.write.markers import ready_files
from drawstring.formats.bootstrap_index import BY_FILE_ID, BY_PARTITION, SourceFile, encode_bootstrap_index
from drawstring.formats.parquet import ParquetQuery, parquet_schema, read_parquet
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.keygen.partition_path import DEFAULT_PARTITION, parse_value
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import (
    FULL_BOOTSTRAP,
    HOODIE_FOLDER,
    METADATA_BOOTSTRAP,
    ORC,
    PARQUET,
    FileStatus,
    TaskContext,
    join_path,
    random_file_id,
)
from drawstring.model.result import CommitResult
from drawstring.schema.avro import arrow_to_avro, record_name
from drawstring.schema.evolution import conform, evolve
from drawstring.schema.fields import META_COLUMNS, PARTITION_PATH, RECORD_KEY, with_meta_fields
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec, folders_above
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_commit
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, begin, lock_table, recover_and_load
from drawstring.write.executor import placed
from drawstring.write.facts import WriteFacts
from drawstring.write.plan import BOOTSTRAP, WritePlan, plan_write
from drawstring.write.sizing import Sizer
from drawstring.write.source import InputRows

_DELTA: Final = "_delta_log"
_HIDDEN: Final = ("_", ".")
_GUESSES: Final = (pa.int32(), pa.int64(), pa.date32())


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder of the source that has files.

    Attributes:
        path: path relative to the root of the source.
        partition: partition path of its rows if they stay in the source files.
        mode: bootstrap mode of its rows.
        values: values of the partition columns that the files lack.
        files: its files.
    """

    path: str
    partition: str
    mode: BootstrapMode
    values: Mapping[str, Any]
    files: tuple[FileStatus, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a bootstrap.

    Attributes:
        storage: opens the source.
        uri: address of its root.
        schema: columns of its rows; partition columns that only folder names have come last.
        hive_style: whether folder names have the form `column=value`.
        folders: the folders with files.
    """

    storage: StorageSpec
    uri: str
    schema: pa.Schema
    hive_style: bool
    folders: tuple[SourceFolder, ...]

    def of(self, mode: BootstrapMode) -> list[tuple[SourceFolder, FileStatus]]:
        """Return the files of a bootstrap mode, with their folders."""
        return [(folder, file) for folder in self.folders if folder.mode is mode for file in folder.files]


def inspect_source(
    storage: Storage, partition_by: Sequence[str], options: WriteOptions, engine: Engine
) -> Source:
    """Return the source of a bootstrap; reads the footers of its files.

    Args:
        storage: the folder.
        partition_by: partition columns, with types for a CUSTOM key generator.
        options: options of the write.
        engine: runs the tasks that read footers.

    Raises:
        InvalidError: it has no Parquet files, their columns differ, or its partition columns are others.
        UnsupportedError: it has ORC files.
    """
    columns, mode_options = typed_columns(partition_by)[0], options.bootstrap
    decodes = mode_options.decodes(url_encode=bool(options.url_encode))
    files = _files_by_folder(storage)
    schema = _schema(storage, [file for some in files.values() for file in some], engine)
    missing = [name for name in columns if name not in schema.names]
    texts = {folder: _texts(folder, columns) for folder in files}
    is_hive = bool(columns) and all(_names(folder) == columns for folder in files)
    _check_layout(files, columns, missing)
    kinds = {name: _kind([text[name] for text in texts.values()]) for name in missing}
    folders = [
        SourceFolder(
            path=folder,
            partition=unquote(folder) if decodes else folder,
            mode=mode_options.mode_of(folder),
            values={name: _value(texts[folder][name], kinds[name]) for name in missing},
            files=tuple(some),
        )
        for folder, some in sorted(files.items())
    ]
    whole = pa.schema([*schema, *(pa.field(name, kind) for name, kind in kinds.items())])
    return Source(storage.spec, storage.full_uri(""), whole, is_hive, tuple(folders))


@dataclass(frozen=True, slots=True)
class ReadSchema:
    """Task that reads the schema of a file.

    Attributes:
        storage: opens the source.
    """

    storage: StorageSpec

    def __call__(self, path: str) -> pa.Schema:
        """Return the columns of the file at a path."""
        return parquet_schema(open_spec(self.storage), path)


def _files_by_folder(storage: Storage) -> dict[str, list[FileStatus]]:
    by_folder: dict[str, list[FileStatus]] = defaultdict(list)
    for status in storage.list_tree(""):
        if status.path.startswith((f"{HOODIE_FOLDER}/", f"{_DELTA}/")):
            kind = "Hudi" if status.path.startswith(HOODIE_FOLDER) else "Delta"
            raise InvalidError(
                f"The source is a {kind} table, not a folder of Parquet files. Read that table and write its"
                " rows to a new table.",
                path=storage.full_uri(""),
            )
        is_hidden = any(part.startswith(_HIDDEN) for part in status.path.split("/"))
        if status.path.endswith(ORC) and not is_hidden:
            raise UnsupportedError(
                "The source has an ORC file, and this release bootstraps folders of Parquet files only."
                " Write its rows to a new table.",
                path=storage.full_uri(status.path),
            )
        if status.path.endswith(PARQUET) and not is_hidden:
            by_folder[status.folder].append(status)
    if not by_folder:
        raise InvalidError(
            f"The source has no Parquet files (*{PARQUET}). Check its path.",
            path=storage.full_uri(""),
        )
    return by_folder


def _schema(storage: Storage, files: Sequence[FileStatus], engine: Engine) -> pa.Schema:
    """Return the union of the columns of all files."""
    schemas = engine.map(ReadSchema(storage.spec), [file.path for file in files])
    schema = pa.schema([])
    done: list[pa.Schema] = []
    for file, columns in zip(files, schemas, strict=True):
        if any(columns.equals(each) for each in done):
            continue
        done.append(columns)
        if META_COLUMNS[0] in columns.names:
            raise InvalidError(
                "A file of the source has Hudi's meta columns, so it belongs to a Hudi table. Read that table"
                " and write its rows to a new table.",
                path=file.path,
            )
        try:
            schema = evolve(schema, pa.schema([field.with_nullable(True) for field in columns]))
        except DrawstringError as error:
            raise error.at(path=file.path) from error.__cause__
    return schema


def _check_layout(files: Mapping[str, object], columns: tuple[str, ...], missing: Sequence[str]) -> None:
    """Check that folder names and partition columns match."""
    for folder in files:
        names = _names(folder)
        if names and names != columns:
            raise InvalidError(
                f"The source is partitioned by {', '.join(names)} ({folder!r}), but the table by"
                f" {', '.join(columns) or 'nothing'}. Set the partition columns to those of the source."
            )
        depth = folder.count("/") + 1 if folder else 0
        if missing and depth != len(columns):
            raise InvalidError(
                f"Partition column {missing[0]} is neither in the files nor in the names of folders such as"
                f" {folder!r}. Give one partition column per folder level, in their order."
            )


def _names(folder: str) -> tuple[str, ...]:
    """Return the columns in a folder path; empty unless every part has the form `column=value`."""
    pairs = [part.partition("=") for part in folder.split("/")]
    return tuple(name for name, _, _ in pairs) if all(equals and name for name, equals, _ in pairs) else ()


def _texts(folder: str, columns: Sequence[str]) -> dict[str, str | None]:
    """Return the texts of the partition columns in a folder path; None for null."""
    named = bool(_names(folder))
    parts = [part.partition("=")[2] if named else part for part in folder.split("/")]
    values = [None if part == DEFAULT_PARTITION else unquote(part) for part in parts]
    return dict(zip(columns, values, strict=False))


def _kind(texts: Iterable[str | None]) -> pa.DataType:
    """Return a type that all texts can be parsed as."""
    known = [text for text in texts if text is not None]
    for kind in _GUESSES:
        if known and all(_fits(parse_value(text, kind), kind) for text in known):
            return kind
    return pa.string()


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        return value is not None and pa.scalar(value, kind).is_valid
    except (pa.ArrowInvalid, OverflowError):
        return False


def _value(text: str | None, kind: pa.DataType) -> Any:
    return None if text is None else parse_value(text, kind)


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
