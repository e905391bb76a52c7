"""Bootstrap: create a table from a folder of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from drawstring.base.errors import InvalidError, UnsupportedError, errors_at
from drawstring.config.keys.index import EXPRESSIONS
from drawstring.config.keys.write import BASE_PATH, BootstrapMode, bootstrap_properties
from drawstring.config.keywords import with_keywords
from drawstring.config.options.write_options import OPERATION_KEY, WriteOptions, check_call, table_scope
from drawstring.config.table.storage_layout import BASE_FORMAT, LSM_TREE, STORAGE_LAYOUT, is_sorted
from drawstring.config.table_config import TableType
from drawstring.creation import TableDefinition, described, make_table
from drawstring.engine.local import engine_of
from drawstring.engine.protocol import Engine
from drawstring.model.result import CommitResult
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import PROPERTIES_PATH, load_config
from drawstring.txn.table_context import TableContext
from drawstring.write.bootstrap import Source, inspect_source
from drawstring.write.bootstrap import bootstrap as fill

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
    version: int = DEFAULT_VERSION,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> CommitResult:
    """Create a table from a folder of Parquet files, which is not modified.

    With mode `metadata`, the rows stay in the source files: the table gets small skeleton files with keys,
    and readers join the two, so the source must remain unchanged. With `full`, all rows are written to the
    table. Duplicate keys in the source are not merged, unless the storage layout is `lsm_tree`.

    Args:
        uri: path or address of the new table's root: `/path`, `file://`, `s3://` (or `s3a://`), `gs://`,
            `abfss://` or `az://`, or `memory://`, which exists as long as the process.
        source: path of the folder. Its subfolders are partitions, named `column=value` or by values only.
        record_key: column or columns that identify a record in its partition.
        mode: `metadata` or `full`.
        matching: regular expression for the partition paths that get the mode; others get the other mode.
        name: name of the table; the last part of the address by default.
        table_type: `COPY_ON_WRITE` or `MERGE_ON_READ`.
        partition_by: partition columns, in the order of the folders.
        ordering: ordering fields: of versions with the same key, the greatest value wins.
        version: table version: 9, 10, 8 or 6.
        options: further write options by Hudi's keys, including table properties, as in
            `{"hoodie.datasource.write.hive_style_partitioning": True}`.
        storage_options: options of the object store, for both places, as in `{"region": "eu-central-1"}`.
        engine: runs the tasks; the embedded one by default.

    Returns:
        The result of the commit: its instant, and numbers of rows, files and bytes.

    Raises:
        InvalidError: a table already exists, or the source has no Parquet files or does not fit.
        UnsupportedError: this release cannot write such tables.
        CorruptTableError: a file of the source is damaged. No table is created if an error is raised.

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
    definition = TableDefinition(
        table_type, version, _names(record_key), _names(partition_by), _names(ordering)
    )
    given = {
        **_mode_options(mode, matching),
        **with_keywords("bootstrap", options),
        BASE_PATH: os.fspath(source),
    }
    place = Place(os.fspath(uri), storage_options or {}, engine_of(engine))
    check_call(given, "bootstrap")
    return bootstrapped(place, name, definition, given)


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a new table, and the engine that writes it.

    Attributes:
        uri: root of the table.
        storage_options: options of the object store.
        engine: runs the tasks.
    """

    uri: str
    storage_options: Mapping[str, str]
    engine: Engine


def bootstrapped(
    place: Place, name: str | None, definition: TableDefinition, options: Mapping[str, Any]
) -> CommitResult:
    """Create a table from options by Hudi's keys; see `bootstrap`.

    Args:
        place: location of the table.
        name: name of the table; the last part of the address by default.
        definition: type, columns and version of the table.
        options: write options by Hudi's keys, including the source.
    """
    root = place.uri.rstrip("/")
    with errors_at(root):
        parsed = WriteOptions.parse({**options, OPERATION_KEY: "bootstrap"})
        if not parsed.bootstrap.source:
            raise InvalidError(
                f"The bootstrap has no source. Set {BASE_PATH} to the folder of Parquet files."
            )
        storage = open_storage(place.uri, place.storage_options)
        source_storage = open_storage(parsed.bootstrap.source, place.storage_options)
        _check_apart(storage.full_uri(""), source_storage.full_uri(""))
        source = inspect_source(source_storage, definition.partition_by, parsed, place.engine)
        properties = _properties(name or root.rpartition("/")[2], definition, source, options)
        is_new = _make(storage, properties)
        try:
            return fill(TableContext(storage, place.engine), source, parsed)
        except BaseException:
            if is_new:
                storage.delete_tree("")
            raise


def _properties(
    name: str, definition: TableDefinition, source: Source, options: Mapping[str, Any]
) -> dict[str, str]:
    """Return the properties of the table."""
    stored = table_scope(options)
    if source.hive_style:
        stored.setdefault(_HIVE_STYLE, "true")
    if stored.get(BASE_FORMAT, "parquet").lower() != "parquet":
        raise UnsupportedError(
            f"A bootstrapped table has Parquet base files, as its source has. Drop {BASE_FORMAT}, or create a"
            " table and insert the rows."
        )
    properties = described(name, source.schema, definition, stored)
    has_left = bool(source.of(BootstrapMode.METADATA_ONLY))
    if is_sorted(properties) and has_left:
        raise InvalidError(
            "Rows that stay in the source files (mode metadata) stay in their order, but"
            f" {STORAGE_LAYOUT}={LSM_TREE} sorts each file by record key. Write all rows to the table (mode"
            " full), or drop the option."
        )
    return properties | bootstrap_properties(
        source.uri, definition.version, has_index=has_left or not is_sorted(properties)
    )


def _make(storage: Storage, properties: Mapping[str, str]) -> bool:
    """Create the empty table; return False if a failed bootstrap left it.

    Raises:
        InvalidError: the folder has another table or other files.
    """
    if not storage.list_files("") and not storage.list_folders(""):
        make_table(storage, properties)
        return True
    if storage.exists(PROPERTIES_PATH):
        existing = load_config(storage).properties
        if all(existing.get(key) == value for key, value in properties.items() if key != EXPRESSIONS):
            return False
        raise InvalidError(
            "A table already exists at this path. Use another path, or delete the table first."
        )
    raise InvalidError("The folder for the table is not empty. Use another path.")


def _check_apart(table: str, source: str) -> None:
    if f"{table}/".startswith(f"{source}/") or f"{source}/".startswith(f"{table}/"):
        raise InvalidError(
            "The table and its source contain each other. Use a path for the table outside of the source."
        )


def _mode_options(mode: str, matching: str | None) -> dict[str, str]:
    """Return the options by Hudi's keys for a mode."""
    if mode not in _MODES:
        raise InvalidError(f"There is no mode {mode!r}. Use metadata or full.")
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
