"""Procedures that mend a table: keys that are there twice, and plans that cannot be read."""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.write_options import options_of
from drawstring.services.cleaning.unreadable_plans import drop_unreadable_plans
from drawstring.spark.sql.column_types import literal
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.spark.sql.table import path_of

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


PROCEDURES: Final = (
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
