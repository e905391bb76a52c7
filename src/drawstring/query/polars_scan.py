"""Lazy frames of polars, whose optimizer pushes columns, conditions and a number of rows into a scan.

    predicate of polars ── conditions that mean the same ──> SQL for the scan: fewer files and row groups
                        └── all of it ──> filter of the rows that were read

What has no counterpart in SQL is left to polars, so that an unknown condition costs time, never rows.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from drawstring.base.errors import not_installed
from drawstring.query.scan import Scan

if TYPE_CHECKING:
    import polars

_COMPARISONS: Final = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_NULLS: Final = {"IsNull": "is null", "IsNotNull": "is not null"}
_LISTED_MAX: Final = 1000
"""Values of a list that are pushed into a scan."""


class _OtherError(Exception):
    """A part of a predicate that SQL has no counterpart for."""


def lazy_frame(schema: pa.Schema, scan: Callable[[list[str] | None, str | None], Scan]) -> polars.LazyFrame:
    """Return a lazy frame.

    Args:
        schema: the columns.
        scan: returns the scan of some columns, None for all, and of the rows that meet a SQL condition.

    Raises:
        InvalidError: polars is not installed.
    """
    try:
        import polars
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise not_installed("A lazy frame needs polars 1.30 or later", "polars") from error
    empty = polars.from_arrow(schema.empty_table())
    assert isinstance(empty, polars.DataFrame)
    return register_io_source(partial(_frames, scan), schema=empty.schema, is_pure=True)


def _frames(
    scan: Callable[[list[str] | None, str | None], Scan],
    columns: list[str] | None,
    predicate: polars.Expr | None,
    rows_max: int | None,
    batch_rows: int | None,
) -> Iterator[polars.DataFrame]:
    """Yield the rows of a query of polars as frames; arguments as polars passes them."""
    import polars

    read = columns
    if columns is not None and predicate is not None:
        read = [*columns, *(name for name in predicate.meta.root_names() if name not in columns)]
    missing = rows_max
    for batch in scan(read, None if predicate is None else sql_of(predicate)).to_batches():
        frame = polars.from_arrow(batch)
        assert isinstance(frame, polars.DataFrame)
        if predicate is not None:
            frame = frame.filter(predicate)
        if columns is not None and read != columns:
            frame = frame.select(columns)
        if missing is not None:
            frame = frame.head(missing)
            missing -= frame.height
        yield frame
        if missing == 0:
            return


def sql_of(predicate: polars.Expr) -> str | None:
    """Return a SQL condition that holds wherever a predicate does, None without one.

    It is as narrow as can be: of conditions that are joined by AND, those without a counterpart are left out.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # whatever polars cannot write as JSON
        return None
    parts = []
    for conjunct in _conjuncts(tree):
        try:
            parts.append(_sql(conjunct))
        except _OtherError:
            continue
    return " and ".join(f"({part})" for part in parts) or None


def _conjuncts(tree: Any) -> Iterator[Any]:
    binary = tree.get("BinaryExpr") if isinstance(tree, dict) else None
    if binary and binary.get("op") == "And":
        yield from _conjuncts(binary["left"])
        yield from _conjuncts(binary["right"])
    else:
        yield tree


def _sql(tree: Any) -> str:
    """Return a condition as SQL.

    Raises:
        _OtherError: it has no counterpart.
    """
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "Or" as op, "right": right}}:
            return f"({_sql(left)}) {op.lower()} ({_sql(right)})"
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _COMPARISONS:
            return f"{_term(left)} {_COMPARISONS[op]} {_term(right)}"
        case {"Function": {"input": [{"Column": name}], "function": {"Boolean": test}}} if test in _NULLS:
            return f"{_column(name)} {_NULLS[test]}"
        case {
            "Function": {
                "input": [{"Column": name}, {"Literal": _} as values],
                "function": {"Boolean": {"IsIn": {"nulls_equal": False}}},
            }
        }:
            return f"{_column(name)} in ({_listed(values)})"
    raise _OtherError


def _term(tree: Any) -> str:
    match tree:
        case {"Column": name}:
            return _column(name)
        case {"Literal": _}:
            return _literal(_value(tree))
    raise _OtherError


def _column(name: Any) -> str:
    if not isinstance(name, str) or "`" in name:
        raise _OtherError
    return f"`{name}`"


def _listed(tree: Any) -> str:
    values = _value(tree)
    values = values.to_list() if hasattr(values, "to_list") else values
    if not isinstance(values, list) or not 0 < len(values) <= _LISTED_MAX:
        raise _OtherError
    return ", ".join(_literal(value) for value in values)


def _value(tree: Any) -> Any:
    """Return the value of a literal, as polars reads its own JSON."""
    import polars

    try:
        expression = polars.Expr.deserialize(io.StringIO(json.dumps(tree)), format="json")
        return polars.select(expression).item()
    except Exception as error:  # another version's form
        raise _OtherError from error


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    if isinstance(value, str) and value.isprintable() and "\\" not in value:
        return "'" + value.replace("'", "''") + "'"
    raise _OtherError  # texts of floats, durations and others are not exact, or mean something else in SQL
