"""Temporary views that show the table as it is now once Spark is told to refresh them.

    REFRESH TABLE view, catalog.refreshTable    ── the view, and those that it is made of ──┐
    REFRESH path, catalog.refreshByPath         ── views of tables below or above the path ─┼─> new plan
    CLEAR CACHE, catalog.clearCache             ── all views ───────────────────────────────┘

Spark keeps the plan of a temporary view, whose reads are fixed to one snapshot each. Spark's own refresh
knows files only. So after it the reads in the plan are done again (`marks`), and the view gets the plan with
these in the place of the old ones. Plans do not change once they are made: queries that run, and DataFrames,
keep the snapshot that they started with.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.types import StructType

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.options.write_options import ReadOptions
from drawstring.query.scan import Scan
from drawstring.spark.locations import storage_options
from drawstring.spark.read.plan_marks import Reread, helper, of_plan, plan_of, reread_of
from drawstring.spark.read.read_options import scan_at
from drawstring.storage import open_storage

_LOG: Final = logging.getLogger("drawstring.spark")
_MAY_REFRESH: Final = re.compile(r"\b(refresh|clear)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ViewName:
    """A temporary view.

    Attributes:
        name: of the view.
        is_global: whether all sessions have it.
    """

    name: str
    is_global: bool


def follow_refreshes(is_registered: Callable[[SparkSession], bool]) -> None:
    """Refresh views of registered sessions when Spark refreshes tables; once a process.

    Args:
        is_registered: tells whether a session was registered.
    """
    own_sql = SparkSession.sql

    @wraps(own_sql)
    def sql(spark: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        done = own_sql(spark, sqlQuery, *args, **kwargs)
        if _MAY_REFRESH.search(sqlQuery) and is_registered(spark):
            _after_command(spark, sqlQuery)
        return done

    SparkSession.sql = sql  # type: ignore[method-assign, assignment]
    for name, refresh in (
        ("refreshTable", refresh_named),
        ("refreshByPath", refresh_below),
        ("clearCache", refresh_all),
    ):
        setattr(Catalog, name, _followed(getattr(Catalog, name), refresh, is_registered))


def _followed(
    own: Callable[..., None], refresh: Callable[..., None], is_registered: Callable[[SparkSession], bool]
) -> Callable[..., None]:
    @wraps(own)
    def followed(catalog: Catalog, *args: Any, **kwargs: Any) -> None:
        own(catalog, *args, **kwargs)
        if is_registered(catalog._sparkSession):
            refresh(catalog._sparkSession, *args, *kwargs.values())

    return followed


def _after_command(spark: SparkSession, text: str) -> None:
    """Refresh what a SQL command that ran refreshed."""
    command = _session_state(spark).sqlParser().parsePlan(text)
    kind = command.getClass().getSimpleName()
    if kind == "RefreshTable":
        child = command.child()
        is_identifier = child.getClass().getSimpleName() == "UnresolvedIdentifier"
        parts = child.nameParts() if is_identifier else child.multipartIdentifier()
        refresh_named(spark, ".".join(f"`{part}`" for part in _items(parts)))
    elif kind == "RefreshResource":
        refresh_below(spark, command.path())
    elif kind == "ClearCacheCommand$":
        refresh_all(spark)


def refresh_named(spark: SparkSession, name: str) -> None:
    """Show the tables as they are now in a temporary view, and in those that it is made of.

    Args:
        spark: a classic session.
        name: of the view; a name of anything else is passed over.

    Raises:
        DrawstringError: a table cannot be read any more, or its columns have other types than those of the
            view; the view is as it was.
    """
    marks = helper(spark)
    if marks is None:
        return
    for database, view in marks.views(plan_of(spark.table(name))):
        _refresh(spark, ViewName(view, database is not None))


def refresh_below(spark: SparkSession, path: str) -> None:
    """Show the tables as they are now in all temporary views of tables at, below or above a path."""
    _refresh_each(spark, partial(_lies_by, path))


def refresh_all(spark: SparkSession) -> None:
    """Show the tables as they are now in all temporary views."""
    _refresh_each(spark, lambda read: True)


def _refresh_each(spark: SparkSession, is_meant: Callable[[Reread], bool]) -> None:
    if helper(spark) is None:
        return
    catalog = _session_state(spark).catalog()
    found = [ViewName(each.table(), False) for each in _items(catalog.listLocalTempViews("*"))]
    found += [ViewName(each, True) for each in _items(catalog.globalTempViewManager().listViewNames("*"))]
    for view in found:
        try:
            _refresh(spark, view, is_meant)
        except DrawstringError as error:
            _LOG.warning("view %s stays as it was: %s", view.name, error)


def _refresh(
    spark: SparkSession, view: ViewName, is_meant: Callable[[Reread], bool] = lambda read: True
) -> None:
    """Give a view a new plan, in which the reads that are meant are done again."""
    marks, catalog = helper(spark), _session_state(spark).catalog()
    get = catalog.getRawGlobalTempView if view.is_global else catalog.getRawTempView
    stored = get(view.name)
    if marks is None or stored.isEmpty() or stored.get().plan().isEmpty():
        return  # a view of SQL text is planned at each query
    old = stored.get().plan().get()
    nodes, others = marks.reads(old), _java_list(spark)
    reads = [_reread(spark, marks, node) for node in nodes]
    if not any(map(is_meant, reads)):
        return
    scans: dict[str, Scan] = {}  # one look for reads that are the same, as in a join of a table with itself
    for node, read in zip(nodes, reads, strict=True):
        key = marks.read(node) or read.path
        scans[key] = scans.get(key) or read.scan()
        others.add(plan_of(_like(read.shown(spark, scans[key]), node, view)))
    new = plan_of(of_plan(spark, marks.replaced(old, nodes, others)))
    _replace(spark, view, stored.get(), new)


def _reread(spark: SparkSession, marks: Any, node: Any) -> Reread:
    """Return how to do a read again: one with a mark, or one of the Python data source."""
    text = marks.read(node)
    if text is not None:
        return reread_of(text)
    options = dict(node.options().asCaseSensitiveMap())
    path = next(options.pop(key) for key in list(options) if key.lower() == "path")
    stored = storage_options(spark, path, options)
    asked = ReadOptions.parse(options)
    return Reread(path, stored, partial(scan_at, path, stored, asked), asked.where)


def _like(df: DataFrame, node: Any, view: ViewName) -> DataFrame:
    """Return rows with the columns that a view has had."""
    had = StructType.fromJson(json.loads(node.schema().json()))
    for column in had:
        kind = df.schema[column.name].dataType if column.name in df.columns else None
        if kind != column.dataType:
            raise InvalidError(
                f"Column {column.name} of view {view.name} was {column.dataType.simpleString()} and is"
                f" {kind.simpleString() if kind else 'gone'} in the table now. The view is as it was: make"
                " it anew with CREATE OR REPLACE, or from a DataFrame that is loaded again."
            )
    return df.select([df[f"`{name}`"] for name in had.names])


def _replace(spark: SparkSession, view: ViewName, stored: Any, plan: Any) -> None:
    """Put a plan in the place of a view's; what was cached of the view is cached again."""
    state = _session_state(spark)
    database = f"`{state.catalog().globalTempDatabase()}`." if view.is_global else ""
    name = f"{database}`{view.name}`"
    level = spark.table(name).storageLevel if spark.catalog.isCached(name) else None
    if level is not None:
        spark.catalog.uncacheTable(name)
    some = getattr(spark.sparkContext._jvm, "scala.Some")(plan)
    put = state.catalog().createGlobalTempView if view.is_global else state.catalog().createTempView
    put(view.name, stored.copy(stored.tableMeta(), some), True)
    if level is not None:
        spark.catalog.cacheTable(name, level)


def _lies_by(path: str, read: Reread) -> bool:
    """Tell whether a table is at, below or above a path."""
    try:
        asked = open_storage(path, read.storage_options).full_uri("")
    except DrawstringError:
        return False
    root = open_storage(read.path, read.storage_options).full_uri("")
    asked, root = (f"{uri.rstrip('/')}/" for uri in (asked, root))
    return root.startswith(asked) or asked.startswith(root)


def _session_state(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState()


def _items(seq: Any) -> Iterable[Any]:
    return (seq.apply(place) for place in range(seq.length()))


def _java_list(spark: SparkSession) -> Any:
    return getattr(spark.sparkContext._jvm, "java.util.ArrayList")()
