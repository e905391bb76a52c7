"""Procedures that make a table of files, tell a catalog about one, and take back what was left undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.bootstrapping import bootstrap
from drawstring.config.options.write_options import WriteOptions, options_of
from drawstring.config.table.properties import decode_properties
from drawstring.filegroups.write.markers import Markers
from drawstring.services.catalogs.sync import sync
from drawstring.services.metadata_tables import (
    create_metadata_table,
    delete_metadata_table,
    metadata_address,
)
from drawstring.services.table_properties import overwrite_properties
from drawstring.spark.engine.spark_engine import SparkEngine
from drawstring.spark.locations import storage_options
from drawstring.spark.sql.named import named_table
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.spark.sql.table import path_of
from drawstring.storage import open_storage

_HIVE: Final = "hoodie.datasource.hive_sync."
_TRUE: Final = "true"
_FALSE: Final = "false"
_SYNC_OPTIONS: Final[Mapping[str, str]] = {
    "metastore_uri": f"{_HIVE}metastore.uris",
    "mode": f"{_HIVE}mode",
    "partition_fields": f"{_HIVE}partition_fields",
    "partition_extractor_class": f"{_HIVE}partition_extractor_class",
    "strategy": f"{_HIVE}table.strategy",
    "sync_incremental": "hoodie.meta.sync.incremental",
}
_BOOTSTRAP_OPTIONS: Final[Mapping[str, str]] = {
    "key_generator_class": "hoodie.datasource.write.keygenerator.class",
    "payload_class": "hoodie.datasource.write.payload.class",
    "selector_class": "hoodie.bootstrap.mode.selector",
    "bootstrap_index_class": "hoodie.bootstrap.index.class",
    "full_bootstrap_input_provider": "hoodie.bootstrap.full.input.provider",
}
_CHECKSUM: Final = "hoodie.table.checksum"


def run_bootstrap(call: Call) -> Rows:
    """Make a table of a folder of Parquet files; 0 stands for success.

    Raises:
        UnsupportedError: an existing table would be replaced, or settings or the schema come from elsewhere.
    """
    if call.text("schema_provider_class"):
        raise UnsupportedError(
            "A bootstrap takes the schema of the Parquet files. Leave schema_provider_class out."
        )
    if call.text("props_file_path"):
        raise UnsupportedError(
            "A bootstrap takes its settings from the call. Give options => 'key=value,...', not"
            " props_file_path."
        )
    if (format := call.needed("base_file_format").upper()) != "PARQUET":
        raise UnsupportedError(f"A bootstrap makes tables of Parquet files, not of {format}.")
    root, source = path_of(call.needed("base_path")), path_of(call.needed("bootstrap_path"))
    given = {key: text for name, key in _BOOTSTRAP_OPTIONS.items() if (text := call.text(name))}
    if call.flag("enable_hive_sync"):
        given[f"{_HIVE}enable"] = "true"
    bootstrap(
        root,
        source,
        name=call.needed("table"),
        record_key=call.names("rowKey_field"),
        table_type=call.needed("table_type"),
        partition_by=call.names("partition_path_field"),
        options={**given, **call.given_options},
        storage_options=storage_options(call.spark, root, {}),
        engine=SparkEngine(call.spark),
    )
    return [(0,)]


def hive_sync(call: Call) -> Rows:
    """Tell a Hive metastore about the table.

    Raises:
        InvalidError: `use_jdbc` is neither true nor false.
        UnsupportedError: HiveServer2 is to be told.
    """
    use_jdbc = (call.text("use_jdbc") or _FALSE).lower()
    if use_jdbc not in (_TRUE, _FALSE):
        raise InvalidError(f"use_jdbc is {use_jdbc}. Give true or false, or leave it out.")
    by_jdbc = [name for name in ("username", "password") if call.text(name)]
    if use_jdbc == _TRUE:
        by_jdbc.append("use_jdbc")
    if by_jdbc and not call.text("mode"):
        raise UnsupportedError(
            f"{', '.join(by_jdbc)} => ... are for HiveServer2, but a sync here speaks to the metastore. Give"
            " mode => 'hms', as for Hudi, or leave them out."
        )
    options = {**call.options, f"{_HIVE}enable": "true"}
    options |= {key: text for name, key in _SYNC_OPTIONS.items() if (text := call.text(name))}
    sync(call.table._context, WriteOptions.parse(options).sync)
    return [("hive sync success.",)]


def delete_marker(call: Call) -> Rows:
    """Delete the markers of instants, separated by commas, that are no longer pending.

    Raises:
        InvalidError: one is pending, and its rollback needs them.
    """
    call.needed("instant_time")
    times, table = call.names("instant_time"), call.table
    for pending in table.timeline.pending():
        if pending.requested in times:
            raise InvalidError(
                f"{pending.requested} is pending, and its rollback finds its files by the markers. Let the"
                " next write roll it back, or CALL rollback_to_instant."
            )
    for time in times:
        Markers(table._context.storage, time).remove()
    return [(True,)]


def run_rollback_inflight_tableservice(call: Call) -> Rows:
    """Give up a pending compaction or clustering, its plan included.

    Raises:
        InvalidError: the plan is to stay: the next run takes back by itself what a dead one left.
    """
    if not call.flag("delete_request_instant_file"):
        raise InvalidError(
            "A table service whose run died needs no rollback: the next run takes back what it left. Give"
            " delete_request_instant_file => true to give up the plan as well."
        )
    watch = Stopwatch()
    done = call.table.rollback(call.needed("pending_instant"), options=call.options)
    return [(done.instant, f"{watch.seconds():.3f} s")]


def create_metadata(call: Call) -> Rows:
    """Build the metadata table of a table that has none."""
    watch, context = Stopwatch(), call.table._context
    create_metadata_table(context, options_of("insert", call.options))
    return [(f"Created Metadata Table in {metadata_address(context)} (duration={watch.seconds():.3f}secs)",)]


def delete_metadata(call: Call) -> Rows:
    """Delete the metadata tables of tables, separated by commas; the next write that keeps one builds it.

    Tables without a metadata table are passed over.
    """
    call.needed("table")
    tables = [named_table(call.spark, name) for name in call.names("table")]
    deleted = [
        metadata_address(each.table._context)
        for each in tables
        if delete_metadata_table(
            each.table._context, options_of("insert", {**each.options, **call.given_options})
        )
    ]
    return [(f"Removed Metadata Table from {', '.join(deleted) or 'no table: none has one'}",)]


def init_metadata(call: Call) -> Rows:
    """Say that a table has a metadata table; writes keep it up to date.

    Raises:
        InvalidError: it has none.
    """
    watch, table = Stopwatch(), call.table
    if not table.config.metadata_partitions:
        raise InvalidError("The table has no metadata table. Use CALL create_metadata_table.")
    done = "Opened" if call.flag("read_only") else "Initialized"
    address = metadata_address(table._context)
    return [(f"{done} Metadata Table in {address} (duration={watch.seconds():.3f}sec)",)]


def repair_overwrite_hoodie_props(call: Call) -> Rows:
    """Replace the properties of a table by those in a file; return each with its old and its new value."""
    address = path_of(call.needed("new_props_file_path"))
    folder, _, name = address.rpartition("/")
    try:
        data = open_storage(folder or "/", storage_options(call.spark, folder, {})).read(name)
    except FileNotFoundError as error:
        raise InvalidError(f"There is no file {address}. Give the path of one with properties.") from error
    new = decode_properties(data)
    new.pop(_CHECKSUM, None)
    old = overwrite_properties(call.table._context, new, options_of("insert", call.options))
    keys = sorted({*old, *new} - {_CHECKSUM})
    return [(key, old.get(key, "null"), new.get(key, "null")) for key in keys]


PROCEDURES: Final = (
    Procedure(
        "repair_overwrite_hoodie_props",
        "table STRING!, new_props_file_path STRING!",
        "property STRING, old_value STRING, new_value STRING",
        repair_overwrite_hoodie_props,
    ),
    Procedure("create_metadata_table", "table STRING!", "result STRING", create_metadata),
    Procedure("delete_metadata_table", "table STRING!", "result STRING", delete_metadata),
    Procedure(
        "init_metadata_table", "table STRING!, read_only BOOLEAN=false", "result STRING", init_metadata
    ),
    Procedure(
        "run_bootstrap",
        "table STRING!, table_type STRING!, bootstrap_path STRING!, base_path STRING!, rowKey_field STRING!,"
        " base_file_format STRING='PARQUET', partition_path_field STRING, bootstrap_index_class STRING,"
        " selector_class STRING, key_generator_class STRING, full_bootstrap_input_provider STRING,"
        " schema_provider_class STRING, payload_class STRING, parallelism INT=1500,"
        " enable_hive_sync BOOLEAN=false, props_file_path STRING, bootstrap_overwrite BOOLEAN=false,"
        " options STRING",
        "status INT",
        run_bootstrap,
    ),
    Procedure(
        "hive_sync",
        "table STRING!, metastore_uri STRING, username STRING, password STRING, use_jdbc STRING,"
        " mode STRING, partition_fields STRING, partition_extractor_class STRING, strategy STRING,"
        " sync_incremental STRING",
        "result STRING",
        hive_sync,
    ),
    Procedure(
        "delete_marker",
        "table STRING!, instant_time STRING!",
        "delete_marker_result BOOLEAN",
        delete_marker,
    ),
    Procedure(
        "run_rollback_inflight_tableservice",
        "table STRING, path STRING, pending_instant STRING!, delete_request_instant_file BOOLEAN=false",
        "instant STRING, time_cost STRING",
        run_rollback_inflight_tableservice,
    ),
)
