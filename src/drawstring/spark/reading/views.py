"""Refresh of temporary views: after a refresh command of Spark they show the current table.

    REFRESH TABLE view, catalog.refreshTable    ── the view, and the views that it uses ────┐
    REFRESH path, catalog.refreshByPath         ── views of tables below or above the path ─┼─> new plan
    CLEAR CACHE, catalog.clearCache             ── all views ───────────────────────────────┘

Spark stores the plan of a temporary view, and each read in this plan has a fixed snapshot. Spark's own
refresh handles files only. After it, drawstring repeats the reads in the plan (`plan_marks`) and gives the
view a new plan with them. Existing plans are immutable: running queries and DataFrames keep their snapshots.
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
from drawstring.spark.reading.dataframe import scan_at
from drawstring.spark.reading.plan_marks import Reread, helper, of_plan, plan_of, reread_of
from drawstring.spark.storage_options import storage_options
from drawstring.storage import open_storage

_LOG: Final = logging.getLogger("drawstring.spark")
_MAY_REFRESH: Final = re.compile(r"\b(refresh|clear)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ViewName:
    """A temporary view.

    Attributes:
        name: name of the view.
        is_global: whether all sessions have it.
    """

    name: str
    is_global: bool


def follow_refreshes(is_registered: Callable[[SparkSession], bool]) -> None:
    """Refresh the views of registered sessions whenever Spark refreshes tables; install once per process.

    Args:
        is_registered: returns whether a session is registered.
    """
    own_sql = SparkSession.sql

    @wraps(own_sql)
    def sql(spark: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        result = own_sql(spark, sqlQuery, *args, **kwargs)
        if _MAY_REFRESH.search(sqlQuery) and is_registered(spark):
            _after_command(spark, sqlQuery)
        return result

    SparkSession.sql = sql  # type: ignore[method-assign, assignment]
    for name, refresh in (
        ("refreshTable", refresh_named),
        ("refreshByPath", refresh_below),
        ("clearCache", refresh_all),
    ):
        setattr(Catalog, name, _refreshing(getattr(Catalog, name), refresh, is_registered))


def _refreshing(
    own: Callable[..., None], refresh: Callable[..., None], is_registered: Callable[[SparkSession], bool]
) -> Callable[..., None]:
    @wraps(own)
    def refreshing(catalog: Catalog, *args: Any, **kwargs: Any) -> None:
        own(catalog, *args, **kwargs)
        if is_registered(catalog._sparkSession):
            refresh(catalog._sparkSession, *args, *kwargs.values())

    return refreshing


def _after_command(spark: SparkSession, text: str) -> None:
    """Refresh the views that a SQL command refers to, after Spark ran it."""
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
    """Refresh a temporary view and the temporary views that it uses.

    Args:
        spark: a classic session.
        name: name of the view; other names have no effect.

    Raises:
        DrawstringError: a table cannot be read, or the types of its columns differ from those of the view;
            the view is unchanged.
    """
    marks = helper(spark)
    if marks is None:
        return
    for database, view in marks.views(plan_of(spark.table(name))):
        _refresh(spark, ViewName(view, database is not None))


def refresh_below(spark: SparkSession, path: str) -> None:
    """Refresh all temporary views of tables at, below or above a path."""
    _refresh_each(spark, partial(_is_related, path))


def refresh_all(spark: SparkSession) -> None:
    """Refresh all temporary views."""
    _refresh_each(spark, lambda read: True)


def _refresh_each(spark: SparkSession, is_selected: Callable[[Reread], bool]) -> None:
    if helper(spark) is None:
        return
    catalog = _session_state(spark).catalog()
    local_views = _items(catalog.listLocalTempViews("*"))
    global_views = _items(catalog.globalTempViewManager().listViewNames("*"))
    views = [ViewName(identifier.table(), False) for identifier in local_views]
    views += [ViewName(name, True) for name in global_views]
    for view in views:
        try:
            _refresh(spark, view, is_selected)
        except DrawstringError as error:
            _LOG.warning("View %s was not refreshed and is unchanged: %s", view.name, error)


def _refresh(
    spark: SparkSession, view: ViewName, is_selected: Callable[[Reread], bool] = lambda read: True
) -> None:
    """Give a view a new plan in which its reads are repeated, if one of them is selected."""
    marks, catalog = helper(spark), _session_state(spark).catalog()
    get = catalog.getRawGlobalTempView if view.is_global else catalog.getRawTempView
    stored = get(view.name)
    if marks is None or stored.isEmpty() or stored.get().plan().isEmpty():
        return  # Spark plans a view of SQL text for each query
    old = stored.get().plan().get()
    nodes, others = marks.reads(old), _java_list(spark)
    reads = [_reread(spark, marks, node) for node in nodes]
    if not any(map(is_selected, reads)):
        return
    scans: dict[str, Scan] = {}  # one snapshot for equal reads, as in a self-join
    for node, read in zip(nodes, reads, strict=True):
        key = marks.read(node) or read.path
        scans[key] = scans.get(key) or read.scan()
        others.add(plan_of(_like(read.shown(spark, scans[key]), node, view)))
    new = plan_of(of_plan(spark, marks.replaced(old, nodes, others)))
    _replace(spark, view, stored.get(), new)


def _reread(spark: SparkSession, marks: Any, node: Any) -> Reread:
    """Return the repeatable read of a node: a marked read, or a read of the Python data source."""
    text = marks.read(node)
    if text is not None:
        return reread_of(text)
    options = dict(node.options().asCaseSensitiveMap())
    path = next(options.pop(key) for key in list(options) if key.lower() == "path")
    stored = storage_options(spark, path, options)
    parsed = ReadOptions.parse(options)
    return Reread(path, stored, partial(scan_at, path, stored, parsed), parsed.where)


def _like(df: DataFrame, node: Any, view: ViewName) -> DataFrame:
    """Return rows with the columns of a view."""
    columns = StructType.fromJson(json.loads(node.schema().json()))
    for column in columns:
        kind = df.schema[column.name].dataType if column.name in df.columns else None
        if kind != column.dataType:
            raise InvalidError(
                f"Column {column.name} of view {view.name} was {column.dataType.simpleString()} and is"
                f" {kind.simpleString() if kind else 'missing'} in the table now. The view is unchanged."
                " Create it again with CREATE OR REPLACE, or from a DataFrame that is loaded again."
            )
    return df.select([df[f"`{name}`"] for name in columns.names])


def _replace(spark: SparkSession, view: ViewName, stored: Any, plan: Any) -> None:
    """Replace the plan of a view, and cache the view again if it was cached."""
    state = _session_state(spark)
    database = f"`{state.catalog().globalTempDatabase()}`." if view.is_global else ""
    name = f"{database}`{view.name}`"
    level = spark.table(name).storageLevel if spark.catalog.isCached(name) else None
    if level is not None:
        spark.catalog.uncacheTable(name)
    optional_plan = getattr(spark.sparkContext._jvm, "scala.Some")(plan)
    put = state.catalog().createGlobalTempView if view.is_global else state.catalog().createTempView
    put(view.name, stored.copy(stored.tableMeta(), optional_plan), True)
    if level is not None:
        spark.catalog.cacheTable(name, level)


def _is_related(path: str, read: Reread) -> bool:
    """Return whether a table is at, below or above a path."""
    try:
        location = open_storage(path, read.storage_options).full_uri("")
    except DrawstringError:
        return False
    root = open_storage(read.path, read.storage_options).full_uri("")
    location, root = (f"{uri.rstrip('/')}/" for uri in (location, root))
    return root.startswith(location) or location.startswith(root)


def _session_state(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState()


def _items(seq: Any) -> Iterable[Any]:
    return (seq.apply(index) for index in range(seq.length()))


def _java_list(spark: SparkSession) -> Any:
    return getattr(spark.sparkContext._jvm, "java.util.ArrayList")()
