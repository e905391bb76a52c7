"""Define and update expression indexes, the partitions `expr_index_<name>` (as Apache Hudi 1.2.0).

The definition:

{"indexName": "expr_index_by_day", "indexType": "column_stats", "indexFunction": "from_unixtime",
 "sourceFields": ["ts"], "indexOptions": {"expr": "from_unixtime", "format": "yyyy-MM-dd"}, "version": "V2"}

    column_stats     bounds of the values of the expression in each file and partition
    bloom_filters    a bloom filter of their texts for each file

The records:

    write, compaction, clustering, ...   a record for each base and log file; with bounds also one for each
                                         partition that it wrote to
    clean                                a tombstone for each file that it deleted

Bounds are those of the values that are not null; only these values are counted. The bounds of partitions
are those of the files of the latest slices, as in `partition_stats`. A filter has the texts of the values,
nulls left out.

The values of the expression in a data file, which is read for them:

    base file            its rows; the column is null if the file lacks it
    log file             the records in it, deletes left out
    partial log file     the same; as it may lack the column, it gets no record of its own
    bootstrapped file    the rows of its source; no record either, as for statistics of columns

The functions have the names and the settings of Apache Hudi 1.2.0:

    of texts       upper, lower, trim, ltrim, rtrim, length, substring, regexp_replace, regexp_extract
    of dates       year, month, day, date_format, unix_timestamp, to_date, to_timestamp, date_add, date_sub
    of times       the same, hour
    of seconds     from_unixtime
    of all         identity

Values are those of Spark 4 in a session in UTC. Functions of dates and times also take texts. They parse a
text by their setting `format`, or cast it, and give null for a text that is neither. Of a pattern only the
fields are supported that Spark and the patterns of partition paths (`keygen`) format in the same way, in
the years 1 to 9999; Spark adds signs to other years.

The definition of an index has no time zone, so conditions skip nothing by values that depend on one. A
function whose values could not be made equal to Spark's, such as `split`, is not supported: a writer
removes such an index of Hudi's, because it would lose rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import CorruptTableError, DrawstringError, InvalidError, UnsupportedError
from drawstring.base.java_compat import FORMATTED_LETTERS, Token, linear_pattern, parse_pattern
from drawstring.base.resources import EXCHANGE_BYTES_MAX, worker_threads
from drawstring.config.table_config import TableConfig
from drawstring.engine.local import stream
from drawstring.expressions.datetime import AS_DATE, AS_TIME, by_pattern, parse_supported_timestamps
from drawstring.filegroups.log_scanner import open_logs
from drawstring.filegroups.read.bootstrap_reader import base_rows_of
from drawstring.filegroups.read_task import InstantRange, LogReading
from drawstring.formats.bloom import DYNAMIC, BloomFilter
from drawstring.formats.data_file import Selection
from drawstring.formats.metadata.index_definitions import INDEX_DEFINITIONS
from drawstring.keygen.texts import map_distinct
from drawstring.keygen.timestamps import date_texts
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.column_ranges import COLUMN_STATS
from drawstring.metadata.column_stats_record import (
    ColumnStatistics,
    Stored,
    encode_deleted,
    encode_statistics,
)
from drawstring.metadata.definitions import define, definitions
from drawstring.metadata.partitions.bloom_filters import filter_records
from drawstring.metadata.partitions.column_stats import (
    CachedSummaries,
    DataFile,
    FileSummaries,
    PartitionSummaries,
    deleted_files,
    files_of,
    log_rows,
    renamed_rows,
    stored_files,
    written_files,
)
from drawstring.metadata.partitions.maintainer import (
    GroupChange,
    Grouping,
    InitialPartition,
    TableChange,
    TableFacts,
)
from drawstring.metadata.table import (
    BLOOM_FILTERS,
    KEY,
    NAME_HASH_CHARS,
    Kind,
    name_hash,
    record_schema,
)
from drawstring.model.commit import ColumnSummary, CommitMetadata, WriteOperation, merged
from drawstring.model.files import BaseFile, FileSlice, LogFile
from drawstring.schema.evolution import conform
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec

SECONDS_PATTERN: Final = "yyyy-MM-dd HH:mm:ss"
"""Spark's pattern for times without one."""

_LENGTHS: Final = {"y": (1, 2, 4), **dict.fromkeys("MdHms", (1, 2)), "S": (1, 2, 3)}
_FIRST_MS: Final = -62_135_596_800_000
_END_MS: Final = 253_402_300_800_000


def tokens_of(pattern: str) -> tuple[Token, ...]:
    """Return the fields of a pattern.

    Raises:
        InvalidError: it is no pattern.
        UnsupportedError: Spark may format one of its fields in another way.
    """
    tokens = parse_pattern(pattern, FORMATTED_LETTERS)
    for each in tokens:
        if each.letter and each.length not in _LENGTHS.get(each.letter, ()):
            raise UnsupportedError(
                f"An index cannot have dates by {pattern!r}, because of {each.letter * each.length!r}. Use"
                " y, yy, yyyy, and M, d, H, m, s once or twice, and S up to three times."
            )
    return tokens


def formatted(millis: pa.Array, tokens: tuple[Token, ...]) -> pa.Array:
    """Return the text of each time; null for null.

    Args:
        millis: milliseconds since 1970 (int64).
        tokens: of the pattern.

    Raises:
        InvalidError: a time is outside of the years 1 to 9999.
    """
    numbers = np.asarray(millis.fill_null(0))
    if ((numbers < _FIRST_MS) | (numbers >= _END_MS)).any():
        raise InvalidError("A time is outside of the years 1 to 9999.")
    texts = date_texts(numbers, np.zeros_like(numbers), tokens)
    return pc.if_else(millis.is_valid(), texts, pa.scalar(None, pa.string()))


Settings: TypeAlias = Mapping[str, str]
Values: TypeAlias = Callable[[pa.Array, Settings], pa.Array]

_GROUP: Final = re.compile(r"\\(.)|\$(\d)", re.DOTALL)
_BETWEEN: Final = re.compile(r"\$|\\[bBzZG]")
"""What matches between characters, other than the beginning of a text."""

_MOMENT: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class IndexFunction:
    """A function of one column.

    Attributes:
        values: computes it for values of a column.
        takes: whether values of a type can be computed.
        needs: settings that it has to have.
        may_have: other settings.
        sql: its arguments in SQL behind the column; conditions in SQL cannot have other settings.
    """

    values: Values
    takes: Callable[[pa.DataType], bool]
    needs: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()


def _upper(texts: pa.Array, settings: Settings) -> pa.Array:
    return _cased(texts, str.upper, pc.ascii_upper)


def _lower(texts: pa.Array, settings: Settings) -> pa.Array:
    return _cased(texts, str.lower, pc.ascii_lower)


def _cased(
    texts: pa.Array, by_text: Callable[[str], str], of_ascii: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Change the case as Java does: a letter may become several, which Arrow's kernels do not do."""
    is_ascii = pc.all(pc.string_is_ascii(texts)).as_py()
    return map_distinct(texts, by_text) if is_ascii is False else of_ascii(texts)


def _trimmed(trim: Callable[..., pa.Array]) -> Values:
    return lambda texts, settings: trim(texts, characters=settings.get("trimString", " "))


def _substring(texts: pa.Array, settings: Settings) -> pa.Array:
    start = max(int(settings["pos"]) - 1, 0)
    return pc.utf8_slice_codeunits(texts, start, start + max(int(settings["len"]), 0))


def _replaced(texts: pa.Array, settings: Settings) -> pa.Array:
    pattern = _pattern(settings)
    if pc.match_substring_regex(pa.array([""]), pattern)[0].as_py():
        raise UnsupportedError(
            f"The pattern {settings['pattern']!r} of an index matches the empty text. Change it."
        )
    return pc.replace_substring_regex(texts, pattern, _replacement(settings["replacement"]))


def _pattern(settings: Settings) -> str:
    """Return the pattern of a function as RE2 has it.

    Raises:
        UnsupportedError: parts of a text that Java and RE2 match by it may differ.
    """
    pattern = settings["pattern"]
    if _BETWEEN.search(pattern):
        raise UnsupportedError(
            f"The pattern {pattern!r} of an index has $, \\b or \\B, which drawstring cannot compute as Java"
            " does. Change it."
        )
    return linear_pattern(pattern)


def _replacement(text: str) -> str:
    r"""Return a replacement of Java, with `$1` for a group, as RE2 has it, with `\1`."""

    def converted(match: re.Match[str]) -> str:
        literal, group = match.groups()
        return f"\\{group}" if group else ("\\\\" if literal == "\\" else literal)

    return _GROUP.sub(converted, text)


def _extracted(texts: pa.Array, settings: Settings) -> pa.Array:
    """Return a group of the first match, the empty text without one."""
    pattern, group = _pattern(settings), int(settings["idx"])
    around = rf"\A(?s:.*?)({pattern})(?s:.*)\z"
    found = pc.replace_substring_regex(texts, around, f"\\{group + 1}")
    return pc.if_else(pc.match_substring_regex(texts, pattern), found, "")


def _of_days(part: Callable[[pa.Array], pa.Array]) -> Values:
    return lambda days, settings: part(_dates(days)).cast(pa.int32())


def _dates(values: pa.Array) -> pa.Array:
    """Cast to dates."""
    return (parse_supported_timestamps(values, AS_DATE) if pt.is_string(values.type) else values).cast(
        pa.date32()
    )


def _times(values: pa.Array) -> pa.Array:
    """Cast to timestamps."""
    if pt.is_string(values.type):
        return parse_supported_timestamps(values, AS_TIME)
    return values.cast(pa.timestamp("us")).cast(_MOMENT) if pt.is_date32(values.type) else values


def _parsed(values: pa.Array, pattern: str) -> pa.Array:
    """Return timestamps, of texts by a date pattern."""
    return (
        parse_supported_timestamps(values, by_pattern(pattern))
        if pt.is_string(values.type)
        else _times(values)
    )


def _to_date(values: pa.Array, settings: Settings) -> pa.Array:
    return _dates(_parsed(values, settings["format"]) if "format" in settings else values)


def _to_timestamp(values: pa.Array, settings: Settings) -> pa.Array:
    return _parsed(values, settings["format"]) if "format" in settings else _times(values)


def _hour(times: pa.Array, settings: Settings) -> pa.Array:
    return pc.hour(_times(times)).cast(pa.int32())


def _moved(sign: int) -> Values:
    def values(dates: pa.Array, settings: Settings) -> pa.Array:
        moved = pa.scalar(sign * int(settings["days"]), pa.int32())
        return pc.add_checked(_dates(dates).cast(pa.int32()), moved).cast(pa.date32())

    return values


def _of_seconds(seconds: pa.Array, settings: Settings) -> pa.Array:
    millis = pc.multiply_checked(seconds.cast(pa.int64()), 1000)
    return formatted(millis, tokens_of(settings.get("format", SECONDS_PATTERN)))


def _date_format(values: pa.Array, settings: Settings) -> pa.Array:
    times = _times(values)
    millis = pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms", times.type.tz))
    return formatted(millis.cast(pa.int64()), tokens_of(settings["format"]))


def _seconds(values: pa.Array, settings: Settings) -> pa.Array:
    times = _parsed(values, settings.get("format", SECONDS_PATTERN))
    return pc.divide(times.cast(pa.int64()), 1_000_000)  # towards zero, as Spark: also before 1970


def _same(values: pa.Array, settings: Settings) -> pa.Array:
    return values


def _is_time(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind)) and kind.unit == "us" and kind.tz in (None, "UTC")


def _has_time(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind)) or _is_time(kind)


def _has_date(kind: pa.DataType) -> bool:
    return bool(pt.is_date32(kind)) or _has_time(kind)


def _has_moment(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind)) or bool(pt.is_date32(kind)) or kind == _MOMENT


FUNCTIONS: Final[dict[str, IndexFunction]] = {
    "identity": IndexFunction(_same, lambda kind: not pt.is_nested(kind)),
    "upper": IndexFunction(_upper, pt.is_string),
    "lower": IndexFunction(_lower, pt.is_string),
    "trim": IndexFunction(_trimmed(pc.utf8_trim), pt.is_string, may_have=("trimString",)),
    "ltrim": IndexFunction(_trimmed(pc.utf8_ltrim), pt.is_string, may_have=("trimString",)),
    "rtrim": IndexFunction(_trimmed(pc.utf8_rtrim), pt.is_string, may_have=("trimString",)),
    "length": IndexFunction(lambda texts, _: pc.utf8_length(texts).cast(pa.int32()), pt.is_string),
    "substring": IndexFunction(_substring, pt.is_string, ("pos", "len"), sql=("pos", "len")),
    "regexp_replace": IndexFunction(_replaced, pt.is_string, ("pattern", "replacement")),
    "regexp_extract": IndexFunction(_extracted, pt.is_string, ("pattern", "idx")),
    "year": IndexFunction(_of_days(pc.year), _has_date),
    "month": IndexFunction(_of_days(pc.month), _has_date),
    "day": IndexFunction(_of_days(pc.day), _has_date),
    "hour": IndexFunction(_hour, _has_time),
    "date_format": IndexFunction(_date_format, _has_date, ("format",)),
    "from_unixtime": IndexFunction(_of_seconds, pt.is_signed_integer, may_have=("format",)),
    "unix_timestamp": IndexFunction(_seconds, _has_date, may_have=("format",)),
    "to_date": IndexFunction(_to_date, _has_date, may_have=("format",), sql=("format",)),
    "to_timestamp": IndexFunction(_to_timestamp, _has_moment, may_have=("format",)),
    "date_add": IndexFunction(_moved(1), _has_date, ("days",), sql=("days",)),
    "date_sub": IndexFunction(_moved(-1), _has_date, ("days",), sql=("days",)),
}
"""The functions by Hudi's names."""


Number = TypeVar("Number", int, float)

EXPRESSION_INDEX_PREFIX: Final = "expr_index_"
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

_ZONE_INDEPENDENT_FUNCTIONS: Final = (IDENTITY, "to_timestamp", "unix_timestamp")
"""Functions of a moment that are the same in each time zone."""

_SESSION_ZONE_FUNCTIONS: Final = ("to_timestamp", "unix_timestamp")
"""Functions that take a date or a text as the time of a session's time zone."""

_FUNCTIONS_OF_TIMES: Final = ("hour", "date_format")
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
        is_moment = (
            pt.is_timestamp(kind) and kind.tz is not None and self.function not in _ZONE_INDEPENDENT_FUNCTIONS
        )
        is_local = self.function in _SESSION_ZONE_FUNCTIONS and not (
            pt.is_timestamp(kind) and kind.tz is not None
        )
        is_parsed = self.function in _FUNCTIONS_OF_TIMES and pt.is_string(kind)
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


_ANY_TEXT = ("", "\U0010ffff")
"""Bounds that contain every text."""

_ANY_NUMBER = {32: (-(2**31), 2**31 - 1), 64: (-(2**63), 2**63 - 1)}
"""Bounds that contain every whole number of some bits; dates and timestamps are stored as these."""


@dataclass(frozen=True, slots=True)
class ReadExpression:
    """Reads the values of an expression in files. Picklable.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: its columns with meta columns.
        index: has the expression.
        instants: the instants whose log blocks count.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    index: ExpressionIndex
    instants: InstantRange

    @staticmethod
    def of(facts: TableFacts, index: ExpressionIndex) -> ReadExpression:
        """Return the reader for a table as it is, or as it is once an instant is complete."""
        timeline = facts.timeline_after if isinstance(facts, TableChange) else facts.timeline
        instants = InstantRange.of(timeline)
        return ReadExpression(facts.storage.spec, facts.read_config, facts.schema, index, instants)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column whose values are computed."""
        return (self.index.column,)

    @property
    def is_v2(self) -> bool:
        """Whether the statistics have version V2."""
        return self.index.is_v2

    def type_of(self, column: str) -> pa.DataType:
        """Return the type of the values of the expression of a column."""
        kind = self.index.result_type(self.schema.field(column).type)
        if kind is None:
            raise ValueError(f"{self.index.name} cannot be of {column!r}")
        return kind

    def __call__(self, file: DataFile) -> FileSummaries:
        """Return the summary of the values in a file.

        Raises:
            CorruptTableError: the file is missing or damaged.
        """
        column, kind = self.index.column, self.type_of(self.index.column)
        summary = ColumnSummary(column, pa.nulls(2, kind), 0, 0)
        has_record = True
        try:
            for values, is_whole in self.batches(file):
                has_record &= is_whole
                summary = merged([summary, ColumnSummary.of(column, values)], kind)
        except InvalidError:  # a date that Spark knows, and this release does not
            summary = ColumnSummary(column, _any_value(kind), 1, 0)
            has_record = False
        size = file.file.status.size_bytes
        whole = ColumnSummary(column, summary.bounds, summary.values, summary.nulls, size, 2 * size)
        return FileSummaries({column: whole} if summary.values else {}, has_record)

    def batches(self, file: DataFile) -> Iterator[tuple[pa.Array, bool]]:
        """Yield values of a file, and whether records of the file may be made of them.

        Raises:
            CorruptTableError: the file is missing or damaged.
            InvalidError: a value cannot be computed.
        """
        field = self.schema.field(self.index.column).with_nullable(True)
        if isinstance(file.file, LogFile):
            rows = self._log_rows(file.partition, file.file, pa.schema([field]))
        else:
            rows = ((each, file.file.source is None) for each in self._base_rows(file.file, field))
        for batch, is_whole in rows:
            yield self.index.values(combined_chunks(batch.column(field.name))), is_whole

    def _base_rows(self, base: BaseFile, field: pa.Field) -> Iterator[pa.RecordBatch]:
        types = pa.schema([field])
        if self.config.renames(base.instant) is not None:
            return renamed_rows(self, base, types)
        selection = Selection([field.name], types=types)
        storage = open_spec(self.storage)
        return (
            conform(each, types) for each in base_rows_of(storage, base, selection, self.schema, self.config)
        )

    def _log_rows(
        self, partition: str, log: LogFile, schema: pa.Schema
    ) -> Iterator[tuple[pa.RecordBatch, bool]]:
        reading = LogReading(open_spec(self.storage), self.config, schema, self.instants)
        with open_logs(reading, FileSlice(partition, log.file_id, log.instant, None, (log,))) as logs:
            is_whole = not any(each.block.is_partial for each in logs.placed)
            for batch in log_rows(logs):
                yield batch, is_whole


def _any_value(kind: pa.DataType) -> pa.Array:
    """Return bounds that contain every value of the types that functions of dates have."""
    if pa.types.is_string(kind):
        return pa.array(_ANY_TEXT, kind)
    bits = kind.bit_width
    return pa.array(_ANY_NUMBER[bits], pa.int32() if bits == 32 else pa.int64()).cast(kind)


GROUPS: Final = 2
"""Number of file groups of a new index (`hoodie.metadata.index.expression.file.group.count`)."""

_PARTITION: Final = "__partition_stat__"
_SCHEMA: Final = record_schema(Kind.EXPRESSION_INDEX)


@dataclass(frozen=True, slots=True)
class ExpressionIndexMaintainer:
    """Keeps an expression index; see `PartitionMaintainer`.

    Attributes:
        partition: of the metadata table.
        index: an index to be built; None for the one that the table defines.
        memory_bytes: bytes of records to hold in memory; more of them are spilled to disk.
    """

    partition: str
    index: ExpressionIndex | None = None
    memory_bytes: int = EXCHANGE_BYTES_MAX

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the records of the files that an instant wrote, and tombstones of those it deleted."""
        read = ReadExpression.of(change, self._index(change.storage))
        if change.commit is not None:
            rows = self._written(change, change.commit, read)
        elif change.clean is not None:
            rows = iter(_tombstones(read.index, deleted_files(change.clean)))
        else:
            return
        yield from self._grouped(rows, change.file_ids(self.partition))

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Write which expression the index is of."""
        define(storage, self._index(storage).definition(config))

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the index of all committed files of a table."""
        read = ReadExpression.of(facts, self._index(facts.storage))
        name = self.partition.replace("_", "-")
        ids = [f"{name}-{number:04}-0" for number in range(GROUPS)]
        return InitialPartition(tuple(ids), self._grouped(self._stored(facts, read), ids))

    def can_keep(self, facts: TableFacts) -> bool:
        """Return whether the index can be kept: this release knows its function for the type of its column.

        Args:
            facts: the table as it is, or as it is once an instant is complete.
        """
        index = self.index or ExpressionIndex.of(definitions(facts.storage).get(self.partition, {}))
        return index is not None and is_indexable(index, ReadExpression.of(facts, index).schema, facts.config)

    def _index(self, storage: Storage) -> ExpressionIndex:
        """Return the index.

        Raises:
            CorruptTableError: its definition is missing.
        """
        index = self.index or ExpressionIndex.of(definitions(storage).get(self.partition, {}))
        if index is None:
            raise CorruptTableError(f"The index {self.partition} is not in {INDEX_DEFINITIONS}.")
        return index

    def _written(
        self, change: TableChange, commit: CommitMetadata, read: ReadExpression
    ) -> Iterator[pa.RecordBatch]:
        is_bootstrap = commit.operation == WriteOperation.BOOTSTRAP
        yield from _described([] if is_bootstrap else list(written_files(commit)), read)
        if read.index.kind == COLUMN_STATS:
            touched = sorted({partition for partition, _ in commit.touched})
            slices = ((path, change.view_after.slices(path)) for path in touched)
            at_hand = CachedSummaries.of(read, commit)
            table = PartitionSummaries(read, change.metadata, at_hand, self.partition)
            yield from _partition_records(table, ((path, list(files_of(each))) for path, each in slices))

    def _stored(self, facts: TableFacts, read: ReadExpression) -> Iterator[pa.RecordBatch]:
        yield from _described(list(stored_files(facts)), read)
        if read.index.kind == COLUMN_STATS:
            table = PartitionSummaries(read, None, CachedSummaries(read, {}), self.partition)
            slices = ((path, facts.view.slices(path)) for path in facts.view.partitions())
            yield from _partition_records(
                table, ((path, list(files_of(each))) for path, each in slices if each)
            )

    def _grouped(self, batches: Iterable[pa.RecordBatch], ids: Sequence[str]) -> Iterator[GroupChange]:
        return Grouping(self.partition, _SCHEMA, ids, self.memory_bytes).changes(batches)


def is_indexable(index: ExpressionIndex, schema: pa.Schema, config: TableConfig) -> bool:
    """Return whether an index can be of its column.

    Args:
        index: the index.
        schema: the columns of the table.
        config: its settings.
    """
    is_dropped = config.drop_partition_columns and index.column in config.partition_fields
    if index.column not in schema.names or is_dropped:
        return False
    return index.result_type(schema.field(index.column).type) is not None


def defined_indexes(storage: Storage, names: Sequence[str]) -> list[ExpressionIndex]:
    """Return those of the expression indexes of a table that can be used.

    Args:
        storage: the table's files.
        names: of the indexes, which are ready.

    Raises:
        CorruptTableError: the definitions are damaged.
    """
    known = definitions(storage)
    found = (ExpressionIndex.of(known.get(name, {})) for name in names)
    return [each for each in found if each is not None]


def _described(files: Sequence[DataFile], read: ReadExpression) -> Iterator[pa.RecordBatch]:
    describe = _statistics if read.index.kind == COLUMN_STATS else _filter
    return stream(files, partial(describe, read), worker_threads())


def _statistics(read: ReadExpression, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield the bounds of the values in a file."""
    summaries = read(file)
    if summaries.has_statistics:
        found = (replace(each, values=each.values - each.nulls) for each in summaries.columns.values())
        described = [ColumnStatistics(file.partition, file.name, each) for each in found]
        yield from _full(encode_statistics(described, is_v2=read.is_v2))


def _filter(read: ReadExpression, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield the filter of the values in a file; none if they are not all known."""
    settings = read.index.settings
    made = BloomFilter.empty(
        int(settings.get("numentries", BloomFilter.DEFAULT_CAPACITY)),
        int(settings.get("maxentries", BloomFilter.DEFAULT_KEYS_MAX)),
        float(settings.get("fpp", BloomFilter.DEFAULT_RATE)),
    )
    rows = 0
    try:
        for values, is_whole in read.batches(file):
            if not is_whole:
                return
            rows += len(values)
            made.add(values.cast(pa.string()).drop_null())
    except InvalidError:
        return
    if rows:
        records = filter_records([file.file], [DYNAMIC], [made.encode().encode()], is_deleted=False)
        yield from _full(pa.Table.from_batches([records]))


def _partition_records(
    table: PartitionSummaries, files: Iterable[tuple[str, Sequence[DataFile]]]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of partitions, whose keys say that they are of partitions."""
    for path, of_slices in files:
        rows = table.records(path, of_slices)
        keys = rows.column(KEY)
        column = pc.utf8_slice_codeunits(keys, 0, NAME_HASH_CHARS)
        partition = pc.utf8_slice_codeunits(keys, NAME_HASH_CHARS)
        named = pc.binary_join_element_wise(column, name_hash(_PARTITION), partition, "")
        yield from _full(rows.set_column(0, KEY, named))


def _tombstones(index: ExpressionIndex, deleted: Sequence[DataFile]) -> list[pa.RecordBatch]:
    """Return the records that delete those of files."""
    if index.kind == COLUMN_STATS:
        rows = encode_deleted([(index.column, each.partition, each.name) for each in deleted])
    else:
        files = [each.file for each in deleted]
        count = len(files)
        rows = pa.Table.from_batches([filter_records(files, [""] * count, [b""] * count, is_deleted=True)])
    return _full(rows)


def _full(rows: pa.Table) -> list[pa.RecordBatch]:
    """Return records with all columns of an expression index."""
    columns = [
        rows.column(each.name) if each.name in rows.schema.names else pa.nulls(len(rows), each.type)
        for each in _SCHEMA
    ]
    return list(pa.table(columns, schema=_SCHEMA).to_batches())
