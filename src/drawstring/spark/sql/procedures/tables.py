"""Procedures that change a table as a whole: savepoints, rollback, partitions, versions, copies."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Action
from drawstring.services.versions.run import change_version
from drawstring.spark import functions
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows

_VERSIONS: Final = {"SIX": "6", "EIGHT": "8", "NINE": "9"}
_QUERY: Final = "begin_instance_time STRING, end_instance_time STRING, as_of_instant STRING"


def create_savepoint(call: Call) -> Rows:
    """Keep the files of a commit until the savepoint is deleted; false if there is one already."""
    known = {each.requested for each in call.table.timeline.completed_of(Action.SAVEPOINT)}
    made = call.table.savepoint(
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
        call.table.delete_savepoint(each, options=call.options)
    return [(True,)]


def rollback_to_savepoint(call: Call) -> Rows:
    """Restore the table to a savepoint, the newest one by default."""
    [savepoint, *others] = _savepoints(call)
    if others:
        raise InvalidError("A table is restored to one savepoint. Give one instant_time.")
    call.table.restore(savepoint, options=call.options)
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
        call.table.rollback(time, options=call.options)
        return [(True,)]
    if time != writes[-1] or len(writes) == 1:
        raise InvalidError(
            f"{time} is not the newest write, or the only one. CALL rollback_to_savepoint, or"
            " roll back later writes first.",
            table=call.table.uri,
        )
    call.table.restore(writes[-2], options=call.options)
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
        change_version(table._context, _version(call), table._options("upgrade", call.options))
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


PROCEDURES: Final = (
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
