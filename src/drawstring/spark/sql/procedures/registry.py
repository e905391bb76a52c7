"""Find procedures by name and call them.

`PROCEDURES` has all procedures. `REFUSED` names Hudi's procedures that drawstring does not need, and what
to call instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.spark.errors import analysed
from drawstring.spark.sql.procedures import files, repair, services, show
from drawstring.spark.sql.procedures.procedure import NULL, Call, Procedure, Rows, texts

REFUSED: Final[Mapping[str, str]] = {
    "hdfs_parquet_import": (
        "hdfs_parquet_import is not supported: its tables do not store which columns are the key, and queries"
        " of Hudi find no rows in them. CALL run_bootstrap(..., selector_class =>"
        " 'FullRecordBootstrapModeSelector') copies a folder of Parquet files into a new table, and INSERT"
        " INTO ... SELECT * FROM parquet.`/folder` into one that is there."
    ),
    "repair_migrate_partition_meta": (
        "repair_migrate_partition_meta is not supported: writers here mark the folders of partitions by"
        " .hoodie_partition_metadata, which every reader knows. repair_add_partition_meta adds missing ones."
    ),
    "sync_validate": (
        "sync_validate is not supported: it counts rows through HiveServer2 by JDBC, and syncs here speak to"
        " the metastore. CALL hive_sync returns an error if the sync fails; to compare two tables, SELECT"
        " count(*) from each."
    ),
}
"""Why by name."""


_FILTER: Final = "filter"
_NEAR: Final = 3
_HELP_LINE: Final = "\t{:<30}\t{:<30}\t{:<30}\t{:<30}"


def _help(call: Call) -> Rows:
    """Return one row: the procedures with what they do, or parameters and columns of one, a line each."""
    name = call.text("cmd")
    if name is None:
        lines = ["CALL name(parameter => value, ...)", "procedures:"]
        lines += [f"\t{each}\t{_purpose(PROCEDURES[each])}" for each in sorted(PROCEDURES)]
        return [("\n".join((*lines, "CALL help(cmd => name) shows parameters and columns of one.")),)]
    found = procedure_of(name.strip())
    lines = ["parameters:", _HELP_LINE.format("param", "type_name", "default_value", "required")]
    for each, default in zip(found.given, found.defaults, strict=True):
        is_required = str(each.name in found.required).lower()
        shown = "null" if default == NULL else default.strip("'")
        lines.append(_HELP_LINE.format(each.name, each.dataType.typeName(), shown, is_required))
    lines += ["outputType:", _HELP_LINE.format("name", "type_name", "nullable", "metadata")]
    lines += [_HELP_LINE.format(each.name, each.dataType.typeName(), "true", "{}") for each in found.result]
    return [("\n".join((*lines, "")),)]


def _purpose(procedure: Procedure) -> str:
    return (procedure.run.__doc__ or "").partition("\n")[0]


PROCEDURES: Final[Mapping[str, Procedure]] = {
    each.name: each
    for each in (
        *show.AUDIT_PROCEDURES,
        *show.COMMIT_PROCEDURES,
        *files.PROCEDURES,
        *show.HISTORY_PROCEDURES,
        *repair.REPAIR_PROCEDURES,
        *services.PROCEDURES,
        *show.STATE_PROCEDURES,
        *repair.TABLE_PROCEDURES,
        *repair.SYNC_PROCEDURES,
        Procedure("help", "cmd STRING", "result STRING", _help),
    )
}


def procedure_of(name: str) -> Procedure:
    """Return a procedure.

    Raises:
        InvalidError: there is none of this name.
        UnsupportedError: Hudi has one, which drawstring has no use for.
    """
    found = PROCEDURES.get(name.lower())
    if found is not None:
        return found
    if name.lower() in REFUSED:
        raise UnsupportedError(REFUSED[name.lower()])
    near = get_close_matches(name.lower(), PROCEDURES, _NEAR, 0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else "CALL help() lists all."
    raise InvalidError(f"There is no procedure {name}. {hint}")


def facts_of(name: str) -> str:
    """Return what Spark has to know about a procedure to resolve a CALL."""
    found = procedure_of(name)
    facts = {"given": found.given.json(), "defaults": found.defaults, "columns": found.result.json()}
    return json.dumps(facts)


def call(asked: Mapping[str, Any], spark: SparkSession) -> str:
    """Run a procedure and return its rows.

    Args:
        asked: `name`, and the `values` of the parameters as texts.
        spark: the session.
    """
    procedure = procedure_of(asked["name"])
    with analysed():
        called = Call(spark, procedure, asked["values"])
        rows: Rows = list(procedure.run(called))
        condition = called.text(_FILTER) if _FILTER in procedure.given.names else None
        if condition is not None and rows:
            rows = spark.createDataFrame(rows, procedure.result).where(condition).collect()
        return json.dumps(texts(rows))
