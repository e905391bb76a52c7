"""Sources by name: short ones, and the classes of HoodieStreamer.

Sources of files, of Hudi tables and of queries are here. Others are plug-ins (`SourceProvider`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from drawstring.base.errors import InvalidError
from drawstring.base.plugins import custom_fault, custom_faults, find_plugin, is_custom, plugin_names
from drawstring.config.table.properties import unescape
from drawstring.entry import open as open_table
from drawstring.ingestion.file_sources import (
    JSON_LIMIT_BYTES,
    CsvFiles,
    FileSource,
    ReadFiles,
    inspect_columnar_file,
    read_avro_files,
    read_columnar_files,
    read_json_files,
)
from drawstring.ingestion.hudi_source import HudiSource, QuerySource
from drawstring.ingestion.source_protocol import Source, SourceContext, SourceProvider, is_within
from drawstring.storage import is_object_store, open_storage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUP: Final = "drawstring.sources"
_PACKAGE: Final = "org.apache.hudi.utilities.sources."


def named_source(name: str, context: SourceContext) -> Source:
    """Return a source.

    Args:
        name: a short name, or a class of HoodieStreamer with its package or without.
        context: what it is made of.

    Raises:
        InvalidError: there is no such source, or it lacks an option.
    """
    return check_source(name, context).make(context)


def check_source(name: str, context: SourceContext) -> SourceProvider:
    """Check the name and the options of a source, without asking a store, a server or a database.

    Args:
        name: as for `named_source`.
        context: what it is made of. Options of object stores do not matter here.

    Returns:
        What makes it.

    Raises:
        InvalidError: there is no such source, or it lacks an option.
    """
    plain = name.removeprefix(_PACKAGE)
    provider = _SOURCES.get(plain.lower()) or _SOURCES.get(_CLASSES.get(plain, "")) or _plugin(plain)
    if provider is None:
        raise _unknown_source(name)
    provider.check(context)
    return provider


def _plugin(name: str) -> SourceProvider | None:
    entry = find_plugin(_GROUP, name) or find_plugin(_GROUP, name.lower())
    if entry is None:
        return None
    if is_custom(entry):
        return _CustomSource(entry)
    kind: Callable[[], SourceProvider] = entry.load()
    return kind()


def _unknown_source(name: str) -> InvalidError:
    names = plugin_names(_GROUP)
    known = sorted({*_SOURCES, *_CLASSES, *names}, key=lambda each: (not each.islower(), each))
    hint = "" if names else " Those that need a library are missing: install drawstring with pip."
    return InvalidError(f"There is no source {name!r}. Use one of {', '.join(known)}.{hint}")


class _CustomSource(SourceProvider):
    """Wrap a source provider of a user, and name it in its faults.

    Args:
        entry: its entry point.
    """

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry

    def check(self, context: SourceContext) -> object:
        return self._loaded("check", context)

    def make(self, context: SourceContext) -> Source:
        source = self._loaded("make", context)
        if not isinstance(source, Source):
            raise custom_fault(self._entry, "source", f"made {source!r}, which lacks the methods of a source")
        return source

    def _loaded(self, method: str, context: SourceContext) -> object:
        """Import the provider and call a method of it."""
        with custom_faults(self._entry, "source", "cannot be imported"):
            kind = self._entry.load()
        with custom_faults(self._entry, "source", f"failed in {method}"):
            return getattr(kind(), method)(context)


@dataclass(frozen=True, slots=True)
class _Source:
    """A source of this module.

    Attributes:
        check: raises InvalidError if an option is missing or wrong.
        make: returns a source.
    """

    check: Callable[[SourceContext], object]
    make: Callable[[SourceContext], Source]


def _columnar(context: SourceContext) -> Source:
    return replace(_files(context, read_columnar_files), look=inspect_columnar_file)


def _avro(context: SourceContext) -> Source:
    return _files(context, read_avro_files)


def _json(context: SourceContext) -> Source:
    return _files(context, read_json_files, JSON_LIMIT_BYTES)


def _csv(context: SourceContext) -> Source:
    options = context.options
    names = context.schema.names if context.schema is not None else ()
    read = CsvFiles(
        _character("hoodie.streamer.csv.sep", options.csv_separator),
        options.csv_quote,
        options.csv_escape,
        options.csv_null,
        options.csv_header,
        options.csv_multi_line,
        names,
    )
    return _files(context, read)


def _character(key: str, text: str) -> str:
    r"""Return the character that an option names, perhaps by an escape such as `\t`.

    Raises:
        InvalidError: it is none, or several.
    """
    character = unescape(text)
    if len(character) != 1 or character in "\r\n":
        raise InvalidError(f"{key} is {text!r}. Give one character, such as ';', or \\t for a tab.")
    return character


def _folder(context: SourceContext) -> str:
    root = context.options.files_root
    if not root:
        raise InvalidError(
            "The source has no folder. Set hoodie.streamer.source.dfs.root to the folder of the files."
        )
    local = None if is_object_store(root) else open_storage(root).local_path("")
    if local is not None and not os.path.isdir(local):
        raise InvalidError(
            f"There is no folder {local}, which hoodie.streamer.source.dfs.root names. Correct the option, or"
            " create the folder if nothing arrived yet."
        )
    if is_within(context.target, root):
        raise InvalidError(
            f"The table is in the folder {root} of its source, which would read the files of the table. Set"
            " hoodie.streamer.source.dfs.root to a folder without it."
        )
    return root


def _files(context: SourceContext, read: ReadFiles, limit_bytes: int | None = None) -> FileSource:
    storage = open_storage(_folder(context), context.storage_options)
    source = FileSource(storage, read, context.clock, context.options.files_age_ms)
    return source if limit_bytes is None else source.limited(limit_bytes)


def _table_path(context: SourceContext) -> str:
    path = context.options.hudi_path
    if not path:
        raise InvalidError(
            "The source has no table. Set hoodie.streamer.source.hoodieincr.path to the root of one."
        )
    if is_within(path, context.target):
        raise InvalidError(
            f"The source {path} is the table itself: each batch would be the source of the next. Set"
            " hoodie.streamer.source.hoodieincr.path to another table."
        )
    return path


def _hudi(context: SourceContext, *, has_changes: bool = False) -> Source:
    options = context.options
    table = open_table(_table_path(context), storage_options=context.storage_options or None)
    return HudiSource(table, options.hudi_commits, options.hudi_begins == "READ_LATEST", has_changes)


def _hudi_changes(context: SourceContext) -> Source:
    return _hudi(context, has_changes=True)


def _text_of_query(context: SourceContext) -> str:
    query = context.options.query
    if not query:
        raise InvalidError("The source has no query. Set hoodie.streamer.source.sql.sql.query.")
    return query


def _query(context: SourceContext) -> Source:
    options = context.options
    return QuerySource(
        _text_of_query(context), context.storage_options, context.clock, options.query_has_checkpoint
    )


_SOURCES: Final[Mapping[str, SourceProvider]] = {
    "parquet": _Source(_folder, _columnar),
    "orc": _Source(_folder, _columnar),
    "csv": _Source(_folder, _csv),
    "json": _Source(_folder, _json),
    "avro": _Source(_folder, _avro),
    "hudi": _Source(_table_path, _hudi),
    "hudi-changes": _Source(_table_path, _hudi_changes),
    "sql": _Source(_text_of_query, _query),
}
_CLASSES: Final[Mapping[str, str]] = {
    "ParquetDFSSource": "parquet",
    "ORCDFSSource": "orc",
    "CsvDFSSource": "csv",
    "JsonDFSSource": "json",
    "AvroDFSSource": "avro",
    "HoodieIncrSource": "hudi",
    "SqlSource": "sql",
}
