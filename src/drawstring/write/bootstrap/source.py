"""Source of a bootstrap: a folder of Parquet files, with subfolders as partitions.

source/city=lima/part-0.parquet      column=value: the files may lack the columns
source/2024/01/part-0.parquet        values only: partition columns in this order, or in the files
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.config.keys.bootstrap import BootstrapMode
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.kinds import typed_columns
from drawstring.engine.protocol import Engine
from drawstring.formats.parquet import parquet_schema
from drawstring.keygen.path_values import parse_value
from drawstring.keygen.paths import DEFAULT_PARTITION
from drawstring.model.files import HOODIE_FOLDER, ORC, PARQUET, FileStatus
from drawstring.schema.evolve import evolve
from drawstring.schema.meta import META_COLUMNS
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec

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
