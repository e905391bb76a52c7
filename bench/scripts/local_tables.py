"""What the peers without Spark have in common where suites share them: `table_SYSTEM.py` has one each.

A condition is a list of (column, operator, value) that all have to hold, operators `=`, `>=` and `<=`.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from shapes import Shape

Condition = list[tuple[str, str, Any]]


def sql_of(where: Condition | None) -> str | None:
    """Return a condition in SQL; None for none."""
    return " and ".join(f"{name} {sign} {value!r}" for name, sign, value in where or []) or None


class Table(Protocol):
    """A table of one system; `compact()` and `set_columns(file)` too, where it can.

    `rows` returns what was found as an Arrow table, `batches` all rows as a stream, so that nothing holds
    them at once, `relation` what DuckDB reads as the whole table.
    """

    def load(self, file: str) -> None: ...
    def upsert(self, file: str) -> None: ...
    def rows(self, columns: list[str] | None, where: Condition | None) -> pa.Table: ...
    def batches(self, columns: list[str] | None) -> pa.RecordBatchReader: ...
    def relation(self) -> Any: ...


def table_of(path: str, shape: Shape, words: list[str]) -> Any:
    """Return the table of a system, to be loaded.

    Args:
        path: of its folder, which is not there.
        shape: of its rows.
        words: the system, and what else its module wants to know: `drawstring mor`.
    """
    system, *args = words
    return importlib.import_module(f"table_{system}").Table(path, shape, *args)


def sums_of(table: Any, columns: list[str]) -> list[float]:
    """Return the number of a table's rows, and the sums of columns."""
    rows: pa.Table = table.rows(columns, None)
    return [rows.num_rows, *(round(float(pc.sum(rows[column]).as_py()), 2) for column in columns)]
