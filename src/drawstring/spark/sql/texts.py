"""Statements of Hudi that Spark's grammar lacks, in `spark.sql` of registered sessions.

| statement | what happens |
|---|---|
| SHOW INDEXES FROM t, SHOW PARTITIONS t | the rows come from the table |
| CALL of an unknown procedure | the nearest names |
| CALL without parentheses, or with unknown parameters | the CALL that Spark knows |
| RUN, SCHEDULE and SHOW COMPACTION ON t | a CALL |
| TIMESTAMP AS OF '2024-01-31 12:00:00' | becomes VERSION AS OF, a time of the timeline |
| CREATE TABLE t (v VECTOR(3), b BLOB) USING hudi; ALTER TABLE t ADD COLUMNS | a struct stands for a type |
| ANALYZE TABLE t, MSCK REPAIR TABLE t | nothing: statistics and partitions are always those of the files |
| REFRESH INDEX i ON t | nothing: every write keeps the indexes |
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial, wraps
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.types import StringType, StructField, StructType

from drawstring.base.errors import InvalidError
from drawstring.spark.errors import analysed
from drawstring.spark.sql.column_types import DEFINES, TOKEN, is_space, with_stand_ins
from drawstring.spark.sql.ddl import INDEX_COLUMNS, index_row, shown_partitions
from drawstring.spark.sql.procedures.registry import procedure_of
from drawstring.spark.sql.rewrites import BEFORE, Parameters, Run, partition_spec, run_as_hudi
from drawstring.spark.sql.tables import location_of, open_named_table

_SHOW_INDEXES: Final = re.compile(
    rf"{BEFORE}SHOW\s+INDEX(?:ES)?\s+(?:FROM|IN)\s+(?:TABLE\s+)?(\S+?)\s*;?\s*", re.IGNORECASE
)
_CALL: Final = re.compile(
    rf"{BEFORE}CALL\s+(?:spark_catalog\.)?(?:system\.)?(\w+)\s*(\(|;?\s*$)", re.IGNORECASE
)
_COMPACTION: Final = re.compile(
    rf"{BEFORE}(RUN|SCHEDULE|SHOW)\s+COMPACTION\s+ON\s+(?:(['\"])(?P<path>.+?)\2|(?P<table>[\w.`]+))"
    r"(?:\s+AT\s+(?P<at>\d+)|\s+LIMIT\s+(?P<limit>\d+))?\s*;?\s*",
    re.IGNORECASE,
)
_UNKNOWN_PARAMETER: Final = "UNRECOGNIZED_PARAMETER_NAME"
_NEAR: Final = 0.75
_LOG: Final = logging.getLogger("drawstring")
_AS_OF_LITERAL: Final = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*(?:(?!\*/)[\s\S])*\*/"
    r"|(?P<table>(?:`[^`]*`|[\w.])+)\s+(?:FOR\s+)?(?:SYSTEM_TIME|TIMESTAMP)\s+AS\s+OF\s+"
    r"(?:(?:TIMESTAMP|DATE)\s*)?(?:'(?P<text>[^'\\]*)'|\"(?P<other>[^\"\\]*)\"|(?P<number>\d+)\b)"
    r"(?!\s*(?:[+*%|&^:.\[<>=!]|-(?!-)|/(?!\*)))|`[^`]*`",
    re.IGNORECASE | re.DOTALL,
)
"""A time travel; or a text, a comment or a name in backticks, which stay as they are."""
_NOTHING_TO_DO: Final = re.compile(
    rf"{BEFORE}(?:ANALYZE\s+TABLE\s+(\S+)\s+.*COMPUTE\s.*|(?:MSCK\s+)?REPAIR\s+TABLE\s+([^\s;]+).*"
    r"|REFRESH\s+INDEX\s+\S+\s+ON\s+(?:TABLE\s+)?([^\s;]+)\s*;?\s*)",
    re.IGNORECASE | re.DOTALL,
)
_SHOW_PARTITIONS: Final = re.compile(rf"{BEFORE}SHOW\s+PARTITIONS\s+([^\s;(]+)", re.IGNORECASE)
_PARTITION: Final = StructType([StructField("partition", StringType(), nullable=False)])
_NO_ROWS: Final = StructType([])


def follow_statements(is_registered: Callable[[SparkSession], bool]) -> None:
    """Let `spark.sql` of registered sessions know the statements; install once per process.

    Args:
        is_registered: returns whether a session is registered.
    """
    own_sql = SparkSession.sql

    @wraps(own_sql)
    def sql(spark: SparkSession, sqlQuery: str, args: Parameters | None = None, **kwargs: Any) -> DataFrame:
        def run(text: str) -> DataFrame:
            return own_sql(spark, text, args)  # type: ignore[arg-type]

        if not is_registered(spark):
            return own_sql(spark, sqlQuery, args, **kwargs)  # type: ignore[arg-type]
        formatter = SQLStringFormatter(spark)
        text = formatter.format(sqlQuery, **kwargs) if kwargs else sqlQuery
        try:
            return _answer(spark, text, run, args or ())
        finally:
            formatter.clear()

    SparkSession.sql = sql  # type: ignore[method-assign, assignment]


def _answer(spark: SparkSession, text: str, run: Run, parameters: Parameters) -> DataFrame:
    """Run a statement of a registered session.

    Args:
        spark: the session.
        text: the statement.
        run: runs a statement that Spark knows.
        parameters: values of the statement's parameters: by name, or a list.
    """
    if asks := _SHOW_INDEXES.fullmatch(text):
        return show_indexes(spark, asks[1])
    if compacts := _COMPACTION.fullmatch(text):
        text = _compaction_call(compacts)
    text = _AS_OF_LITERAL.sub(partial(_as_of_text, spark), text)
    defines = DEFINES.fullmatch(text)
    if defines and _is_of_table(spark, defines[1]):
        text = with_stand_ins(text)
    upkeep = _NOTHING_TO_DO.fullmatch(text)
    if upkeep and location_of(spark, upkeep[1] or upkeep[2] or upkeep[3]) is not None:
        if upkeep[2]:
            _check_partitioned(spark, upkeep[2])
        return spark.createDataFrame([], _NO_ROWS)
    partitions = _SHOW_PARTITIONS.match(text)
    if partitions and _is_in_catalog(spark, partitions[1]):
        return show_partitions(spark, partitions[1], partition_spec(spark, text, parameters))
    if called := _CALL.match(text):
        is_whole = called[2].startswith("(")
        return _called(called[1], text if is_whole else text.rstrip("; \n\t") + "()", run)
    return run_as_hudi(spark, text, run, parameters)


def _compaction_call(asked: re.Match[str]) -> str:
    """Return the CALL of a statement on compactions."""
    verb, table = asked[1].lower(), asked["table"]
    target = f"table => '{table}'" if table else f"path => '{asked['path']}'"
    if verb == "show":
        limit = f", limit => {asked['limit']}" if asked["limit"] else ""
        return f"CALL show_compaction({target}{limit})"
    at = f", timestamp => {asked['at']}" if asked["at"] else ""
    return f"CALL run_compaction(op => '{verb}', {target}{at})"


def _called(name: str, text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run a CALL without the parameters that its procedure does not have, as Hudi does, with a warning.

    Args:
        name: of the procedure.
        text: the statement.
        run: runs a statement.

    Raises:
        AnalysisException: there is no such procedure, or a parameter looks like a misspelt one.
    """
    try:
        return run(text)
    except AnalysisException as error:
        if "UNRESOLVED_ROUTINE" in str(error):
            with analysed():
                procedure_of(name)
        if name.lower() == "help":
            raise
        unknown = (error.getMessageParameters() or {}).get("argumentName", "").strip("`")
        if error.getCondition() != _UNKNOWN_PARAMETER or not unknown:
            raise
        known = procedure_of(name).given.names
        shorter = _without_parameter(text, unknown)
        if shorter == text or get_close_matches(unknown.lower(), known, 1, _NEAR):
            raise
        _LOG.warning("CALL %s has no parameter %s: it is passed over, as in Hudi.", name, unknown)
        return _called(name, shorter, run)


def _without_parameter(call: str, name: str) -> str:
    """Return a CALL without a named parameter, as it is if it has none of this name."""
    tokens = TOKEN.findall(call)
    places = [place for place, token in enumerate(tokens) if not is_space(token)]
    told = [tokens[place] for place in places]
    names = [token.strip("`").lower() for token in told]
    starts = (at for at in range(len(told) - 2) if names[at : at + 3] == [name.lower(), "=", ">"])
    start = next(starts, None)
    if start is None:
        return call
    end, depth = start, 0
    while depth > 0 or told[end] not in (",", ")"):
        depth += (told[end] in ("(", "[")) - (told[end] in (")", "]"))
        end += 1
    if told[end] == ",":
        end += 1
    elif told[start - 1] == ",":
        start -= 1
    return "".join([*tokens[: places[start]], *tokens[places[end] :]])


def _as_of_text(spark: SparkSession, travel: re.Match[str]) -> str:
    """Return a time travel of a table of Hudi with the time as it is written, any other one as it is.

    Spark makes a moment in the session's time zone of a text. Hudi takes it, like `as.of.instant`, for a time
    of the table's timeline.
    """
    if not travel["table"]:
        return travel[0]
    name, when = travel["table"], travel["text"] or travel["other"] or travel["number"] or ""
    is_hudi = name.lower().startswith("hudi.")
    return f"{name} VERSION AS OF '{when}'" if is_hudi or _is_in_catalog(spark, name) else travel[0]


def _is_in_catalog(spark: SparkSession, name: str) -> bool:
    """Return whether a name is that of a table of Hudi."""
    try:
        return location_of(spark, name.removeprefix("spark_catalog.")) is not None
    except AnalysisException:
        return False  # the statement itself says what is wrong with the name


def _is_of_table(spark: SparkSession, name: str | None) -> bool:
    return name is None or _is_in_catalog(spark, name)


@analysed()
def _check_partitioned(spark: SparkSession, name: str) -> None:
    """Refuse to repair the partitions of a table without partition columns, as Hudi does."""
    if not open_named_table(spark, name).table.config.partition_fields:
        raise InvalidError(
            f"{name} is not partitioned, so it has no partitions to repair. Leave the statement out."
        )


@analysed()
def show_partitions(spark: SparkSession, name: str, wanted: Mapping[str, str | None]) -> DataFrame:
    """Return the partitions of a table by its name in the catalog, those with some values only.

    Args:
        spark: a registered session.
        name: the table.
        wanted: values by column that partitions must have, as texts; null is None.
    """
    timezone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    paths = shown_partitions(open_named_table(spark, name).table, wanted, timezone)
    return spark.createDataFrame([(path,) for path in paths], _PARTITION)


@analysed()
def show_indexes(spark: SparkSession, name: str) -> DataFrame:
    """Return the complete indexes of a table by its name in the catalog."""
    indexes = open_named_table(spark, name).table.indexes.list()
    return spark.createDataFrame([index_row(each) for each in indexes if each.is_complete], INDEX_COLUMNS)
