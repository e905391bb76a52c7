"""Make a table of a folder of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.keys.bootstrap import BASE_PATH, BootstrapMode, bootstrap_properties
from drawstring.config.keys.index import EXPRESSIONS
from drawstring.config.keywords import with_keywords
from drawstring.config.options.write_options import OPERATION_KEY, WriteOptions, check_call, table_scope
from drawstring.config.table.config import TableType
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Engine
from drawstring.entry import TableShape, described, make_table
from drawstring.model.result import CommitResult
from drawstring.model.table_version import NEWEST_VERSION
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties_store import PROPERTIES_PATH, load_config
from drawstring.txn.table_context import TableContext
from drawstring.write.bootstrap.run import bootstrap as fill
from drawstring.write.bootstrap.source import Source, look_at_source

_HIVE_STYLE: Final = "hoodie.datasource.write.hive_style_partitioning"
_SELECTOR: Final = "hoodie.bootstrap.mode.selector"
_MODES: Final = {"metadata": BootstrapMode.METADATA_ONLY, "full": BootstrapMode.FULL_RECORD}


def bootstrap(
    uri: str | os.PathLike[str],
    source: str | os.PathLike[str],
    *,
    record_key: str | Sequence[str],
    mode: str = "metadata",
    matching: str | None = None,
    name: str | None = None,
    table_type: str = TableType.COPY_ON_WRITE,
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] = (),
    version: int = NEWEST_VERSION,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> CommitResult:
    """Make a table of a folder of Parquet files, which stays as it is.

    With mode `metadata` the rows stay where they are: the table gets small files with keys, and readers put
    the two together, so the source has to stay, unchanged. With `full` all rows are written to the table.
    Keys are taken as they are: rows of the source that have one key in common stay so.

    Args:
        uri: path or address of the new table's root: `/path`, `file://`, `s3://` (or `s3a://`), and
            `memory://`, which ends with the process.
        source: path of the folder. Folders in it are partitions, named `column=value` or by values alone.
        record_key: column or columns that tell a record from all others in its partition.
        mode: `metadata` or `full`.
        matching: a regular expression of paths below the source that the mode is for; others get the other.
        name: the table's name; the last part of the address by default.
        table_type: `COPY_ON_WRITE` or `MERGE_ON_READ`.
        partition_by: partition columns, in the order of the folders.
        ordering: columns whose greater value wins when a key comes twice.
        version: table version: 9, 8 or 6.
        options: further write options by Hudi's keys, those that a table stores among them, as in
            `{"hoodie.datasource.write.hive_style_partitioning": True}`.
        storage_options: options of the object store, for both places, as in `{"region": "eu-central-1"}`.
        engine: runs the tasks; the embedded one by default.

    Returns:
        What was committed: its instant, and numbers of rows, files and bytes.

    Raises:
        InvalidError: there is a table already, the source has no Parquet files, or others than described.
        UnsupportedError: this release does not write such tables.
        CorruptTableError: a file of the source is damaged. Whatever is raised, there is no new table then.

    Example:
        >>> import os, tempfile, pyarrow.parquet as pq
        >>> folder = tempfile.mkdtemp()
        >>> os.makedirs(f"{folder}/source/city=lima")
        >>> rows = pa.table({"id": [1, 2], "fare": [10.0, 20.0]})
        >>> pq.write_table(rows, f"{folder}/source/city=lima/a.parquet")
        >>> drawstring.bootstrap(
        ...     f"{folder}/table", f"{folder}/source", record_key="id", partition_by="city"
        ... ).records_written
        2
    """
    shape = TableShape(table_type, version, _names(record_key), _names(partition_by), _names(ordering))
    given = {
        **_mode_options(mode, matching),
        **with_keywords("bootstrap", options),
        BASE_PATH: os.fspath(source),
    }
    place = Place(os.fspath(uri), storage_options or {}, engine or LocalEngine())
    check_call(given, "bootstrap")
    return bootstrapped(place, name, shape, given)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is to be.

    Attributes:
        uri: its root.
        storage_options: options of the object store.
        engine: runs the tasks.
    """

    uri: str
    storage_options: Mapping[str, str]
    engine: Engine


def bootstrapped(
    place: Place, name: str | None, shape: TableShape, options: Mapping[str, Any]
) -> CommitResult:
    """Make a table as Hudi's options say; see `bootstrap`.

    Args:
        place: where it is to be.
        name: its name; the last part of the address by default.
        shape: what it is like.
        options: Hudi's write options, the source among them.
    """
    root = place.uri.rstrip("/")
    try:
        asked = WriteOptions.parse({**options, OPERATION_KEY: "bootstrap"})
        if not asked.bootstrap.source:
            raise InvalidError(f"a bootstrap needs a source: set {BASE_PATH} to the folder of Parquet files")
        storage = open_storage(place.uri, place.storage_options)
        found = open_storage(asked.bootstrap.source, place.storage_options)
        _check_apart(storage.full_uri(""), found.full_uri(""))
        source = look_at_source(found, shape.partition_by, asked, place.engine)
        properties = _properties(name or root.rpartition("/")[2], shape, source, options)
        is_new = _make(storage, properties)
        try:
            return fill(TableContext(storage, place.engine), source, asked)
        except BaseException:
            if is_new:
                storage.delete_tree("")
            raise
    except DrawstringError as error:
        raise error.at(table=root) from error.__cause__


def _properties(name: str, shape: TableShape, source: Source, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of the table."""
    stored = table_scope(options)
    if source.hive_style:
        stored.setdefault(_HIVE_STYLE, "true")
    return described(name, source.schema, shape, stored) | bootstrap_properties(source.uri, shape.version)


def _make(storage: Storage, properties: Mapping[str, str]) -> bool:
    """Make the empty table; False when a bootstrap that died left it.

    Raises:
        InvalidError: something else is there already.
    """
    if not storage.list_files("") and not storage.list_folders(""):
        make_table(storage, properties)
        return True
    if storage.exists(PROPERTIES_PATH):
        left = load_config(storage).properties
        if all(left.get(key) == value for key, value in properties.items() if key != EXPRESSIONS):
            return False
        raise InvalidError("there is a table already: choose another path, or delete the table first")
    raise InvalidError("the folder for the table is not empty: choose another path")


def _check_apart(table: str, source: str) -> None:
    if f"{table}/".startswith(f"{source}/") or f"{source}/".startswith(f"{table}/"):
        raise InvalidError(
            "the table and its source lie in one another: choose a path for the table outside of the source"
        )


def _mode_options(mode: str, matching: str | None) -> dict[str, str]:
    """Return a mode as Hudi's options say it."""
    if mode not in _MODES:
        raise InvalidError(f"there is no mode {mode!r}: use metadata or full")
    if matching is None:
        is_full = _MODES[mode] is BootstrapMode.FULL_RECORD
        return {_SELECTOR: f"{'FullRecord' if is_full else 'MetadataOnly'}BootstrapModeSelector"}
    return {
        _SELECTOR: "BootstrapRegexModeSelector",
        f"{_SELECTOR}.regex": matching,
        f"{_SELECTOR}.regex.mode": _MODES[mode].value,
    }


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
