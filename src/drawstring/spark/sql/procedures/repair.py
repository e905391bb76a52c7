"""Define the procedures that change or repair a table as a whole.

REPAIR_PROCEDURES   repair repeated keys and plans that cannot be read
SYNC_PROCEDURES     bootstrap a table from files, sync a catalog, delete markers, create and delete the
                    metadata table, roll back pending table services
TABLE_PROCEDURES    savepoints, rollback, partitions, versions, copies
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.bootstrapping import bootstrap
from drawstring.config.options.write_options import WriteOptions, options_of
from drawstring.config.table.properties import decode_properties
from drawstring.filegroups.write.markers import Markers
from drawstring.model.instant import Action
from drawstring.services.alter import overwrite_properties
from drawstring.services.catalogs.sync import sync
from drawstring.services.clean import drop_unreadable_plans
from drawstring.services.indexing import create_metadata_table, delete_metadata_table, metadata_address
from drawstring.services.upgrade import change_version
from drawstring.spark import functions
from drawstring.spark.engine import ExecutorEngine
from drawstring.spark.sql.column_types import literal
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.spark.sql.tables import open_named_table
from drawstring.spark.storage_options import path_of, storage_options
from drawstring.storage import open_storage

_KINDS: Final = ("insert_type", "update_type", "upsert_type")
_OLDER: Final = (
    "SELECT *, row_number() OVER (PARTITION BY _hoodie_record_key"
    " ORDER BY _hoodie_commit_time DESC, _hoodie_commit_seqno DESC) AS _place FROM"
    " (SELECT _hoodie_commit_time, _hoodie_commit_seqno, _hoodie_record_key, _hoodie_partition_path, *"
    " FROM {table} WHERE _hoodie_partition_path = {partition})"
)
_TWICE_IN_A_FILE_GROUP: Final = (
    "SELECT _hoodie_record_key FROM {table} WHERE _hoodie_partition_path = {partition}"
    " GROUP BY _hoodie_record_key, split(_hoodie_file_name, '_')[0] HAVING count(*) > 1 LIMIT 1"
)


def repair_corrupted_clean_files(call: Call) -> Rows:
    """Take pending cleans whose plans cannot be read off the timeline; the next clean makes a new plan."""
    drop_unreadable_plans(call.table._context, options_of("insert", call.options))
    return [(True,)]


def repair_deduplicate(call: Call) -> Rows:
    """Keep one row of each key in a partition: that of the newest commit.

    With `dry_run` these rows go to a folder of Parquet files, otherwise the other rows are deleted in one
    commit.

    Raises:
        InvalidError: there is no such type of duplicates, or the table has no meta columns.
        UnsupportedError: a file group has a key twice: a delete takes all rows of a key in a file group.
    """
    kind = call.needed("dedupe_type")
    if kind not in _KINDS:
        raise InvalidError(f"There is no dedupe_type {kind}. Use {', '.join(_KINDS)}.")
    if not call.table.config.populate_meta_fields:
        raise InvalidError(
            "The table has no meta columns (hoodie.populate.meta.fields=false), so it does not tell which of"
            " two rows is newer. Write the rows to keep by insert_overwrite.",
            table=call.table.uri,
        )
    name, partition = call.needed("table"), call.needed("duplicated_partition_path")
    ranked = _OLDER.format(table=_quoted(name), partition=literal(partition))
    if call.flag("dry_run"):
        kept = call.spark.sql(f"SELECT * EXCEPT (_place) FROM ({ranked}) WHERE _place = 1")
        folder = path_of(call.needed("repaired_output_path"))
        kept.write.parquet(folder)
        return [(f"Deduplicated files placed in: {folder}.",)]
    twice = _TWICE_IN_A_FILE_GROUP.format(table=_quoted(name), partition=literal(partition))
    for row in call.spark.sql(twice).collect():
        raise UnsupportedError(
            f"A file group has two rows of the key {row[0]}, of which none can be deleted alone. Run this"
            " with dry_run => true, and write the rows that it keeps by insert_overwrite.",
            table=call.table.uri,
        )
    call.spark.sql(
        f"DELETE FROM {_quoted(name)} WHERE _hoodie_partition_path = {literal(partition)} AND"
        f" _hoodie_commit_seqno IN (SELECT _hoodie_commit_seqno FROM ({ranked}) WHERE _place > 1)"
    ).collect()
    return [(f"Deduplicated files placed in: {partition}.",)]


def _quoted(name: str) -> str:
    """Return the name of a table, or its path, as SQL."""
    return f"hudi.`{name}`" if "/" in name else name


REPAIR_PROCEDURES: Final = (
    Procedure(
        "repair_corrupted_clean_files", "table STRING!", "result BOOLEAN", repair_corrupted_clean_files
    ),
    Procedure(
        "repair_deduplicate",
        "table STRING!, duplicated_partition_path STRING!, repaired_output_path STRING!,"
        " dry_run BOOLEAN=true, dedupe_type STRING='insert_type'",
        "result STRING",
        repair_deduplicate,
    ),
)
"""`CALL`: Hudi's procedures, by their names, parameters and columns."""


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
        engine=ExecutorEngine(call.spark),
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
    done = call.table.services.rollback(call.needed("pending_instant"), options=call.options)
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
    tables = [open_named_table(call.spark, name) for name in call.names("table")]
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


SYNC_PROCEDURES: Final = (
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


_VERSIONS: Final = {"SIX": "6", "EIGHT": "8", "NINE": "9"}
_QUERY: Final = "begin_instance_time STRING, end_instance_time STRING, as_of_instant STRING"


def create_savepoint(call: Call) -> Rows:
    """Keep the files of a commit until the savepoint is deleted; false if there is one already."""
    known = {each.requested for each in call.table.timeline.completed_of(Action.SAVEPOINT)}
    made = call.table.savepoints.create(
        call.text("commit_time"),
        comments=call.text("comments") or "",
        user=call.text("user") or "",
        options=call.options,
    )
    return [(made not in known,)]


def show_savepoints(call: Call) -> Rows:
    """Return the savepoints, newest first."""
    done = call.table.timeline.completed_of(Action.SAVEPOINT)
    return sorted(((each.requested,) for each in done), reverse=True)


def delete_savepoint(call: Call) -> Rows:
    """Delete savepoints, separated by commas, the newest one by default."""
    for each in _savepoints(call):
        call.table.savepoints.delete(each, options=call.options)
    return [(True,)]


def rollback_to_savepoint(call: Call) -> Rows:
    """Restore the table to a savepoint, the newest one by default."""
    [savepoint, *others] = _savepoints(call)
    if others:
        raise InvalidError("A table is restored to one savepoint. Give one instant_time.")
    call.table.savepoints.restore(savepoint, options=call.options)
    return [(True,)]


def _savepoints(call: Call) -> list[str]:
    """Return the savepoints at `instant_time`, separated by commas, or the newest one.

    Raises:
        InvalidError: there is none.
    """
    times = sorted(each.requested for each in call.table.timeline.completed_of(Action.SAVEPOINT))
    wanted = call.names("instant_time")
    unknown = [each for each in wanted if each not in times]
    if not times or unknown:
        raise InvalidError(
            f"There is no savepoint {', '.join(unknown)}. CALL show_savepoints shows those that there are."
        )
    return wanted or times[-1:]


def rollback_to_instant(call: Call) -> Rows:
    """Undo a pending write, or the newest completed one.

    Raises:
        InvalidError: later writes depend on it, or there is none before it.
    """
    time = call.needed("instant_time")
    writes = [each.requested for each in call.table.timeline.writes()]
    if time not in writes:
        call.table.services.rollback(time, options=call.options)
        return [(True,)]
    if time != writes[-1] or len(writes) == 1:
        raise InvalidError(
            f"{time} is not the newest write, or the only one. CALL rollback_to_savepoint, or"
            " roll back later writes first.",
            table=call.table.uri,
        )
    call.table.savepoints.restore(writes[-2], options=call.options)
    return [(True,)]


def drop_partition(call: Call) -> Rows:
    """Delete partitions, separated by commas."""
    call.needed("partition")
    call.table.delete_partition(*call.names("partition"), options=call.options)
    return [("Success",)]


def truncate_table(call: Call) -> Rows:
    """Delete all rows, or those of partitions."""
    clock = call.table._context.clock
    began = clock.now_ms()
    if partitions := call.names("partitions"):
        call.table.delete_partition(*partitions, options=call.options)
    else:
        call.table.insert_overwrite_table(call.table.schema.empty_table(), options=call.options)
    return [("Success", clock.now_ms() - began)]


def upgrade_table(call: Call) -> Rows:
    """Move the table to another version, newer or older, as in Hudi."""
    table = call.table
    with table._errors():
        change_version(table._context, _version(call), table._calls.options("upgrade", call.options))
    return [(True,)]


def downgrade_table(call: Call) -> Rows:
    """Move the table to another version; Hudi's two procedures do the same."""
    return upgrade_table(call)


def _version(call: Call) -> int:
    """Return the version that is named by its number or by its name in Hudi, such as NINE."""
    text = call.needed("to_version").upper()
    number = _VERSIONS.get(text, text)
    if not number.isdigit():
        raise InvalidError(f"There is no table version {text}. Give a number such as 9.")
    return int(number)


def show_table_properties(call: Call) -> Rows:
    """Return the properties that the table stores; a filter looks at all of them."""
    properties = sorted(call.table.config.properties.items())
    return properties if call.text("filter") else call.limited(properties)


def _query(call: Call) -> DataFrame:
    """Return the rows that a copy is to have."""
    kind, path = call.text("query_type") or "snapshot", call.table.uri
    if kind == "incremental":
        return functions.read(
            call.spark, path, incremental=(call.text("begin_instance_time"), call.text("end_instance_time"))
        )
    if kind not in ("snapshot", "read_optimized"):
        raise InvalidError(f"There is no query_type {kind}. Use snapshot, incremental or read_optimized.")
    return functions.read(
        call.spark, path, as_of=call.text("as_of_instant"), read_optimized=kind == "read_optimized"
    )


def copy_to_temp_view(call: Call) -> Rows:
    """Give a query of the table a name."""
    df, name = _query(call), call.needed("view_name")
    create: Any = {
        (False, False): df.createTempView,
        (True, False): df.createOrReplaceTempView,
        (False, True): df.createGlobalTempView,
        (True, True): df.createOrReplaceGlobalTempView,
    }[call.flag("replace"), call.flag("global")]
    create(name)
    return [(0,)]


def copy_to_table(call: Call) -> Rows:
    """Write the rows of a query to another table of the catalog."""
    df, columns = _query(call), call.names("columns")
    if columns:
        df = df.select(*columns)
    df.write.mode(call.text("save_mode") or "overwrite").saveAsTable(call.needed("new_table"))
    return [(0,)]


TABLE_PROCEDURES: Final = (
    Procedure(
        "create_savepoint",
        "table STRING, commit_time STRING, user STRING, comments STRING, path STRING",
        "create_savepoint_result BOOLEAN",
        create_savepoint,
    ),
    Procedure("show_savepoints", "table STRING, path STRING", "savepoint_time STRING", show_savepoints),
    Procedure(
        "delete_savepoint",
        "table STRING, instant_time STRING, path STRING",
        "delete_savepoint_result BOOLEAN",
        delete_savepoint,
    ),
    Procedure(
        "rollback_to_savepoint",
        "table STRING, instant_time STRING, path STRING",
        "rollback_savepoint_result BOOLEAN",
        rollback_to_savepoint,
    ),
    Procedure(
        "rollback_to_instant",
        "table STRING!, instant_time STRING!",
        "rollback_result BOOLEAN",
        rollback_to_instant,
    ),
    Procedure("drop_partition", "table STRING!, partition STRING!", "result STRING", drop_partition),
    Procedure(
        "truncate_table",
        "table STRING!, partitions STRING",
        "result STRING, time_cost BIGINT",
        truncate_table,
    ),
    Procedure("upgrade_table", "table STRING!, to_version STRING!", "result BOOLEAN", upgrade_table),
    Procedure("downgrade_table", "table STRING!, to_version STRING!", "result BOOLEAN", downgrade_table),
    Procedure(
        "show_table_properties",
        "table STRING, path STRING, limit INT=10, filter STRING",
        "key STRING, value STRING",
        show_table_properties,
    ),
    Procedure(
        "copy_to_temp_view",
        f"table STRING!, query_type STRING='snapshot', view_name STRING!, {_QUERY}, replace BOOLEAN=false,"
        " global BOOLEAN=false",
        "status INT",
        copy_to_temp_view,
    ),
    Procedure(
        "copy_to_table",
        f"table STRING!, query_type STRING='snapshot', new_table STRING!, {_QUERY},"
        " save_mode STRING='overwrite', columns STRING",
        "status INT",
        copy_to_table,
    ),
)
