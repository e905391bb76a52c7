"""A procedure, and a call of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from drawstring.base.errors import InvalidError
from drawstring.base.lazy import cached_property
from drawstring.spark.functions import SparkTable
from drawstring.spark.sql.tables import NamedTable, open_named_table

Rows = Iterable[Sequence[Any]]
NULL: Final = "NULL"
_REQUIRED: Final = "!"


_TYPES: Final[Mapping[str, T.DataType]] = {
    "STRING": T.StringType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "BOOLEAN": T.BooleanType(),
    "DOUBLE": T.DoubleType(),
}


def columns_of(text: str) -> T.StructType:
    """Return columns by their names and types, separated by commas."""
    pairs = (each.rsplit(maxsplit=1) for each in text.split(", "))
    return T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in pairs])


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure.

    Attributes:
        name: its name.
        parameters: name and type of each, with `!` behind a required one and the default behind `=`.
        columns: names and types of the columns of the result.
        run: returns the rows of the result.
    """

    name: str
    parameters: str
    columns: str
    run: Callable[[Call], Rows]

    @property
    def given(self) -> T.StructType:
        """Names and types of the parameters."""
        plain = (each.partition("=")[0].rstrip(_REQUIRED + " ") for each in self.parameters.split(", "))
        return columns_of(", ".join(plain))

    @property
    def result(self) -> T.StructType:
        """Names and types of the columns."""
        return columns_of(self.columns)

    @property
    def defaults(self) -> list[str]:
        """Default of each parameter, as SQL."""
        return [each.partition("=")[2] or NULL for each in self.parameters.split(", ")]

    @property
    def required(self) -> list[str]:
        """Names of the required parameters."""
        return [each.split()[0] for each in self.parameters.split(", ") if each.endswith(_REQUIRED)]


class Call:
    """A call of a procedure.

    Args:
        spark: the session.
        procedure: what is called.
        values: the values of the parameters as texts, in their order.

    Raises:
        InvalidError: a required parameter has no value.
    """

    def __init__(self, spark: SparkSession, procedure: Procedure, values: Sequence[str | None]) -> None:
        self.spark = spark
        self.procedure = procedure
        self._values = dict(zip(procedure.given.names, values, strict=True))
        for name in procedure.required:
            if self._values[name] is None:
                raise InvalidError(
                    f"CALL {procedure.name} needs {name}. Its parameters are {procedure.parameters}."
                )

    def text(self, name: str) -> str | None:
        """Return a value as text, None if it was not given or is empty."""
        return self._values.get(name) or None

    def given(self, name: str) -> str | None:
        """Return a value as text, which may be empty; None if it was not given."""
        return self._values.get(name)

    def needed(self, name: str) -> str:
        """Return a value that is required."""
        value = self.text(name)
        if value is None:
            raise InvalidError(f"CALL {self.procedure.name} needs {name}. Give {name} => a value.")
        return value

    def number(self, name: str) -> int | None:
        """Return a value as a number, None if it was not given."""
        value = self.text(name)
        return None if value is None else int(value)

    def flag(self, name: str) -> bool:
        """Return whether a value is true."""
        return self._values.get(name) == "true"

    def names(self, name: str) -> list[str]:
        """Return the parts of a list that commas separate."""
        return [part for part in map(str.strip, (self.text(name) or "").split(",")) if part]

    @property
    def options(self) -> dict[str, str]:
        """Options of the table and the session, and those in the parameter `options` (`key=value,...`)."""
        return {**self._named.options, **self.given_options}

    @property
    def given_options(self) -> dict[str, str]:
        """The options in the parameter `options`."""
        pairs = (part.split("=", 1) for part in self.names("options") if "=" in part)
        return {key.strip(): value.strip() for key, value in pairs}

    @cached_property
    def table(self) -> SparkTable:
        """The table that is named by `table` or `path`."""
        return self._named.table

    @cached_property
    def _named(self) -> NamedTable:
        return open_named_table(self.spark, self.text("table"), self.text("path"))

    def limited(self, rows: Rows, default: int | None = None) -> list[Sequence[Any]]:
        """Return as many rows as the parameter `limit` says."""
        limit = self.number("limit")
        if limit is not None and limit < 0:
            raise InvalidError(f"limit is {limit}. Give 0 or more, or leave it out.")
        return list(rows)[: default if limit is None else limit]


def texts(rows: Rows) -> list[list[str | None]]:
    """Return rows as the texts that travel to Java."""
    return [[_text(value) for value in row] for row in rows]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
