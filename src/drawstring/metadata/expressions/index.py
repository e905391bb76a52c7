"""The definition of an expression index: `expr_index_<name>` (as Apache Hudi 1.2.0).

{"indexName": "expr_index_by_day", "indexType": "column_stats", "indexFunction": "from_unixtime",
 "sourceFields": ["ts"], "indexOptions": {"expr": "from_unixtime", "format": "yyyy-MM-dd"}, "version": "V2"}

column_stats     bounds of the values of the expression in each file and partition
bloom_filters    a bloom filter of their texts for each file
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.metadata.column_ranges import COLUMN_STATS
from drawstring.metadata.expressions.functions import FUNCTIONS
from drawstring.metadata.partitions import BLOOM_FILTERS
from drawstring.metadata.statistics_encoding import Stored

Number = TypeVar("Number", int, float)

PREFIX: Final = "expr_index_"
FUNCTION: Final = "expr"
"""Setting that names the function."""

IDENTITY: Final = "identity"
"""The function of an index of the column itself."""

FILTER_SETTINGS: Final = ("filtertype", "numentries", "fpp", "maxentries")
"""Settings of the bloom filters."""

KINDS: Final = (COLUMN_STATS, BLOOM_FILTERS)
SETTINGS: Final = frozenset(
    {
        FUNCTION,
        *FILTER_SETTINGS,
        *(name for each in FUNCTIONS.values() for name in (*each.needs, *each.may_have)),
    }
)
"""All settings of expression indexes, as SQL gives them in `OPTIONS(...)`."""

_OF_MOMENTS: Final = (IDENTITY, "to_timestamp", "unix_timestamp")
"""Functions of a moment that are the same in each time zone."""

_TO_MOMENTS: Final = ("to_timestamp", "unix_timestamp")
"""Functions that take a date or a text as the time of a session's time zone."""

_OF_TIMES: Final = ("hour", "date_format")
"""Functions that cast texts to timestamps."""

_FORMAT: Final = "format"
_SPLIT: Final = "split"
_DYNAMIC: Final = "DYNAMIC_V0"
_NUMBERS: Final[dict[object, str]] = {int: "whole number", float: "number"}
_COUNTS: Final = ("numentries", "maxentries", "pos")
_WHOLE_NUMBERS: Final = (*_COUNTS, "len", "idx", "days")
_V2: Final = "V2"


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """An index of the values of a function of a column.

    Attributes:
        name: the partition of the metadata table that holds it.
        kind: `column_stats` or `bloom_filters`.
        column: name of the column.
        function: Hudi's name of the function.
        settings: of the function and of bloom filters.
        is_v2: whether statistics have version V2.
    """

    name: str
    kind: str
    column: str
    function: str
    settings: Mapping[str, str] = field(default_factory=dict)
    is_v2: bool = True

    @staticmethod
    def of(definition: Mapping[str, Any]) -> ExpressionIndex | None:
        """Return the index that a definition describes; None if this release cannot keep it."""
        columns = list(definition.get("sourceFields") or ())
        settings = {str(name): str(value) for name, value in (definition.get("indexOptions") or {}).items()}
        if len(columns) != 1:
            return None
        index = ExpressionIndex(
            str(definition.get("indexName")),
            str(definition.get("indexType")).lower(),
            str(columns[0]),
            str(definition.get("indexFunction")),
            {name: value for name, value in settings.items() if name != FUNCTION},
            definition.get("version") == _V2,
        )
        try:
            index.check()
        except DrawstringError:
            return None
        return index

    def definition(self, config: TableConfig) -> dict[str, Any]:
        """Return the definition of the index in a table."""
        version = {"version": _V2 if self.is_v2 else "V1"} if config.rules.has_index_versions else {}
        return {
            "indexName": self.name,
            "indexType": self.kind,
            "indexFunction": self.function,
            "sourceFields": [self.column],
            "indexOptions": {FUNCTION: self.function, **self.settings},
            **version,
        }

    def check(self) -> None:
        """Check the function and its settings.

        Raises:
            InvalidError: there is no such function, or one of its settings is missing or wrong.
            UnsupportedError: this release cannot compute it.
        """
        function = FUNCTIONS.get(self.function)
        if self.function == _SPLIT:
            raise UnsupportedError(
                "An index cannot be of the function split: its values are lists, which have no bounds in a"
                " metadata table, and no text that a condition could look up. Have one of a part of the text,"
                " by regexp_extract or substring."
            )
        if function is None or self.kind not in KINDS:
            raise InvalidError(
                f"An index cannot be of the function {self.function}. Use one of"
                f" {', '.join(sorted(FUNCTIONS))}."
            )
        of_filters = FILTER_SETTINGS if self.kind == BLOOM_FILTERS else ()
        known = {*function.needs, *function.may_have, *of_filters}
        missing, unknown = sorted({*function.needs} - {*self.settings}), sorted({*self.settings} - known)
        if missing or unknown:
            wrong = f"lacks {', '.join(missing)}" if missing else f"has no {', '.join(unknown)}"
            raise InvalidError(
                f"The function {self.function} of an index {wrong}. Its settings are {sorted(known)}."
            )
        self._check_values()

    def _check_values(self) -> None:
        """Check the values of the settings, by computing the function for no rows.

        Raises:
            InvalidError: one of them is wrong.
            UnsupportedError: this release cannot compute the function.
        """
        filter_type = self.settings.get("filtertype", _DYNAMIC)
        numbers = {name: self._number(name, int, 1) for name in _WHOLE_NUMBERS}
        rate = self._number("fpp", float, 0.5)
        try:
            for kind in (pa.string(), pa.date32(), pa.int64(), pa.timestamp("us", "UTC")):
                if FUNCTIONS[self.function].takes(kind):
                    self.values(pa.array([None], kind))
        except (ValueError, pa.ArrowException) as error:
            raise InvalidError(
                f"A setting of the index {self.name} is wrong: {error}. Correct it."
            ) from error
        if filter_type != _DYNAMIC or min(numbers[name] for name in _COUNTS) < 0 or not 0 < rate < 1:
            raise InvalidError(
                f"The index {self.name} cannot have the settings {dict(self.settings)}. Its filters are of"
                f" type {_DYNAMIC}, with a rate between 0 and 1; positions count from 1."
            )

    def _number(self, name: str, parse: Callable[[str], Number], default: Number) -> Number:
        value = self.settings.get(name)
        try:
            return default if value is None else parse(value)
        except ValueError:
            raise InvalidError(
                f"The setting {name}={value} of the index {self.name} is not a {_NUMBERS[parse]}. Correct it."
            ) from None

    def result_type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the type of the values for a column of a type; None if the index cannot be of it."""
        if not FUNCTIONS[self.function].takes(kind):
            return None
        result = self.values(pa.nulls(0, kind)).type
        if self.kind == BLOOM_FILTERS:
            has_text = (
                pt.is_string(result) or pt.is_date32(result) or pt.is_int32(result) or pt.is_int64(result)
            )
            return result if has_text else None
        return result if Stored.of(result, is_v2=self.is_v2) is not None else None

    def values(self, values: pa.Array) -> pa.Array:
        """Return the values of the expression.

        Args:
            values: of the column.

        Raises:
            InvalidError: a value cannot be computed.
        """
        try:
            return FUNCTIONS[self.function].values(values, self.settings)
        except pa.ArrowException as error:
            raise InvalidError(f"{self.function}({self.column}) cannot be computed: {error}") from error

    def depends_on_zone(self, kind: pa.DataType) -> bool:
        """Return whether the values for a column of a type depend on the time zone of a session."""
        is_moment = pt.is_timestamp(kind) and kind.tz is not None and self.function not in _OF_MOMENTS
        is_local = self.function in _TO_MOMENTS and not (pt.is_timestamp(kind) and kind.tz is not None)
        is_parsed = self.function in _OF_TIMES and pt.is_string(kind)
        return is_moment or is_local or is_parsed or self.function == "from_unixtime"

    @property
    def sql(self) -> str | None:
        """The expression in SQL; None if SQL conditions cannot have it."""
        function = FUNCTIONS[self.function]
        column = f"`{self.column}`"
        if self.function == IDENTITY:
            return column
        given = {*function.needs, *function.may_have} & {*self.settings}
        if not given <= {*function.sql} or "\\" in self.settings.get(_FORMAT, ""):
            return None
        arguments = [_sql_of(name, self.settings[name]) for name in function.sql if name in given]
        return f"{self.function}({', '.join([column, *arguments])})"


def _sql_of(name: str, value: str) -> str:
    """Return a setting in SQL: a number, or the text of a date pattern."""
    return "'" + value.replace("'", "''") + "'" if name == _FORMAT else value
